/** The addresses of the dashboard's pages: the server answers each with the one document, and its script shows what belongs there. */
export const PAGES = [
  "/",
  "/setup",
  "/invite",
  "/sso/:id",
  "/agents",
  "/agents/:id",
  "/connect/:id",
  "/approvals",
  "/approvals/:id",
  "/transactions",
  "/projects",
  "/projects/:id",
  "/teams/:id",
  "/settings/organization",
  "/settings/keys",
  "/settings/members",
  "/settings/webhooks",
  "/settings/webhooks/:id",
  "/settings/security",
  "/settings/audit",
] as const;

export type PagePath = (typeof PAGES)[number];
