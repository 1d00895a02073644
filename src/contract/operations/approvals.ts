import { z } from "zod";
import { manages, person, reads } from "../access.ts";
import { define } from "../define.ts";
import {
  agentFilter,
  approvalId,
  atMost,
  cents,
  ONE_AGENT,
  oneAgent,
  paging,
  text,
  uuid,
} from "../primitives.ts";
import { approval, errorBody, listOf, transaction } from "../records.ts";

const params = z.strictObject({ id: approvalId });
const query = z
  .strictObject({ ...paging, ...agentFilter, projectId: uuid.optional(), teamId: uuid.optional() })
  .refine(oneAgent, ONE_AGENT);
const answer = z.strictObject({ approval });

const listed = reads("agents:read", "list");
const decides = manages("never", "approval");

export const listPendingApprovals = define({
  summary: "List pending approvals",
  description: "The approval requests that wait for a person's decision, newest first.",
  tag: "Approvals",
  access: listed,
  rate: "standard",
  http: { method: "get", path: "/v1/approvals/pending", successStatus: 200 },
  query,
  output: listOf("approvals", approval),
  errors: ["BAD_CURSOR"],
});

export const listCompletedApprovals = define({
  summary: "List completed approvals",
  description: "The completed approval requests with their resolutions, newest first.",
  tag: "Approvals",
  access: listed,
  rate: "standard",
  http: { method: "get", path: "/v1/approvals/completed", successStatus: 200 },
  query,
  output: listOf("approvals", approval),
  errors: ["BAD_CURSOR"],
});

export const getApproval = define({
  summary: "Read an approval",
  description:
    "One approval request, pending or completed. A pending request has no `resolution`; it expires at `expiresAt`.",
  tag: "Approvals",
  access: reads("agents:read", "approval"),
  rate: "standard",
  http: { method: "get", path: "/v1/approvals/:id", successStatus: 200 },
  params,
  output: answer,
  errors: ["NOT_FOUND"],
});

const level = z.strictObject({
  limitCents: cents
    .nullable()
    .meta({ description: "The budget of an agent, the cap of a team or project; null: none." }),
  spentCents: cents,
  reservedCents: cents.meta({
    description:
      "What payments in flight and on hold have reserved; a pending payment's own amount is in it.",
  }),
  remainingCents: cents.nullable().meta({
    description: "What remains if this payment is approved; its amount is already reserved. Null: no limit.",
  }),
  remainingIfDeniedCents: cents.nullable().meta({
    description:
      "What remains if it is denied; null: no limit. Equal to `remainingCents` once it is resolved.",
  }),
});

export const getApprovalContext = define({
  summary: "Read an approval's context",
  description:
    "The budgets of the payment's agent, team and project as they are now, what an approval would leave of each, and " +
    "the agent's last 10 payments before this one, newest first.",
  tag: "Approvals",
  access: reads("agents:read", "approval"),
  rate: "standard",
  http: { method: "get", path: "/v1/approvals/:id/context", successStatus: 200 },
  params,
  output: z.strictObject({
    agent: level,
    team: level,
    project: level,
    lastPayments: z.array(transaction).meta({ description: "Newest first, at most 10." }),
  }),
  errors: ["NOT_FOUND"],
});

export const approveApproval = define({
  summary: "Approve a payment on hold",
  description:
    "Send no body, or an empty object. The payment is checked against the hard limits again and executed. The answer " +
    "waits a few seconds for the result: resolution `approved`, `executing` while it is not finished, or `failed` " +
    "with the transaction's denialCode.",
  tag: "Approvals",
  access: decides,
  rate: "standard",
  http: { method: "post", path: "/v1/approvals/:id/approve", successStatus: 200 },
  params,
  output: answer,
  errors: ["NOT_FOUND", "APPROVAL_ALREADY_RESOLVED", "APPROVAL_EXPIRED"],
});

const feedback = text(1, 1_000).meta({ description: "Why; the agent reads it with get_denial_feedback." });

export const denyApproval = define({
  summary: "Deny a payment on hold",
  description:
    "Denies the payment and releases its amount. The agent reads the feedback with get_denial_feedback.",
  tag: "Approvals",
  access: decides,
  rate: "standard",
  http: { method: "post", path: "/v1/approvals/:id/deny", successStatus: 200 },
  params,
  body: z.strictObject({ feedback }),
  output: answer,
  errors: ["NOT_FOUND", "APPROVAL_ALREADY_RESOLVED", "APPROVAL_EXPIRED"],
});

const DECISIONS_MAX = 200;

const decision = z
  .strictObject({
    id: approvalId,
    decision: z.enum(["approve", "deny"]).meta({ description: "Whether the payment is made." }),
    feedback: feedback.optional().meta({
      description: "Why it is denied, which is required; the agent reads it with get_denial_feedback.",
    }),
  })
  .refine((each) => each.decision === "approve" || each.feedback !== undefined, {
    path: ["feedback"],
    error: "is required to deny",
  });

const namesEachOnce = (decisions: readonly { readonly id: string }[]): boolean =>
  new Set(decisions.map(({ id }) => id)).size === decisions.length;

export const decideApprovals = define({
  summary: "Decide many payments on hold",
  description:
    "Approves and denies 1 to 200 payments on hold, each as if by a call of its own: one that is refused does not keep the " +
    "others from being decided. The answer has a result for each in the same order, with its approval or its error. A " +
    "result SERVICE_UNAVAILABLE may have been decided all the same: read the approval before you repeat it. A denial " +
    "without feedback, or an approval that is named twice, makes the whole call 400.",
  tag: "Approvals",
  access: person(),
  rate: "standard",
  http: { method: "post", path: "/v1/approvals/decisions", successStatus: 200 },
  body: z.strictObject({
    decisions: atMost(DECISIONS_MAX, decision)
      .refine((decisions) => decisions.length > 0, "must not be empty")
      .refine(namesEachOnce, "must not name one approval twice")
      .meta({ minItems: 1, description: "One for each approval." }),
  }),
  output: z.strictObject({
    results: z
      .array(
        z.strictObject({
          id: z.string(),
          approval: approval.optional(),
          error: errorBody.optional().meta({ description: "Why it was not decided." }),
        }),
      )
      .meta({ description: "In the order of the decisions." }),
  }),
  errors: [],
});
