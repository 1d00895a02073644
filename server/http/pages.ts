import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type RequestHandler, type Response, type Router, Router as createRouter } from "express";
import { PACKAGE_ROOT } from "../../src/lib/package-root.ts";
import { APPROVAL_PAGE } from "./approval-page.ts";
import type { Callers } from "./callers.ts";
import { sendRefusal } from "./errors.ts";

const asset = (name: string): string =>
  readFileSync(join(PACKAGE_ROOT, "server", "http", "pages", name), "utf8");

const SCRIPTS = [
  "forms.js",
  "session.js",
  "approval.js",
  "approval-view.js",
  "approval-words.js",
  "reference.js",
];
const STYLES = ["page.css", "approval.css", "reference.css"];

/** The page of one payment on hold. It is not shown under another service's name, which could read what it shows. */
export function pages(callers: Callers): Router {
  const router = createRouter({ caseSensitive: true, strict: true });
  const ours: RequestHandler = (request, response, next) => {
    const stranger = callers.refusalOf(request);
    if (stranger === null) next();
    else sendRefusal(response, stranger);
  };
  router.get("/approvals/:id", ours, send("html", APPROVAL_PAGE));
  for (const name of SCRIPTS) router.get(`/assets/${name}`, send("text/javascript", asset(name)));
  for (const name of STYLES) router.get(`/assets/${name}`, send("text/css", asset(name)));
  return router;
}

const send = (type: string, text: string) => (_request: unknown, response: Response) =>
  void response.type(type).send(text);
