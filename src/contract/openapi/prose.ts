import type { Operation } from "../types.ts";

export const INTRODUCTION = `AI agents that spend real money, under control. Each agent has a wallet, a policy and at most one key; a payment that the policy
does not approve automatically waits for a person.

## Credentials

Every operation lists the credentials that it accepts, always as \`Authorization: Bearer <credential>\`:

- **a person's session**: the token that \`POST /v1/auth/sign-in\` answers; valid for 15 minutes, then refreshed. Some operations need a role, or a
  **step-up** (a second factor, verified within the last 5 minutes);
- **an organization's key**, \`svc_org_live_…\`: for an orchestrator; acts within its scopes and the project or team that it is bound to;
- **an agent's key**, \`sk_svc_live_…\`: makes payments, and nothing else. Over MCP it has the same operations as tools.

## Conventions

- **Money** is integer cents. **Timestamps** are ISO 8601 in UTC. **Ids** are opaque.
- **Lists** are newest first, \`limit\` (1 to 200, by default 50) records in a page; \`nextCursor\` of one page is the \`cursor\` of the next, with the same
  filters, and null on the last page.
- **Fields and parameters that an operation does not name are refused**, so that a misspelt limit is never silently ignored.
- **Idempotency**: what creates or pays takes an \`idempotencyKey\`, generated and stored before the call. When in doubt, repeat the request with the same key: it takes effect once. A replay has the header \`idempotency-replayed: true\`.
- **Versions**: read a resource with its \`version\` and write it back with that version; the answer is 409 if it was changed in between.

## Errors

An error is \`{ "error": CODE, "message": text, "requestId": id }\`, with further fields for some codes. Codes are stable; messages are for people and may change. Each
operation lists the codes of each status. A method that a path does not support is 405 \`METHOD_NOT_ALLOWED\` with \`Allow\`, an unknown path 404 \`NOT_FOUND\`; \`HEAD\` is
answered wherever \`GET\` is, and \`OPTIONS\` by 204 with \`Allow\`. There is no CORS: browsers call the service from its own pages.

## Limits

Every response carries the caller's rate limit: \`x-ratelimit-limit\`, \`x-ratelimit-remaining\`, \`x-ratelimit-reset\`. Beyond the limit it is 429 \`RATE_LIMITED\` with
\`retry-after\`.`;

/** Descriptions of the groups of operations, in reading order. */
export const TAGS: Readonly<Record<Operation["tag"], string>> = {
  Authentication: "Signing in and out, second factors, step-up, sessions.",
  Organization: "The caller's organization and its settings.",
  Members: "The people of the organization, their roles, and invites.",
  "Organization keys": "Credentials of orchestrators: scopes, binding and daily limit.",
  Projects: "Containers of teams, each with a cap and rules that hold payments for approval.",
  Teams: "Containers of agents, each with a cap and rules that hold payments for approval.",
  Agents: "Agents: records, policies, keys, pausing and archiving.",
  Payments: "Making payments with an agent's key.",
  Approvals: "Payments that wait for a person's decision, and past decisions.",
  Transactions: "The payments of all agents, in every status.",
  Changes: "Changes as they happen, for pages that show them.",
  Webhooks: "Signed events, delivered to the organization's own endpoints.",
  "Audit log": "Who did what, as a hash chain, so that tampering can be detected.",
  Sandbox: "Test money and the sandbox card processor's ledger; only with the sandbox rails.",
};
