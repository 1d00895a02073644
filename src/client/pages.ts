/** The page that shows a payment's card; its policy allows the issuer's script. */
export const CARD_PAGE = "/cards/:id";

/** Addresses of the dashboard's pages. The server answers each with the same document, whose script shows the page. */
export const PAGES = [
  "/",
  "/setup",
  "/invite",
  "/sso/:id",
  "/agents",
  "/agents/:id",
  CARD_PAGE,
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
  "/settings/rails",
  "/settings/security",
  "/settings/audit",
] as const;

export type PagePath = (typeof PAGES)[number];
