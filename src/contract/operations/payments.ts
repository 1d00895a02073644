import { z } from "zod";
import { agentWith } from "../access.ts";
import { spendLimitRests } from "../spend-limits.ts";
import { define } from "../define.ts";
import { cents, heldCents, paging, timestamp, transactionId } from "../primitives.ts";
import {
  budgetPolicy,
  denialCode,
  denialDetails,
  listOf,
  madePayment,
  payment,
  raise,
  transaction,
  transactionStatus,
} from "../records.ts";
import {
  cardPayment,
  checkedPayment,
  ALL_PAYMENT_TOOLS,
  railPayment,
  railTool,
  walletPayment,
} from "../rails.ts";
import { checkedOffer } from "../purchases.ts";
import type { ToolBinding } from "../types.ts";
import { waits } from "../waits.ts";

const params = z.strictObject({ id: transactionId });
const readOnly = { readOnly: true, destructive: false, idempotent: true, openWorld: false } as const;
const pays = { readOnly: false, destructive: true, idempotent: true, openWorld: true } as const;

const tool = (
  name: ToolBinding["name"],
  title: string,
  hints: ToolBinding["hints"] = readOnly,
  idName: ToolBinding["idName"] = null,
): ToolBinding => ({ name, title, hints, idName });

/** Meaning of each status for the caller, and the next step. */
const STATUSES =
  "status `approved`: paid. `pending` with an approval: a person decides until its expiresAt; read the payment again after " +
  "a minute. `pending` with stage `armed`: nothing is charged yet; the payment's own card waits until card.readyUntil, and its " +
  "use is decided by the ledger. `pending` without either: the card network or the chain has not confirmed it yet; read it again after 5 seconds. `denied`, " +
  "`failed` or `expired` (nobody decided in time): not paid, see denialCode and denialReason. `reversed`: paid, and the money was " +
  "returned later; the amount is available again.";

export const createPayment = define({
  summary: "Make a payment",
  description:
    "Decides the payment by the agent's policy and by the caps and rules of its team and project, reserves its amount and " +
    `executes it or holds it for a person's approval. The answer is 201 even if the payment is not made. ${STATUSES} ` +
    "The same idempotencyKey never pays twice: repeating the request answers 200 with the same transaction as it is now. A payment " +
    "under another key is another payment; `possibleDuplicateOf` names an earlier one like it. The answer to a wallet payment " +
    "waits up to 3 seconds for the chain.",
  tag: "Payments",
  access: { kind: "agent", tools: ALL_PAYMENT_TOOLS, toolOf: railTool },
  rate: "standard",
  http: { method: "post", path: "/v1/payments", successStatus: 201 },
  query: waits,
  body: railPayment,
  output: madePayment,
  errors: ["IDEMPOTENCY_KEY_REQUIRED", "IDEMPOTENCY_KEY_REUSED", "RATE_LIMITED"],
});

export const createCardPayment = define({
  summary: "Pay by card",
  tag: "Payments",
  access: agentWith("create_card_payment"),
  rate: "standard",
  tool: tool("create_card_payment", "Pay by card", pays),
  query: waits,
  body: cardPayment,
  output: madePayment,
  errors: ["IDEMPOTENCY_KEY_REQUIRED", "IDEMPOTENCY_KEY_REUSED", "RATE_LIMITED"],
});

export const createWalletPayment = define({
  summary: "Pay from the wallet",
  tag: "Payments",
  access: agentWith("create_wallet_payment"),
  rate: "standard",
  tool: tool("create_wallet_payment", "Pay from the wallet", pays),
  query: waits,
  body: walletPayment,
  output: madePayment,
  errors: ["IDEMPOTENCY_KEY_REQUIRED", "IDEMPOTENCY_KEY_REUSED", "RATE_LIMITED"],
});

export const getWallet = define({
  summary: "Read the wallet",
  tag: "Payments",
  access: agentWith("get_wallet"),
  rate: "standard",
  tool: tool("get_wallet", "Read the wallet"),
  output: z.strictObject({
    address: z.string(),
    chainCaip2: z.string(),
    balanceCents: heldCents,
    pocketCents: heldCents,
    currency: z.literal("USD"),
  }),
  errors: ["NOT_FOUND"],
});

const headroom = z.strictObject({ remainingCents: cents.nullable(), spendLimits: spendLimitRests });
const agentBudget = z.strictObject({
  ...budgetPolicy.shape,
  spendableCents: cents.meta({
    description:
      "The least that any budget, cap and limit of an amount leaves, at all levels; the limit per transaction may be lower.",
  }),
  team: headroom,
  project: headroom,
});

export const checkPayment = define({
  summary: "Check a payment without making it",
  tag: "Payments",
  access: agentWith("check_payment"),
  waitsFor: "shop",
  rate: "standard",
  tool: tool("check_payment", "Check a payment", { ...readOnly, openWorld: true }),
  body: checkedPayment,
  output: z.strictObject({
    decision: z.enum(["approved", "held", "denied"]),
    denialCode: denialCode.nullable(),
    denialReason: z.string().nullable(),
    denialDetails: denialDetails.nullable(),
    flaggedByRuleTypes: z.array(z.string()),
    budget: agentBudget,
    offer: checkedOffer.nullable(),
  }),
  errors: ["PRICE_ABOVE_MAX", "NO_PAYABLE_OFFER", "SHOP_UNREACHABLE"],
});

export const getPayment = define({
  summary: "Read a payment",
  description:
    "One of the agent's own payments as it is now, with its approval request if it was held. " + STATUSES,
  tag: "Payments",
  access: agentWith("get_payment"),
  rate: "standard",
  http: { method: "get", path: "/v1/payments/:id", successStatus: 200 },
  tool: tool("get_payment", "Read a payment", readOnly, "transactionId"),
  params,
  query: waits,
  output: payment,
  errors: ["NOT_FOUND"],
});

export const listPayments = define({
  summary: "List payments",
  description: "The agent's own payments, newest first, each as it is now.",
  tag: "Payments",
  access: agentWith("list_payments"),
  rate: "standard",
  http: { method: "get", path: "/v1/payments", successStatus: 200 },
  tool: tool("list_payments", "List payments"),
  query: z.strictObject({
    ...paging,
    status: transactionStatus
      .optional()
      .meta({ description: "Only payments with this status now; `pending`: on hold or in flight." }),
  }),
  output: listOf("payments", transaction),
  errors: ["BAD_CURSOR"],
});

export const cancelPayment = define({
  summary: "Cancel a payment on hold",
  description:
    "Cancels a payment that waits for approval; its amount is released. Any other is 409 PAYMENT_NOT_CANCELLABLE.",
  tag: "Payments",
  access: agentWith("cancel_payment"),
  rate: "standard",
  http: { method: "post", path: "/v1/payments/:id/cancel", successStatus: 200 },
  tool: tool(
    "cancel_payment",
    "Cancel a payment on hold",
    // Cancelling again is refused, and changes nothing more.
    { readOnly: false, destructive: true, idempotent: true, openWorld: false },
    "transactionId",
  ),
  params,
  output: payment,
  errors: ["NOT_FOUND", "PAYMENT_NOT_CANCELLABLE"],
});

export const getDenialFeedback = define({
  summary: "Why payments were not made",
  tag: "Payments",
  access: agentWith("get_denial_feedback"),
  rate: "standard",
  tool: tool("get_denial_feedback", "Why payments were not made"),
  body: z.strictObject({ transactionId: transactionId.optional() }).optional(),
  output: z.strictObject({
    denials: z.array(
      z.strictObject({
        transactionId: z.string(),
        status: transactionStatus,
        denialCode: denialCode.nullable().meta({ description: "Null for a payment that was reversed." }),
        denialReason: z.string(),
        feedback: z.string().nullable(),
        deniedAt: timestamp.meta({ description: "When it was denied, failed, expired or was reversed." }),
        raise,
      }),
    ),
  }),
  errors: ["NOT_FOUND"],
});

export const getBudget = define({
  summary: "Read the budget",
  tag: "Payments",
  access: agentWith("get_budget"),
  rate: "standard",
  tool: tool("get_budget", "Read the budget"),
  output: agentBudget,
  errors: [],
});
