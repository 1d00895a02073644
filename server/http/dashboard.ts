import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { type Request, type RequestHandler, type Router, Router as createRouter } from "express";
import { CARD_PAGE, PAGES } from "../../src/client/pages.ts";
import { PACKAGE_ROOT } from "../../src/lib/package-root.ts";
import type { CardElements } from "../../src/payments/card-issuer.ts";
import type { Callers } from "./callers.ts";
import { CACHED, sendCompressed } from "./compressed.ts";
import { sendRefusal } from "./errors.ts";
import { cardPagePolicy } from "./security-headers.ts";

/** Output of the build of web/ (scripts/build-web.mjs): one document, and files named by their digests. */
const BUILT = join(PACKAGE_ROOT, "dist", "web");

const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css",
  ".js": "text/javascript",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

interface Dashboard {
  readonly pages: Router;
  /** Answers an address that nothing else is at, where a browser opens it: 404 with a page that has the navigation. */
  readonly notFound: RequestHandler;
}

/**
 * The dashboard: each of its pages is the one document, whose script shows what the address says and asks the API for all else. It is
 * not shown under another service's name, which could read what it shows. `cardElements`: issuers' scripts, which the page of a card lets in.
 */
export function dashboard(callers: Callers, cardElements: readonly CardElements[]): Dashboard {
  const router = createRouter({ caseSensitive: true, strict: true });
  const document = readFileSync(join(BUILT, "index.html"), "utf8");
  const ours: RequestHandler = (request, response, next) => {
    const stranger = callers.refusalOf(request);
    if (stranger === null) next();
    else sendRefusal(response, stranger);
  };
  const cardPolicy = cardPagePolicy(cardElements);
  for (const path of PAGES) {
    router.get(path, ours, (_request, response) => {
      if (path === CARD_PAGE) response.setHeader("Content-Security-Policy", cardPolicy);
      response.type("html").send(document);
    });
    if (path !== "/") router.get(`${path}/`, withoutSlash);
  }
  for (const file of readdirSync(join(BUILT, "assets"))) serve(router, file);
  const notFound: RequestHandler = (request, response, next) => {
    if (!isNavigation(request)) return next();
    ours(request, response, () => void response.status(404).type("html").send(document));
  };
  return { pages: router, notFound };
}

/** Redirects to the same address without the slash at the end of its path. */
const withoutSlash: RequestHandler = (request, response) => {
  const query = request.url.indexOf("?");
  response.redirect(301, request.path.slice(0, -1) + (query === -1 ? "" : request.url.slice(query)));
};

/** Whether a browser opens the address as a page. */
const isNavigation = ({ headers, method }: Request): boolean =>
  (method === "GET" || method === "HEAD") && /\btext\/html\b/.test(headers.accept ?? "");

/** Read on first use. */
function serve(router: Router, file: string): void {
  const isCompressed = file.endsWith(".gz");
  const name = isCompressed ? file.slice(0, -".gz".length) : file;
  const type = TYPES[extname(name)];
  if (type === undefined) throw new Error(`the dashboard holds ${file}, which has no type`);
  let read: Buffer | null = null;
  const bytes = (): Buffer => (read ??= readFileSync(join(BUILT, "assets", file)));
  router.get(`/assets/${name}`, (request, response) => {
    response.type(type).setHeader("Cache-Control", CACHED);
    if (isCompressed) sendCompressed(request, response, bytes());
    else response.send(bytes());
  });
}
