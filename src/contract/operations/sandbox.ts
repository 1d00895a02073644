import { NETWORK_ENTRIES } from "../../domain/ledger/books.ts";
import { z } from "zod";
import { manages, person } from "../access.ts";
import { define } from "../define.ts";
import { cents, heldCents, paging, paymentCents, timestamp, uuid } from "../primitives.ts";
import { listOf, wallet } from "../records.ts";

/** Operations of the sandbox rails; without these rails the routes are 404. */

export const fundAgentInSandbox = define({
  summary: "Fund an agent's wallet with test money",
  description:
    "Mints test money on the local chain into the agent's wallet, which need not be deployed, and answers once the " +
    "money is there; the event `wallet.funded` follows. Without the sandbox rails the answer is 404.",
  tag: "Sandbox",
  access: manages("never", "agent", { role: "admin" }),
  rate: "standard",
  http: { method: "post", path: "/v1/sandbox/agents/:id/fund", successStatus: 200 },
  params: z.strictObject({ id: uuid }),
  body: z.strictObject({ amountCents: paymentCents }),
  output: z.strictObject({ balanceCents: heldCents, onChainTxHash: z.string() }),
  errors: ["NOT_FOUND", "AGENT_ARCHIVED"],
});

export const depositToTreasury = define({
  summary: "Send test money to the organization's treasury",
  description:
    "Mints test money on the local chain into the treasury, which need not be deployed, and answers with the " +
    "treasury's address once the money is there; the event `funding.deposited` follows. Without the sandbox chain " +
    "the answer is 404.",
  tag: "Sandbox",
  access: person({ role: "admin" }),
  rate: "standard",
  http: { method: "post", path: "/v1/sandbox/treasury/deposit", successStatus: 200 },
  body: z.strictObject({ amountCents: paymentCents }),
  output: z.strictObject({ treasury: wallet, balanceCents: heldCents, onChainTxHash: z.string() }),
  errors: ["NOT_FOUND"],
});

export const failBilling = define({
  summary: "Simulate a failed subscription payment",
  description:
    "Sends the event `billing.payment_failed` as if a payment for the organization's own subscription had failed, " +
    "and changes nothing else. Without the sandbox chain the answer is 404.",
  tag: "Sandbox",
  access: person({ role: "admin" }),
  rate: "standard",
  http: { method: "post", path: "/v1/sandbox/billing/payment-failed", successStatus: 201 },
  output: z.strictObject({
    payment: z.strictObject({
      id: z.string(),
      plan: z.string(),
      reason: z.string(),
      failedAt: timestamp,
    }),
  }),
  errors: ["NOT_FOUND"],
});

export const listCardLedger = define({
  summary: "Read the sandbox card processor's ledger",
  description:
    "One entry per capture or reversal, newest first; a decline has none. Without the sandbox rails the answer is " +
    "404.",
  tag: "Sandbox",
  access: person({ role: "admin" }),
  rate: "standard",
  http: { method: "get", path: "/v1/sandbox/card/ledger", successStatus: 200 },
  query: z.strictObject({ ...paging }),
  output: listOf(
    "entries",
    z.strictObject({
      id: z.string(),
      transactionId: z.string(),
      merchant: z.string(),
      amountCents: cents,
      status: z.enum(NETWORK_ENTRIES),
      createdAt: timestamp,
    }),
  ),
  errors: ["BAD_CURSOR", "NOT_FOUND"],
});
