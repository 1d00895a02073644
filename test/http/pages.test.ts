import { expect } from "chai";
import { sharedService } from "../support/service.ts";
import { send } from "../support/wire.ts";

const PAGES = ["/setup", "/invite", "/docs"];
const ASSETS = [
  ["/assets/enter.js", "text/javascript; charset=utf-8"],
  ["/assets/page.css", "text/css; charset=utf-8"],
  ["/assets/reference.js", "text/javascript; charset=utf-8"],
  ["/assets/reference.css", "text/css; charset=utf-8"],
] as const;
/** Of the API's page, at paths of their bytes' digests. */
const LIBRARY = /^\/assets\/[0-9a-f]{16}\/swagger-ui(-bundle)?\.(js|css)$/;

const POLICY = [
  "base-uri 'none'",
  "connect-src 'self'",
  "default-src 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "img-src 'self' data:",
  "script-src 'self'",
  "style-src 'self'",
];

describe("pages", () => {
  let baseUrl: string;
  before(async () => {
    ({ baseUrl } = await sharedService());
  });

  it("the root leads to the API's page", async () => {
    const { headers, status } = await send(baseUrl, "/");
    expect([status, headers.get("location")]).to.deep.equal([302, "/docs"]);
  });

  it("set-up, invite and docs work under the strict policy: nothing inline or from elsewhere", async () => {
    for (const path of PAGES) {
      const page = await send(baseUrl, path);
      expect([page.status, page.headers.get("content-type")], path).to.deep.equal([
        200,
        "text/html; charset=utf-8",
      ]);
      const html = String(page.body);
      expect(html, path).not.to.match(
        /<style|\sstyle=|\son\w+=|<script(?! src="\/assets\/)|<(img|iframe|object|base)/,
      );
      const loaded = [...html.matchAll(/<(?:script|link)[^>]* (?:src|href)="([^"]+)"/g)].map(
        ([, url]) => url,
      );
      const ours = loaded.filter((url) => url !== undefined && url !== "data:," && !LIBRARY.test(url));
      expect(ASSETS.map(([asset]) => asset as string)).to.include.members(ours);
    }
  });

  it("their script and style are served from here, with their types", async () => {
    for (const [path, type] of ASSETS) {
      const asset = await send(baseUrl, path);
      expect([asset.status, asset.headers.get("content-type")]).to.deep.equal([200, type]);
      expect(asset.headers.get("x-content-type-options")).to.equal("nosniff");
    }
    expect((await send(baseUrl, "/assets/../server/http/pages.ts")).status).to.equal(404);
  });

  it("the API's page is made of files that may be kept for ever, sent compressed where taken", async () => {
    const html = String((await send(baseUrl, "/docs")).body);
    const paths = [...html.matchAll(/ (?:src|href)="([^"]+)"/g)]
      .map(([, url]) => url ?? "")
      .filter((url) => LIBRARY.test(url));
    expect(paths).to.have.lengthOf(2);
    for (const path of paths) {
      const texts = [];
      for (const encoding of ["gzip", "identity"]) {
        const { body, headers, status } = await send(baseUrl, path, {
          headers: { "accept-encoding": encoding },
        });
        expect([status, headers.get("content-encoding")]).to.deep.equal([
          200,
          encoding === "gzip" ? "gzip" : null,
        ]);
        expect(headers.get("cache-control")).to.equal("public, max-age=31536000, immutable");
        expect(headers.get("x-content-type-options")).to.equal("nosniff");
        texts.push(body);
      }
      expect(texts[0]).to.equal(texts[1]);
    }
  });

  it("every field has a label and a place for its error, and no password goes into an address", async () => {
    for (const [path, fields] of [
      ["/setup", ["organizationName", "name", "email", "password"]],
      ["/invite", ["name", "password"]],
    ] as const) {
      const html = String((await send(baseUrl, path)).body);
      expect([...html.matchAll(/<input id="(\w+)"/g)].map(([, id]) => id)).to.deep.equal(fields);
      for (const field of fields) {
        expect(html).to.include(`<label for="${field}">`).and.include(`id="${field}-problem"`);
      }
      expect(html)
        .to.match(/<form method="post"/)
        .and.match(/role="alert"/);
    }
  });

  it("every answer carries the policy, may be kept by nobody, and over http asks for no https", async () => {
    for (const path of [
      ...PAGES,
      "/assets/enter.js",
      "/v1/auth/me",
      "/v1/nothing",
      "/v1/openapi.json",
      "/healthz",
    ]) {
      const { headers } = await send(baseUrl, path);
      const policy = (headers.get("content-security-policy") ?? "").split(";").toSorted();
      expect(policy, path).to.deep.equal(POLICY);
      expect(headers.get("cache-control"), path).to.equal("no-store");
      expect(headers.get("x-frame-options"), path).to.equal("DENY");
      expect(headers.get("referrer-policy"), path).to.equal("no-referrer");
      expect(headers.get("strict-transport-security"), path).to.equal(null);
    }
  });
});
