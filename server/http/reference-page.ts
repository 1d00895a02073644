import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Router, Router as createRouter } from "express";
import { PACKAGE_ROOT } from "../../src/lib/package-root.ts";
import { CACHED, sendCompressed } from "./compressed.ts";

/** Files of Swagger UI, compressed by the build (scripts/build.mjs). */
const LIBRARY = join(PACKAGE_ROOT, "dist", "reference");

const OWN = [
  ["reference.js", "text/javascript"],
  ["reference.css", "text/css"],
] as const;

const LOGO = `<svg aria-hidden="true" width="28" height="28" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#4338ca"/><path d="M16 6.5 24 9.4v6.3c0 5-3.4 8.3-8 9.8-4.6-1.5-8-4.8-8-9.8V9.4zM12.4 15.8l2.6 2.6 4.8-5" fill="none" stroke="#fff" stroke-width="2.2" stroke-linecap="round" stroke-linejoin="round"/></svg>`;

const DIGEST_CHARACTERS = 16;

interface Asset {
  readonly path: string;
  readonly type: string;
  readonly compressed: Buffer;
}

/** Serves `/docs`, the API reference. All of its files are from this service. */
export function referencePage(): Router {
  const router = createRouter({ caseSensitive: true, strict: true });
  const script = asset("swagger-ui-bundle.js", "text/javascript");
  const style = asset("swagger-ui.css", "text/css");
  const page = pageWith(script.path, style.path);
  for (const each of [script, style]) {
    router.get(each.path, (request, response) => {
      response.type(each.type).setHeader("Cache-Control", CACHED);
      sendCompressed(request, response, each.compressed);
    });
  }
  for (const [name, type] of OWN) {
    const text = readFileSync(join(PACKAGE_ROOT, "server", "http", "pages", name), "utf8");
    router.get(`/assets/${name}`, (_request, response) => void response.type(type).send(text));
  }
  router.get("/docs", (_request, response) => void response.type("html").send(page));
  return router;
}

function asset(name: string, type: string): Asset {
  const compressed = readFileSync(join(LIBRARY, `${name}.gz`));
  const digest = createHash("sha256").update(compressed).digest("hex").slice(0, DIGEST_CHARACTERS);
  return { path: `/assets/${digest}/${name}`, type, compressed };
}

const pageWith = (script: string, style: string): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>API reference · Agent Spending Control</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${style}">
<link rel="stylesheet" href="/assets/reference.css">
<script src="${script}" defer></script>
<script src="/assets/reference.js" defer></script></head>
<body><header><a class="brand" href="/">${LOGO} Spending Control</a>
<nav aria-label="Main"><a href="/">Dashboard</a> <a href="/v1/openapi.json">OpenAPI 3.1</a> <a href="/v1/openapi-3.0.json">OpenAPI 3.0</a>
<button id="theme" type="button">Light or dark</button></nav></header>
<noscript><p>This page needs JavaScript. The OpenAPI document holds the same: <a href="/v1/openapi.json">/v1/openapi.json</a></p></noscript>
<div id="reference"></div>
</body></html>
`;
