import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Response, type Router, Router as createRouter } from "express";
import { PACKAGE_ROOT } from "../../src/lib/package-root.ts";

const asset = (name: string): string =>
  readFileSync(join(PACKAGE_ROOT, "server", "http", "pages", name), "utf8");

interface Field {
  readonly name: string;
  readonly label: string;
  readonly type: "text" | "email" | "password";
  readonly autocomplete: string;
  readonly hint?: string;
}

const NAME: Field = { name: "name", label: "Your name", type: "text", autocomplete: "name" };
const PASSWORD: Field = {
  name: "password",
  label: "Password",
  type: "password",
  autocomplete: "new-password",
  hint: "At least 12 characters and hard to guess: a few unrelated words make a good one.",
};

const SET_UP = page({
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
  next: "enrol a second factor (<code>POST /v1/auth/totp</code>), which keys, budgets and members need; then create agents.",
});

const INVITE = page({
  title: "Join",
  intro: "You were invited to an organization. Choose the name that others see, and a password.",
  route: "/v1/invites/accept",
  button: "Join",
  fields: [NAME, PASSWORD],
  next: "enrol a second factor (<code>POST /v1/auth/totp</code>).",
});

/**
 * The two pages that a link with a token leads to, until the dashboard has its own. The token is in the link's fragment,
 * which no browser sends; the script hands it to the API, which answers the session in cookies.
 */
export function pages(): Router {
  const router = createRouter({ caseSensitive: true, strict: true });
  const script = asset("enter.js");
  const style = asset("page.css");
  router.get("/setup", send("html", SET_UP));
  router.get("/invite", send("html", INVITE));
  router.get("/assets/enter.js", send("text/javascript", script));
  router.get("/assets/page.css", send("text/css", style));
  router.get("/assets/reference.js", send("text/javascript", asset("reference.js")));
  router.get("/assets/reference.css", send("text/css", asset("reference.css")));
  return router;
}

const send = (type: string, text: string) => (_request: unknown, response: Response) =>
  void response.type(type).send(text);

interface Page {
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
function page({ button, check, fields, intro, next, route, title }: Page): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Agent Spending Control</title>
<link rel="stylesheet" href="/assets/page.css">
<script src="/assets/enter.js" defer></script></head>
<body class="enter"><main>
<h1>${title}</h1>
<noscript><p class="error">This page needs JavaScript.</p></noscript>
<p id="problem" class="error" role="alert" tabindex="-1" hidden></p>
<form method="post" data-route="${route}"${check === undefined ? "" : ` data-check="${check.route}" data-used="${check.used}"`} novalidate>
<p>${intro}</p>
${fields.map(field).join("\n")}
<button type="submit">${button}</button>
</form>
<section id="done" role="status" tabindex="-1" hidden>
<p>You are signed in as <strong id="who"></strong>, <span id="role"></span> of <strong id="organization"></strong>.</p>
<p>Next: ${next} <a href="/docs">The API's page</a> shows how.</p>
</section>
</main></body></html>`;
}

function field({ autocomplete, hint, label, name, type }: Field): string {
  const about = hint === undefined ? `${name}-problem` : `${name}-hint ${name}-problem`;
  return `<div><label for="${name}">${label}</label>
<input id="${name}" name="${name}" type="${type}" autocomplete="${autocomplete}" required aria-describedby="${about}">
${hint === undefined ? "" : `<p id="${name}-hint" class="hint">${hint}</p>`}
<p id="${name}-problem" class="error" hidden></p></div>`;
}
