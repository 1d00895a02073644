import { z } from "zod";
import { agentWith, manages, reads } from "../access.ts";
import { define } from "../define.ts";
import {
  agentFilter,
  idempotencyKey,
  ONE_AGENT,
  oneAgent,
  paging,
  paymentCents,
  text,
  timestamp,
  transactionId,
  uuid,
} from "../primitives.ts";
import { listOf } from "../records.ts";
import { lackingLimit, raisedLimit, shortfall } from "../spend-limits.ts";
import { waits } from "../waits.ts";

const status = z.enum(["pending", "granted", "refused", "closed"]).meta({
  description:
    "`granted`: the limits are raised. `closed`: it was granted too late, since the agent was archived or nothing lacked any more.",
});

const asked = {
  id: uuid,
  status,
  amountCents: paymentCents,
  reason: z.string(),
  transactionId: z
    .string()
    .nullable()
    .meta({ description: "The payment that was denied, if one was named." }),
  feedback: z.string().nullable().meta({ description: "Why a person refused it." }),
  createdAt: timestamp,
  resolvedAt: timestamp.nullable(),
};

/** A raise request as shown to its agent, without the limits of others. */
const ownRaiseRequest = z.strictObject({
  ...asked,
  shortfalls: z.array(lackingLimit).meta({ description: "All limits that had no room for the amount." }),
  endsAt: timestamp
    .nullable()
    .meta({ description: "When the first of what was raised ends; null: nothing does." }),
});

const raiseRequest = z
  .strictObject({
    ...asked,
    agentId: uuid,
    agentName: z.string(),
    teamId: uuid,
    projectId: uuid,
    shortfalls: z.array(shortfall).meta({ description: "All limits that had no room for the amount." }),
    raised: z.array(raisedLimit).meta({ description: "What the grant has raised." }),
    resolvedBy: z.strictObject({ userId: uuid, name: z.string() }).nullable(),
  })
  .meta({ id: "RaiseRequest" });

const params = z.strictObject({ id: uuid });
const answer = z.strictObject({ raiseRequest });

export const requestRaise = define({
  summary: "Ask for higher limits",
  description:
    "Asks people to raise every limit, of the agent, its team and its project, that has no room for `amountCents`. One request is " +
    "open at a time (409 RAISE_PENDING), and 5 a day (429). If nothing lacks it is 409 RAISE_NOT_NEEDED. Repeat the " +
    "request with its idempotencyKey to read what became of it (200); with `waitSeconds` the answer waits for the person. Once it is " +
    "`granted`, pay again under a new idempotencyKey: a raise skips no approval and no restriction.",
  tag: "Payments",
  access: agentWith("request_raise"),
  rate: "standard",
  http: { method: "post", path: "/v1/raise-requests", successStatus: 201 },
  tool: {
    name: "request_raise",
    title: "Ask for higher limits",
    hints: { readOnly: false, destructive: false, idempotent: true, openWorld: false },
    idName: null,
  },
  query: waits,
  body: z.strictObject({
    amountCents: paymentCents.meta({ description: "The amount of the payment that is to fit." }),
    reason: text(1, 500).meta({ description: "Why; the person who decides reads it." }),
    transactionId: transactionId
      .optional()
      .meta({ description: "The payment that was denied; left out: none was made." }),
    idempotencyKey,
  }),
  output: z.strictObject({ raiseRequest: ownRaiseRequest, replayed: z.boolean(), url: z.string() }),
  errors: [
    "IDEMPOTENCY_KEY_REQUIRED",
    "IDEMPOTENCY_KEY_REUSED",
    "NOT_FOUND",
    "RAISE_PENDING",
    "RAISE_NOT_NEEDED",
    "RAISE_LIMIT_REACHED",
  ],
});

export const listRaiseRequests = define({
  summary: "List raise requests",
  description: "What agents have asked for, newest first.",
  tag: "Approvals",
  access: reads("agents:read", "list"),
  rate: "standard",
  http: { method: "get", path: "/v1/raise-requests", successStatus: 200 },
  query: z
    .strictObject({
      ...paging,
      ...agentFilter,
      status: status.optional().meta({ description: "Only requests with this status." }),
    })
    .refine(oneAgent, ONE_AGENT),
  output: listOf("raiseRequests", raiseRequest),
  errors: ["BAD_CURSOR"],
});

export const getRaiseRequest = define({
  summary: "Read a raise request",
  description: "One raise request, with what lacked when it was made, and what was raised.",
  tag: "Approvals",
  access: reads("agents:read", "raiseRequest"),
  rate: "standard",
  http: { method: "get", path: "/v1/raise-requests/:id", successStatus: 200 },
  params,
  output: answer,
  errors: ["NOT_FOUND"],
});

export const grantRaiseRequest = define({
  summary: "Grant a raise",
  description:
    "Raises all that lacks now for the amount, at all levels, in one decision. Budgets, caps and the limit per transaction are raised " +
    "for good. Limits of a day or a period are raised until `endsAt`; left out: each until its window ends; both at most 31 days " +
    "ahead; null: for good. If the agent is archived or nothing lacks any more the request is closed, and this is 409. If a limit was set " +
    "meanwhile it is 409 STALE_BUDGET, and the request stays open.",
  tag: "Approvals",
  access: manages("never", "raiseRequest", { role: "admin", stepUp: true }),
  waitsFor: "propagation",
  rate: "standard",
  http: { method: "post", path: "/v1/raise-requests/:id/grant", successStatus: 200 },
  params,
  body: z
    .strictObject({
      endsAt: timestamp
        .nullable()
        .optional()
        .meta({ description: "The end of raises of periods; null: for good; left out: the window's end." }),
    })
    .optional(),
  output: answer,
  errors: [
    "NOT_FOUND",
    "AGENT_ARCHIVED",
    "RAISE_ALREADY_RESOLVED",
    "RAISE_IMPOSSIBLE",
    "RAISE_NOT_NEEDED",
    "STALE_BUDGET",
  ],
});

export const refuseRaiseRequest = define({
  summary: "Refuse a raise",
  description: "Refuses the raise; the agent reads the feedback.",
  tag: "Approvals",
  access: manages("never", "raiseRequest"),
  rate: "standard",
  http: { method: "post", path: "/v1/raise-requests/:id/refuse", successStatus: 200 },
  params,
  body: z.strictObject({
    feedback: text(1, 1_000).meta({ description: "Why; the agent reads it." }),
  }),
  output: answer,
  errors: ["NOT_FOUND", "RAISE_ALREADY_RESOLVED"],
});
