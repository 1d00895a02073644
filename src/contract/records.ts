import { z } from "zod";
import { ERRORS } from "../domain/errors.ts";
import { BREACH_LEVELS, BREACH_LIMITS, STAGES } from "../domain/ledger/books.ts";
import { PROTOCOLS, RAILS } from "../domain/ledger/payment.ts";
import { DENIAL_CODES } from "../domain/ledger/policy.ts";
import { shownLabels } from "./agent-labels.ts";
import { AGENT_TOOLS } from "./tool-names.ts";
import { increases, period, usedSpendLimits } from "./spend-limits.ts";
import { cents, nextCursor, paymentCount, timestamp, uuid } from "./primitives.ts";

/** Records in answers. Strict, so that tests notice a field missing from the contract. */

export const errorBody = z
  .strictObject({
    error: z
      .enum(Object.keys(ERRORS) as [keyof typeof ERRORS, ...(keyof typeof ERRORS)[]])
      .meta({ title: "ErrorCode" }),
    message: z.string(),
    issues: z.array(z.strictObject({ path: z.string(), message: z.string() })).optional(),
    requiredScope: z.string().optional(),
    missing: z.array(z.string()).optional(),
    unknown: z.array(z.string()).optional(),
    organizations: z.array(z.strictObject({ id: uuid, name: z.string() })).optional(),
    challenge: z.string().optional(),
    retry_after_seconds: z.int().optional(),
    requestId: z.string().meta({ description: "The request's id; include it when you report an error." }),
  })
  .meta({ id: "ErrorBody" });

/** Fields of a policy that can be set. Limits are cleared by null, never by omission. */
export const policyFields = {
  budgetCents: cents.meta({ description: "The agent's lifetime budget, in cents." }),
  autoApprovalThresholdCents: cents.nullable().meta({
    description:
      "A payment above this amount, in cents, needs a person's approval. 0: every payment does; null: no amount does.",
  }),
  perTransactionLimitCents: cents.nullable().meta({
    description: "The maximum of one payment, in cents; null: no limit.",
  }),
  dailySpendLimitCents: cents.nullable().meta({
    description: "The maximum spend in a UTC day, in cents; null: no limit.",
  }),
  hourlyVelocityLimit: paymentCount.nullable().meta({
    description:
      "The maximum number of payments in any 60 minutes; one may count up to two minutes longer. Null: no limit.",
  }),
  dailyVelocityLimit: paymentCount.nullable().meta({
    description: "The maximum number of payments in a UTC day; null: no limit.",
  }),
};

export const usage = z.strictObject({
  spentCents: cents,
  reservedCents: cents,
  remainingCents: cents,
  todayCents: cents,
  lastHourCount: paymentCount,
  todayCount: paymentCount,
  increases,
});

export const budgetPolicy = z
  .strictObject({ ...policyFields, spendLimits: usedSpendLimits, version: z.int(), usage })
  .meta({ id: "BudgetPolicy" });

export const keySummary = z.strictObject({
  id: z.string(),
  last4: z.string().meta({ description: "Of a connection, the end of its id." }),
  status: z.enum(["active", "revoked"]),
  kind: z
    .enum(["oauth"])
    .optional()
    .meta({ description: "`oauth`: an MCP client that a person connected; left out for a key." }),
  clientName: z
    .string()
    .optional()
    .meta({ description: "The connected client, by its own word; left out for a key." }),
  tools: z.array(z.string()).nullable().optional().meta({
    description: "The tools that the connected client may use; null: all of the agent's. Left out for a key.",
  }),
  createdAt: timestamp,
  lastUsedAt: timestamp.nullable(),
});

export const wallet = z
  .strictObject({ address: z.string(), chainCaip2: z.string() })
  .meta({ title: "Wallet" });

export const transactionStatus = z.enum(["approved", "pending", "denied", "failed", "reversed", "expired"]);
export const rail = z.enum(RAILS);
export const protocol = z.enum(PROTOCOLS);

const lastPayment = z.strictObject({
  transactionId: z.string(),
  createdAt: timestamp,
  amountCents: cents,
  rail,
  status: transactionStatus,
  merchant: z.string(),
});

export const agent = z
  .strictObject({
    id: uuid,
    name: z.string(),
    ...shownLabels,
    state: z.enum(["active", "paused", "archived"]),
    projectId: uuid,
    teamId: uuid,
    scopes: z.array(z.enum(AGENT_TOOLS).meta({ title: "AgentTool" })).nullable(),
    budgetCents: cents,
    spentCents: cents,
    reservedCents: cents,
    autoApprovalThresholdCents: cents.nullable(),
    wallet: wallet.nullable(),
    key: keySummary.nullable(),
    createdBy: z.strictObject({ type: z.enum(["user", "organization_key"]), id: z.string() }),
    version: z.int(),
    createdAt: timestamp,
    updatedAt: timestamp,
    archivedAt: timestamp.nullable(),
    lastPayment: lastPayment.nullable().optional().meta({
      description:
        "Its newest payment, whatever its status; null: none. Only in a list with `with=lastPayment`.",
    }),
  })
  .meta({ id: "Agent" });

export const denialDetails = z.strictObject({
  limit: z.int(),
  remaining: z.int(),
  resetsAt: timestamp.nullable(),
  period: period.optional().meta({ description: "Only of a spend limit: its period." }),
});

export const denialCode = z.enum(DENIAL_CODES);

const amounts = z.strictObject({
  requestedCents: cents,
  authorizedCents: cents,
  capturedCents: cents,
  creditedCents: cents,
});

const breach = z.strictObject({
  level: z.enum(BREACH_LEVELS),
  limit: z.enum(BREACH_LIMITS),
  overCents: cents,
});

/** Prices on the web are often below a cent, which `amountCents` rounds up. */
export const exactAmount = z.string().meta({
  description: "The exact amount in dollars, with up to five decimals: `12.30`, `0.001`.",
});

export const transaction = z
  .strictObject({
    id: z.string(),
    createdAt: timestamp,
    agentId: uuid,
    agentName: z.string(),
    merchant: z.string(),
    amountCents: cents.meta({
      description: "What it counts with, in cents: what was captured, and until then what was requested.",
    }),
    currency: z.string(),
    direction: z.enum(["debit"]),
    rail,
    status: transactionStatus,
    purpose: z.string(),
    wouldHaveFlagged: z.array(z.string()).optional(),
    denialReason: z.string().nullable(),
    denialCode: denialCode.nullable(),
    denialDetails: denialDetails.nullable(),
    onChainTxHash: z.string().nullable(),
    chainCaip2: z.string().nullable(),
    amounts: amounts.meta({ description: "What became of the amount on the network so far." }),
    stage: z
      .enum(STAGES)
      .nullable()
      .meta({ description: "How far it has come on its network; null: the network has nothing of it." }),
    breach: z.array(breach).nullable().meta({
      description:
        "Limits that the network has exceeded by charging more than was decided, and by how much; null: none.",
    }),
    amount: exactAmount,
    resource: z.string().nullable().meta({ description: "The URL that was paid for; null: none." }),
    protocol: protocol
      .nullable()
      .meta({ description: "The protocol by which the URL was paid for; null: none." }),
    receipt: z.string().nullable().meta({ description: "The seller's receipt; null: there is none." }),
  })
  .meta({ id: "Transaction" });

export const approval = z
  .strictObject({
    id: z.string(),
    transactionId: z.string(),
    agentId: uuid,
    agentName: z.string(),
    teamId: uuid,
    projectId: uuid,
    amountCents: cents,
    currency: z.string(),
    rail,
    recipient: z.string(),
    resource: z.string().nullable().meta({ description: "The URL that is to be paid for; null: none." }),
    amount: exactAmount,
    purpose: z.string(),
    budgetContext: z.strictObject({
      budgetCents: cents,
      spentCents: cents,
      reservedCents: cents,
      remainingCents: cents,
    }),
    flaggedByRuleTypes: z.array(z.string()),
    createdAt: timestamp,
    expiresAt: timestamp,
    resolution: z.enum(["approved", "executing", "denied", "failed", "expired"]).optional(),
    resolvedAt: timestamp.optional(),
    resolvedBy: z.strictObject({ userId: uuid, name: z.string() }).nullable().optional(),
    feedback: z.string().nullable().optional(),
  })
  .meta({ id: "Approval" });

/** Whether people can raise the limits that denied a payment. */
export const raise = z
  .strictObject({
    possible: z
      .boolean()
      .meta({ description: "Whether request_raise (POST /v1/raise-requests) can be of use." }),
    url: z.string().meta({ description: "The page where a person changes the agent's limits." }),
  })
  .nullable()
  .meta({ description: "Of a payment that was not made; null otherwise." });

export const paymentCard = z
  .strictObject({
    last4: z.string(),
    stage: z.enum(STAGES).nullable(),
    readyUntil: timestamp,
    viewUrl: z.string(),
    credential: z.strictObject({ type: z.enum(["spt"]), value: z.string(), expiresAt: timestamp }).nullable(),
  })
  .nullable()
  .meta({
    description:
      "The card that was made for the payment alone. Until `readyUntil` it waits for the merchant's first charge; then the amount is " +
      "released. A person sees number and code at `viewUrl`. Null: there is none, as in the sandbox.",
  });

export const payment = z.strictObject({
  transaction,
  approval: approval.nullable(),
  approvalUrl: z
    .string()
    .nullable()
    .meta({ description: "The page where a person decides, if the payment is on hold." }),
  card: paymentCard,
  raise,
});

export const madePayment = payment.extend({
  replayed: z.boolean(),
  possibleDuplicateOf: z.string().nullable(),
  message: z.string().optional(),
});

const container = {
  id: uuid,
  name: z.string(),
  description: z.string().nullable(),
  color: z.string().nullable(),
  logo: z.string().nullable().meta({ description: "A link to the tile's image; it needs no credential." }),
  createdAt: timestamp,
  archivedAt: timestamp.nullable(),
};
export const project = z.strictObject(container).meta({ id: "Project" });
export const team = z.strictObject({ ...container, projectId: uuid }).meta({ id: "Team" });

/** The part of the organization in which a person acts. */
export const boundTo = z
  .strictObject({
    type: z.enum(["organization", "project", "team"]),
    ids: z.array(uuid).optional(),
  })
  .meta({ title: "BoundTo" });

export const user = z
  .strictObject({
    id: uuid,
    name: z.string(),
    email: z.string(),
    emailVerified: z.boolean(),
    role: z.enum(["owner", "admin", "member", "auditor"]),
    binding: boundTo,
    secondFactors: z.array(z.string()),
    createdAt: timestamp,
  })
  .meta({ id: "User" });

/** A passkey as shown to its person; nothing in it is secret. */
export const passkey = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    credentialId: z.string().meta({ description: "The WebAuthn credential id, base64url." }),
    transports: z.array(z.string()),
    backupEligible: z.boolean().meta({ description: "Whether it may be synced to other devices." }),
    backedUp: z.boolean().meta({ description: "Whether it was synced at its last use." }),
    createdAt: timestamp,
    lastUsedAt: timestamp.nullable(),
    suspectedCloneAt: timestamp.nullable().meta({
      description:
        "When it last signed with a counter that had not advanced, which suggests that it was copied; if so, remove it.",
    }),
  })
  .meta({ id: "Passkey" });

export const organization = z
  .strictObject({
    id: uuid,
    name: z.string(),
    plan: z.enum(["free", "pro", "enterprise"]),
    status: z.enum(["provisioning", "ready"]),
  })
  .meta({ id: "Organization" });

/** Whether a person without a second factor must or should enrol one; null for neither. */
export const secondFactorEnrolment = z.enum(["required", "recommended"]).nullable();

/** Answer to a sign-in. If the browser asked for cookies, they contain the tokens instead of this body. */
export const session = z.strictObject({
  token: z.string().optional(),
  refreshToken: z.string().optional(),
  deviceToken: z.string().optional(),
  expiresAt: timestamp,
  user,
  organization,
  secondFactorEnrolment,
});

/** Value of a policy or decision in an audit entry: any JSON. */
const kept = z.unknown().meta({ description: "Any JSON." });

export const auditEntry = z
  .strictObject({
    version: z.literal(1),
    organizationId: uuid,
    sequence: z.int().min(1).meta({ description: "From 1, without gaps." }),
    at: timestamp,
    action: z.string(),
    actor: z.strictObject({
      type: z.enum(["user", "organization_key", "agent", "system"]),
      id: z.string(),
      keyId: z.string().optional(),
      lineageId: z.string().optional(),
      sessionId: z.string().optional(),
      name: z.string().optional(),
    }),
    resource: z.strictObject({ type: z.string(), id: z.string().nullable() }),
    from: z
      .strictObject({
        address: z.string().nullable(),
        surface: z.enum(["rest", "mcp", "admin", "service"]),
        via: z.string().meta({ description: "The route, the tool or the command." }),
      })
      .nullable(),
    result: z.strictObject({ status: z.int().nullable(), code: z.string().nullable() }),
    before: kept,
    after: kept,
    decision: kept,
    entryKey: z.string(),
    previousHash: z.string(),
    hash: z.string(),
    mac: z.string(),
  })
  .meta({ id: "AuditEntry" });

/** A record named by audit entries, with its current name. */
export const auditName = z
  .strictObject({
    type: z.string().meta({ description: "The kind of record, as in `resource.type`." }),
    id: z.string(),
    name: z
      .string()
      .nullable()
      .meta({
        description:
          "Its name; of a payment its recipient, of an invite its e-mail address. Text that others typed. Null: it does " +
          "not exist any more.",
      }),
    amountCents: z.int().nullable().meta({ description: "A payment's amount; null: it is no payment." }),
  })
  .meta({ id: "AuditName" });

export const listOf = <K extends string, T extends z.ZodType>(plural: K, item: T) =>
  z.strictObject({ [plural]: z.array(item), nextCursor } as { [Key in K]: z.ZodArray<T> } & {
    nextCursor: typeof nextCursor;
  });
