import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type RequestHandler, type Response, type Router, Router as createRouter } from "express";
import { PACKAGE_ROOT } from "../../src/lib/package-root.ts";
import { APPROVAL_PAGE } from "./approval-page.ts";
import type { Callers } from "./callers.ts";
import { sendRefusal } from "./errors.ts";
import { type Field, fieldOf, pageOf } from "./page-parts.ts";

const asset = (name: string): string =>
  readFileSync(join(PACKAGE_ROOT, "server", "http", "pages", name), "utf8");

const NAME: Field = { name: "name", label: "Your name", type: "text", autocomplete: "name" };
const PASSWORD: Field = {
  name: "password",
  label: "Password",
  type: "password",
  autocomplete: "new-password",
  hint: "At least 12 characters and hard to guess: a few unrelated words make a good one.",
};

const SET_UP = entrance({
  title: "Set up",
  intro: "Make the first organization and become its owner.",
  route: "/v1/setup",
  check: {
    route: "/v1/setup/check",
    used:
      "This link does not work. Copied in part? Open the whole link that the start printed. Used already? Sign in as the owner " +
      "(POST /v1/auth/sign-in), ask an owner or admin for an invite, or have the operator make another organization: " +
      "npm run admin -- create-organization.",
  },
  button: "Set up",
  fields: [
    { name: "organizationName", label: "Organization", type: "text", autocomplete: "organization" },
    NAME,
    { name: "email", label: "E-mail", type: "email", autocomplete: "username" },
    PASSWORD,
  ],
  next: "enrol a second factor (<code>POST /v1/auth/totp</code>), which keys, budgets and members need. The first one is enrolled within 5 minutes of signing in; after that, sign in again. Then create agents.",
});

const INVITE = entrance({
  title: "Join",
  intro: "You were invited to an organization. Choose the name that others see, and a password.",
  route: "/v1/invites/accept",
  button: "Join",
  fields: [NAME, PASSWORD],
  next: "enrol a second factor (<code>POST /v1/auth/totp</code>). The first one is enrolled within 5 minutes of signing in; after that, sign in again.",
});

const SCRIPTS = [
  "enter.js",
  "forms.js",
  "session.js",
  "approval.js",
  "approval-view.js",
  "approval-words.js",
  "reference.js",
];
const STYLES = ["page.css", "approval.css", "reference.css"];

/**
 * The pages that people are led to by a link, until the dashboard has its own. Those of `/setup` and `/invite` have a token in the
 * link's fragment, which no browser sends; the script hands it to the API, which answers the session in cookies. None of them is
 * shown under another service's name, which could read what it shows.
 */
export function pages(callers: Callers): Router {
  const router = createRouter({ caseSensitive: true, strict: true });
  const ours: RequestHandler = (request, response, next) => {
    const stranger = callers.refusalOf(request);
    if (stranger === null) next();
    else sendRefusal(response, stranger);
  };
  router.get("/setup", ours, send("html", SET_UP));
  router.get("/invite", ours, send("html", INVITE));
  router.get("/approvals/:id", ours, send("html", APPROVAL_PAGE));
  for (const name of SCRIPTS) router.get(`/assets/${name}`, send("text/javascript", asset(name)));
  for (const name of STYLES) router.get(`/assets/${name}`, send("text/css", asset(name)));
  return router;
}

const send = (type: string, text: string) => (_request: unknown, response: Response) =>
  void response.type(type).send(text);

interface Entrance {
  readonly title: string;
  readonly intro: string;
  readonly route: string;
  /** Where the link's token is looked at before anybody fills the form in, and what is said if it is not good. */
  readonly check?: { readonly route: string; readonly used: string };
  readonly button: string;
  readonly fields: readonly Field[];
  /** What whoever is signed in now does next. */
  readonly next: string;
}

/** `method="post"`, so that even a browser without the script never puts a password into an address. */
function entrance({ button, check, fields, intro, next, route, title }: Entrance): string {
  return pageOf({
    title,
    script: "enter.js",
    styles: ["page.css"],
    main: `<form method="post" data-route="${route}"${check === undefined ? "" : ` data-check="${check.route}" data-used="${check.used}"`} novalidate>
<p>${intro}</p>
${fields.map(fieldOf).join("\n")}
<button type="submit">${button}</button>
</form>
<section id="done" role="status" tabindex="-1" hidden>
<p>You are signed in as <strong id="who"></strong>, <span id="role"></span> of <strong id="organization"></strong>.</p>
<p>Next: ${next} <a href="/docs">The API's page</a> shows how.</p>
</section>`,
  });
}
