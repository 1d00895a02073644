import { z } from "zod";
import { manages, person } from "../access.ts";
import { define } from "../define.ts";
import { cents, heldCents, paging, paymentCents, timestamp, uuid } from "../primitives.ts";
import { listOf } from "../records.ts";

/** Only while the sandbox rails are on; without them these routes are 404. */

export const fundAgentInSandbox = define({
  summary: "Fund an agent's wallet with test money",
  description:
    "Mints test money on the local chain into the agent's wallet, which needs no deployment for it, and answers once it is " +
    "there. Only while the sandbox rails are on, else 404.",
  tag: "Sandbox",
  access: manages("never", "agent", { role: "admin" }),
  rate: "standard",
  http: { method: "post", path: "/v1/sandbox/agents/:id/fund", successStatus: 200 },
  params: z.strictObject({ id: uuid }),
  body: z.strictObject({ amountCents: paymentCents }),
  output: z.strictObject({ balanceCents: heldCents, onChainTxHash: z.string() }),
  errors: ["NOT_FOUND", "AGENT_ARCHIVED"],
});

export const listCardLedger = define({
  summary: "Read the sandbox card processor's books",
  description:
    "One entry for each effect on the processor's books, newest first: a capture, and a reversal as one of its own; none for " +
    "a decline. Only while the sandbox rails are on, else 404.",
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
      status: z.enum(["captured", "reversed"]),
      createdAt: timestamp,
    }),
  ),
  errors: ["BAD_CURSOR", "NOT_FOUND"],
});
