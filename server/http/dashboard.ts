import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { type Request, type RequestHandler, type Router, Router as createRouter } from "express";
import { CARD_PAGE, PAGES } from "../../src/client/pages.ts";
import { PACKAGE_ROOT } from "../../src/lib/package-root.ts";
import type { CardElements } from "../../src/payments/card-issuer.ts";
import type { RequestOrigins } from "./request-origins.ts";
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
  /** Answers a browser's navigation to an unknown address with 404 and a page that has the navigation. */
  readonly notFound: RequestHandler;
}

/**
 * Serves the dashboard: one document for every page, whose script renders by address and reads everything else from the
 * API. It is not served under a foreign host name, whose pages could read it. `cardElements`: issuers whose scripts the
 * page of a card admits.
 */
export function dashboard(origins: RequestOrigins, cardElements: readonly CardElements[]): Dashboard {
  const router = createRouter({ caseSensitive: true, strict: true });
  const document = readFileSync(join(BUILT, "index.html"), "utf8");
  const ours: RequestHandler = (request, response, next) => {
    const foreign = origins.refusalOf(request);
    if (foreign === null) next();
    else sendRefusal(response, foreign);
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

/** Redirects to the same address without its trailing slash. */
const withoutSlash: RequestHandler = (request, response) => {
  const query = request.url.indexOf("?");
  response.redirect(301, request.path.slice(0, -1) + (query === -1 ? "" : request.url.slice(query)));
};

/** Whether a browser requests the address as a page. */
const isNavigation = ({ headers, method }: Request): boolean =>
  (method === "GET" || method === "HEAD") && /\btext\/html\b/.test(headers.accept ?? "");

/** Serves a file of the build, read on first use. */
function serve(router: Router, file: string): void {
  const isCompressed = file.endsWith(".gz");
  const name = isCompressed ? file.slice(0, -".gz".length) : file;
  const type = TYPES[extname(name)];
  if (type === undefined) throw new Error(`the content type of ${file} is unknown`);
  let read: Buffer | null = null;
  const bytes = (): Buffer => (read ??= readFileSync(join(BUILT, "assets", file)));
  router.get(`/assets/${name}`, (request, response) => {
    response.type(type).setHeader("Cache-Control", CACHED);
    if (isCompressed) sendCompressed(request, response, bytes());
    else response.send(bytes());
  });
}
