/** The page that shows a payment's card; its policy lets the issuer's script in. */
export const CARD_PAGE = "/cards/:id";

/** The addresses of the dashboard's pages: the server answers each with the one document, and its script shows what belongs there. */
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
