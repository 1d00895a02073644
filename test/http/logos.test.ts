import { expect } from "chai";
import { readLogo } from "../../src/contract/logo.ts";
import { McpCaller } from "../mcp/support.ts";
import { wire } from "../support/wire.ts";
import { elevate, type Fields, newWorld, organizationKey, times, type World } from "../support/world.ts";
import { jpeg, pixel, png, webp } from "../support/images.ts";

const KIB_64 = 65_536;

const dataUrl = (type: string, bytes: Uint8Array): string =>
  `data:image/${type};base64,${Buffer.from(bytes).toString("base64")}`;

describe("logos over HTTP", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
  });

  const create = async (logo: string | null, at = world) =>
    (await at.api.ok("createProject", 201, { token: at.token, body: { name: "Tile", logo } })).project;

  async function refused(logo: unknown): Promise<string | undefined> {
    const request = { token: world.token, body: { name: "Tile", logo } };
    const { issues } = await world.api.refused("createProject", 400, "VALIDATION_FAILED", request);
    expect(issues?.map(({ path }) => path)).to.deep.equal(["logo"]);
    return issues?.[0]?.message;
  }

  const images = { png: png(2, 3), jpeg: jpeg(2, 3), webp: webp(2, 3) };

  for (const [type, bytes] of Object.entries(images)) {
    it(`a ${type} comes back from its link without a credential, as it is, as its type, for ever`, async () => {
      const { logo } = await create(dataUrl(type, bytes));
      expect(logo).to.match(/^http:\/\/127\.0\.0\.1:\d+\/logos\/[A-Za-z0-9_-]{43}$/);
      expect(logo).to.satisfy((link: string) => link.startsWith(world.service.baseUrl));
      const response = await fetch(logo ?? "");
      expect(response.status).to.equal(200);
      expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).to.equal(true);
      expect(Object.fromEntries(response.headers)).to.deep.include({
        "content-type": `image/${type}`,
        "cache-control": "public, max-age=31536000, immutable",
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'; sandbox",
        "content-length": String(bytes.length),
      });
    });

    for (const claimed of Object.keys(images).filter((each) => each !== type)) {
      it(`a ${type} that is called a ${claimed} is 400`, async () => {
        expect(await refused(dataUrl(claimed, bytes))).to.include("type");
      });
    }
  }

  const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="2" height="2"><script/></svg>');
  const html = Buffer.from("<!doctype html><script>alert(1)</script>");
  const gif = Buffer.from("GIF89a\u0002\u0000\u0002\u0000\u0000\u0000\u0000;", "latin1");
  const wrong: readonly (readonly [string, unknown])[] = [
    ["an SVG by its name", dataUrl("svg+xml", svg)],
    ["an SVG as a PNG", dataUrl("png", svg)],
    ["HTML as a PNG", dataUrl("png", html)],
    ["HTML before an image", dataUrl("png", Buffer.concat([html, images.png]))],
    ["a GIF as a PNG", dataUrl("png", gif)],
    ["a GIF by its name", dataUrl("gif", gif)],
    ["the first bytes of a PNG only", dataUrl("png", images.png.subarray(0, 12))],
    ["the first bytes of a JPEG only", dataUrl("jpeg", images.jpeg.subarray(0, 6))],
    ["the first bytes of a WebP only", dataUrl("webp", images.webp.subarray(0, 16))],
    ["no bytes", "data:image/png;base64,"],
    ["no data URL", "https://example.com/logo.png"],
    ["parameters in the URL", `data:image/png;charset=utf-8;base64,${images.png.toString("base64")}`],
    ["a JPEG by another name", dataUrl("jpg", images.jpeg)],
    ["base64 with a line end", `${dataUrl("png", images.png)}\n`],
    ["base64 without its padding", dataUrl("png", png(1, 1)).replace(/=+$/, "").slice(0, -1)],
    ["base64 of the URL alphabet", dataUrl("png", images.png).replace(/,.*/, ",____")],
    ["a side of nothing", dataUrl("png", png(0, 1))],
    ["a side of 4097", dataUrl("png", png(1, 4_097))],
    [
      "64 KiB and a byte",
      dataUrl("png", Buffer.concat([images.png, Buffer.alloc(KIB_64 + 1 - images.png.length)])),
    ],
    ["100 KiB", dataUrl("png", Buffer.concat([images.png, Buffer.alloc(100_000)]))],
    ["a number", 5],
  ];
  for (const [what, logo] of wrong) {
    it(`400 with an issue at logo: ${what}`, async () => {
      const before = await world.service.db.collection("logos").countDocuments();
      await refused(logo);
      expect(await world.service.db.collection("logos").countDocuments()).to.equal(before);
    });
  }

  it("a cut image is none, whatever lies behind it in memory", () => {
    const url = dataUrl("webp", images.webp.subarray(0, 16));
    for (const size of times(2_000, (index) => 1 + (index % 50))) {
      // Small buffers share their memory: the next one lies where this one has been.
      Buffer.allocUnsafe(size).fill(size);
      expect(readLogo(url)).to.have.property("problem");
    }
  });

  it("the shape of a logo is told before its container is looked for", async () => {
    const body = { name: "T", projectId: "01890a5d-ac96-774b-bcce-b302099a8057", logo: "x" };
    await world.api.refused("createTeam", 400, "VALIDATION_FAILED", { token: world.token, body });
  });

  it("exactly 64 KiB and 4096 pixels are fine; trailing data is never served as anything else", async () => {
    const hidden = Buffer.alloc(KIB_64 - png(4_096, 4_096).length, "<script>alert(1)</script>");
    const bytes = Buffer.concat([png(4_096, 4_096), hidden]);
    const { logo } = await create(dataUrl("png", bytes));
    const response = await fetch(logo ?? "", { headers: { accept: "text/html" } });
    expect(response.headers.get("content-type")).to.equal("image/png");
    expect(response.headers.get("x-content-type-options")).to.equal("nosniff");
    expect(response.headers.get("content-security-policy")).to.equal("default-src 'none'; sandbox");
  });

  it("the same image has one link and is kept once; another organization's has another", async () => {
    const own = await newWorld();
    const logo = dataUrl("png", png(7, 7));
    const [one, two, three] = [await create(logo), await create(logo), await create(logo, own)];
    expect(one.logo).to.equal(two.logo);
    expect(three.logo).not.to.equal(one.logo);
    expect((await Promise.all(times(10, () => create(dataUrl("png", png(8, 8)))))).length).to.equal(10);
    const { organizationId } = world.organization;
    const kept = await world.service.db.collection("logos").find({ organizationId }).toArray();
    expect(new Set(kept.map(({ bytes }) => String(bytes))).size).to.equal(kept.length);
  });

  for (const noun of ["project", "team"] as const) {
    it(`a ${noun}'s logo is changed, left alone and cleared by PATCH`, async () => {
      const { api, token } = world;
      const made: Readonly<Record<string, { id: string; logo: string | null } | undefined>> =
        noun === "project"
          ? await api.ok("createProject", 201, { token, body: { name: "x", logo: dataUrl("png", pixel) } })
          : await api.ok("createTeam", 201, { token, body: { name: "x", logo: dataUrl("png", pixel) } });
      const { id = "", logo } = made[noun] ?? {};
      const patch = async (body: Fields) => {
        const answer =
          noun === "project"
            ? (await api.ok("updateProject", 200, { token, id, body })).project
            : (await api.ok("updateTeam", 200, { token, id, body })).team;
        return answer.logo;
      };
      expect(await patch({ name: "y" })).to.equal(logo);
      const changed = await patch({ logo: dataUrl("webp", images.webp) });
      expect(changed).not.to.equal(logo);
      expect((await fetch(changed ?? "")).headers.get("content-type")).to.equal("image/webp");
      expect(await patch({ logo: null })).to.equal(null);
      const operation = noun === "project" ? "updateProject" : "updateTeam";
      const wrongLogo = { token, id, body: { logo: dataUrl("png", svg) } };
      const { issues } = await api.refused(operation, 400, "VALIDATION_FAILED", wrongLogo);
      expect(issues?.map(({ path }) => path)).to.deep.equal(["logo"]);
    });
  }

  it("an archived container takes no logo, and keeps the one it has", async () => {
    await elevate(world);
    const { id, logo } = await create(dataUrl("jpeg", images.jpeg));
    const { token } = world;
    await world.api.ok("archiveProject", 200, { token, id });
    const body = { logo: dataUrl("png", png(9, 9)) };
    await world.api.refused("updateProject", 409, "CONTAINER_ARCHIVED", { token, id, body });
    expect((await world.api.ok("getProject", 200, { token, id })).project.logo).to.equal(logo);
  });

  it("a logo is part of what a replay must repeat", async () => {
    const { token } = await organizationKey(world);
    const body = { name: "x", idempotencyKey: "logo-replay", logo: dataUrl("png", pixel) };
    const { project } = await world.api.ok("createProject", 201, { token, body });
    expect((await world.api.ok("createProject", 200, { token, body })).project).to.deep.equal(project);
    const other = { ...body, logo: dataUrl("png", png(5, 5)) };
    await world.api.refused("createProject", 422, "IDEMPOTENCY_KEY_REUSED", { token, body: other });
  });

  it("tools show the link too", async () => {
    const { token } = await organizationKey(world);
    const { id, logo } = await create(dataUrl("png", pixel));
    const caller = await McpCaller.connect(world.service.baseUrl, token);
    try {
      const { structuredContent } = await caller.client.callTool({ name: "list_projects", arguments: {} });
      expect(JSON.stringify(structuredContent)).to.include(id).and.to.include(logo);
    } finally {
      await caller.close();
    }
  });

  for (const path of ["x", "..", "", "%2e%2e", "A".repeat(43), "A".repeat(42), "%00", `${"A".repeat(43)}/`]) {
    it(`what is no logo's link is 404: ${JSON.stringify(path)}`, async () => {
      // As it is: clients make another path of one with dots.
      const head = [`GET /logos/${path} HTTP/1.1`, "Host: localhost", "Connection: close"];
      const { status } = await wire(world.service.baseUrl, [...head, "", ""].join("\r\n"));
      expect(status).to.equal(404);
    });
  }

  it("a link has no other methods", async () => {
    const { logo } = await create(dataUrl("png", pixel));
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
      expect((await fetch(logo ?? "", { method })).status, method).to.equal(404);
    }
  });
});
