import { expect } from "chai";
import { cookieNames } from "../../src/contract/cookies.ts";
import { sharedService } from "../support/service.ts";
import { send } from "../support/wire.ts";

/** Of the dashboard's pages one with an id in it, and those that a link leads to. */
const DASHBOARD = ["/", "/setup", "/invite", "/agents/any", "/approvals/any", "/settings/keys"];
const PAGES = [...DASHBOARD, "/docs"];
const SCRIPT = "text/javascript; charset=utf-8";
const STYLE = "text/css; charset=utf-8";
const ASSETS = [
  ["/assets/reference.js", SCRIPT],
  ["/assets/reference.css", STYLE],
] as const;
/** Of the API's page, at paths of their bytes' digests. */
const LIBRARY = /^\/assets\/[0-9a-f]{16}\/swagger-ui(-bundle)?\.(js|css)$/;
/** Of the dashboard, whose names have digests. */
const BUILT = /^\/assets\/[\w-]+-[\w-]{8}\.(js|css|svg)$/;

const POLICY = [
  "base-uri 'none'",
  "connect-src 'self'",
  "default-src 'none'",
  "font-src 'self'",
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

  const loadedBy = async (page: string, which: RegExp) => {
    const html = String((await send(baseUrl, page)).body);
    return [...html.matchAll(/ (?:src|href)="([^"]+)"/g)]
      .map(([, url]) => url ?? "")
      .filter((url) => which.test(url));
  };

  it("the dashboard's are one document, whatever is asked for on them; nothing else is", async () => {
    const document = (await send(baseUrl, "/")).body;
    for (const path of [...DASHBOARD, "/agents?state=paused", "/agents/%3Cscript%3E"]) {
      const page = await send(baseUrl, path, {
        headers: { cookie: `${cookieNames(baseUrl).session}=a.b.c` },
      });
      expect([page.status, page.body, page.headers.getSetCookie()], path).to.deep.equal([200, document, []]);
    }
    for (const path of ["/nowhere", "/Agents", "/agents/a/b", "/settings", "/agents/%", "/index.html"]) {
      expect((await send(baseUrl, path)).status, path).to.equal(404);
    }
    const headers = { accept: "text/html,application/xhtml+xml;q=0.9" };
    for (const path of ["/nowhere", "/Agents", "/agents/a/b", "/agents/%"]) {
      const lost = await send(baseUrl, path, { headers });
      expect([lost.status, lost.body], path).to.deep.equal([404, document]);
    }
    expect((await send(baseUrl, "/v1/nowhere", { headers })).body).to.include({ error: "NOT_FOUND" });
    for (const [path, leadsTo] of [
      ["/agents/", "/agents"],
      ["/agents/a%2Fb/?x=/", "/agents/a%2Fb?x=/"],
    ] as const) {
      const { headers: sent, status } = await send(baseUrl, path);
      expect([status, sent.get("location")]).to.deep.equal([301, leadsTo]);
    }
    for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
      const { body, status } = await send(baseUrl, "/agents", { method });
      expect([404, 405], method).to.include(status);
      expect(String(body), method).not.to.include("<");
    }
  });

  it("all work under the strict policy: nothing inline or from elsewhere", async () => {
    for (const path of PAGES) {
      const page = await send(baseUrl, path);
      expect([page.status, page.headers.get("content-type")], path).to.deep.equal([
        200,
        "text/html; charset=utf-8",
      ]);
      const html = String(page.body);
      expect(html, path).not.to.match(
        /<style|\sstyle=|\son\w+=|<script(?![^>]* src="\/assets\/)|<(img|iframe|object|base)/,
      );
      const loaded = [...html.matchAll(/<(?:script|link)[^>]* (?:src|href)="([^"]+)"/g)].map(
        ([, url]) => url,
      );
      // No picture of their own, said so that no browser looks for one.
      const ours = loaded.filter(
        (url) => url !== undefined && url !== "data:," && !LIBRARY.test(url) && !BUILT.test(url),
      );
      expect(ASSETS.map(([asset]) => asset as string)).to.include.members(ours);
    }
  });

  it("their scripts and styles are served from here, with their types, and load only each other", async () => {
    for (const [path, type] of ASSETS) {
      const asset = await send(baseUrl, path);
      expect([asset.status, asset.headers.get("content-type")]).to.deep.equal([200, type]);
      expect(asset.headers.get("x-content-type-options")).to.equal("nosniff");
      const imported = [...String(asset.body).matchAll(/from "\.\/([^"]+)"/g)].map(([, name]) => name);
      expect(ASSETS.map(([name]) => name as string)).to.include.members(
        imported.map((name) => `/assets/${name}`),
      );
    }
    expect((await send(baseUrl, "/assets/../server/http/pages.ts")).status).to.equal(404);
  });

  it("are made of files that may be kept for ever, sent compressed where taken", async () => {
    const [library, built] = [await loadedBy("/docs", LIBRARY), await loadedBy("/", BUILT)];
    const paths = [...library, ...built];
    expect([library.length, built.length >= 3]).to.deep.equal([2, true]);
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

  it("load at most 250 kB of compressed script before the dashboard shows", async () => {
    const html = String((await send(baseUrl, "/")).body);
    const scripts = [...html.matchAll(/ (?:src|href)="([^"]+\.js)"/g)].map(([, url]) => url ?? "");
    expect(scripts).not.to.deep.equal([]);
    const bytes = await Promise.all(
      scripts.map(async (path) => {
        const { headers } = await send(baseUrl, path, { headers: { "accept-encoding": "gzip" } });
        return Number(headers.get("content-length"));
      }),
    );
    expect(bytes.reduce((sum, each) => sum + each, 0)).to.be.within(50_000, 250_000);
  });

  it("every answer carries the policy, may not be cached, and over http asks for no https", async () => {
    for (const path of [
      ...PAGES,
      "/assets/reference.js",
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
