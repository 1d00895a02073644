import { z } from "zod";
import { person } from "../access.ts";
import { define } from "../define.ts";
import { paging, timestamp } from "../primitives.ts";
import { auditEntry, auditName, listOf } from "../records.ts";

/** Form of ids and of action names. */
const named = z.string().regex(/^[A-Za-z0-9_-]{1,100}$/);

const filters = {
  actor: named.optional().meta({ description: "The id of a user, a key or an agent." }),
  resource: named.optional().meta({ description: "The id of the resource." }),
  resourceType: named.optional().meta({ description: "The kind of the resource, such as `team`." }),
  action: named.optional().meta({ description: "Such as `updateAgentBudgetPolicy`." }),
  from: timestamp.optional().meta({ description: "From this time on, inclusive." }),
  to: timestamp.optional().meta({ description: "Before this time." }),
};

/** Auditors may also read what everybody did. */
const readsAll = { ...person({ role: "admin" }), orAuditor: true } as const;

export const listAuditLog = define({
  summary: "List the audit log",
  description:
    "Every write to the organization, including refused ones, and every decision on a payment, newest first: who did " +
    "what to which resource, from where, and with which result; for policies also the values before and after. " +
    "Only entries that are as the service wrote them are shown, so a page may have fewer than `limit`. Filtering by " +
    "an unknown id gives an empty list. `names` has the present names of the records that the entries of the page are by, " +
    "on and about, of at most 1,000 records.",
  tag: "Audit log",
  access: readsAll,
  rate: "standard",
  http: { method: "get", path: "/v1/audit-log", successStatus: 200 },
  query: z.strictObject({ ...paging, ...filters }),
  output: listOf("entries", auditEntry).extend({ names: z.array(auditName) }),
  errors: ["BAD_CURSOR"],
});

export const exportAuditLog = define({
  summary: "Export the audit log",
  description:
    "The same entries as JSON Lines, oldest first, up to the newest entry when the export begins. Each line is an " +
    "entry in the form that its hash is computed from, so the chain can be verified without the service.",
  tag: "Audit log",
  access: readsAll,
  rate: "export",
  http: {
    method: "get",
    path: "/v1/audit-log/export",
    successStatus: 200,
    contentType: "application/x-ndjson",
  },
  query: z.strictObject(filters),
  output: z.string(),
  errors: [],
});

export const verifyAuditLog = define({
  summary: "Verify the audit log",
  description:
    "Verifies up to 5,000 entries of the organization's chain after `after`: whether each is as the service wrote it " +
    "and follows the one before. Continue with `after` = `verifiedTo` until that is `lastSequence`; the last answer " +
    "also covers documents that lie outside of the chain. Nothing is written. Only anchors show whether the end of the chain was removed; the command `verify-audit-log` checks " +
    "those, too.",
  tag: "Audit log",
  access: readsAll,
  rate: "verify",
  http: { method: "get", path: "/v1/audit-log/verification", successStatus: 200 },
  query: z.strictObject({
    after: z.int().min(0).max(Number.MAX_SAFE_INTEGER).default(0).meta({
      description: "The last entry that was verified; 0: from the first.",
    }),
  }),
  output: z.strictObject({
    unbroken: z.boolean().meta({ description: "Whether everything that was checked is intact." }),
    verifiedTo: z.int().meta({ description: "The last entry that is intact." }),
    lastSequence: z.int().meta({ description: "The chain's last entry now." }),
    broken: z
      .strictObject({
        sequence: z.int(),
        problem: z.enum(["changed", "removed", "inserted", "moved", "rewritten", "cut_tail"]),
        detail: z.string().meta({ description: "A description of it." }),
      })
      .nullable()
      .meta({ description: "The first break in the chain; null: none." }),
  }),
  errors: [],
});
