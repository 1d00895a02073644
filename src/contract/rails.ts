import { z } from "zod";
import type { Rail } from "../domain/ledger/payment.ts";
import {
  categoryCode,
  idempotencyKey,
  paymentCents,
  recipientName,
  text,
  walletAddress,
} from "./primitives.ts";
import { SHOP_METHODS, shopUrl } from "./purchases.ts";
import { rail } from "./records.ts";
import type { AgentTool } from "./tool-names.ts";

/** Payments in the form of each rail. */

const purpose = text(1, 500).meta({
  description: "Why the agent pays; people who decide approvals read it.",
});
const shared = {
  amountCents: paymentCents,
  currency: z.literal("USD").default("USD"),
  merchantCategory: categoryCode
    .optional()
    .meta({ description: "The merchant's category, a four-digit code." }),
};
const card = { merchant: recipientName.meta({ description: "The merchant's name." }) };
const wallet = {
  recipient: walletAddress.meta({ description: "An address on the wallet's chain: 0x and 40 hex digits." }),
};

export const cardPayment = z.strictObject({ ...card, ...shared, purpose, idempotencyKey });
export const walletPayment = z.strictObject({ ...wallet, ...shared, purpose, idempotencyKey });

/** The tool that pays by a rail, and so the scope that the rail's payments need. */
const PAYMENT_TOOLS = {
  card: "create_card_payment",
  wallet: "create_wallet_payment",
} as const satisfies Record<Rail, AgentTool>;

export const RAIL_OF = {
  create_card_payment: "card",
  create_wallet_payment: "wallet",
} as const satisfies Partial<Record<AgentTool, Rail>>;

export const ALL_PAYMENT_TOOLS = [PAYMENT_TOOLS.card, PAYMENT_TOOLS.wallet] as const;

const railOf = z.object({ rail });

/** Returns the tool whose scope a payment's rail needs; null without a valid rail. Checked before the rest. */
export function railTool(body: unknown): (typeof PAYMENT_TOOLS)[Rail] | null {
  const named = railOf.safeParse(body);
  return named.success ? PAYMENT_TOOLS[named.data.rail] : null;
}

/** A payment by the rail that its body names. */
export const railPayment = z.discriminatedUnion("rail", [
  cardPayment.extend({ rail: z.literal(RAIL_OF.create_card_payment) }).meta({ title: "CardPayment" }),
  walletPayment.extend({ rail: z.literal(RAIL_OF.create_wallet_payment) }).meta({ title: "WalletPayment" }),
]);

/** One flat object, since tools do not support unions. The rail determines the recipient; a URL needs nothing else. */
export const checkedPayment = z
  .strictObject({
    rail: rail.optional(),
    merchant: card.merchant.optional(),
    recipient: wallet.recipient.optional(),
    ...shared,
    amountCents: paymentCents.optional(),
    url: shopUrl.optional(),
    method: z
      .enum(SHOP_METHODS)
      .optional()
      .meta({ description: "Of the request to the URL; GET by default." }),
    maxAmountCents: paymentCents.optional().meta({ description: "The most that may be paid for the URL." }),
    purpose: purpose.optional(),
    idempotencyKey: idempotencyKey.optional(),
  })
  .superRefine((value, context) => {
    const kind = value.url !== undefined ? "purchase" : value.rail;
    const issue = (field: string, message: string): void =>
      context.addIssue({ code: "custom", path: [field], message });
    if (kind === undefined) return issue("rail", "is required, or a url");
    for (const field of CHECKED_FIELDS) {
      const isNeeded = NEEDED_FIELDS[kind].some((needed) => needed === field);
      const isTaken = isNeeded || (kind === "purchase" && OF_PURCHASES.has(field));
      if (isNeeded && value[field] === undefined) issue(field, `is required for a ${kind} payment`);
      if (!isTaken && value[field] !== undefined) issue(field, `does not go with a ${kind} payment`);
    }
  });

/** Fields of a dry run that depend on what is checked. */
const CHECKED_FIELDS = [
  "rail",
  "merchant",
  "recipient",
  "amountCents",
  "url",
  "method",
  "maxAmountCents",
] as const;
const NEEDED_FIELDS: Readonly<Record<Rail | "purchase", readonly (typeof CHECKED_FIELDS)[number][]>> = {
  card: ["rail", "merchant", "amountCents"],
  wallet: ["rail", "recipient", "amountCents"],
  purchase: ["url"],
};
const OF_PURCHASES: ReadonlySet<string> = new Set(["method", "maxAmountCents"]);

/** Whether payments by each rail move real money. */
export const railModes = z.strictObject({
  card: z.enum(["sandbox", "test", "real"]).meta({
    description:
      "`sandbox`: card payments are simulated; `test`: an issuer's account in test mode is connected; `real`: one that moves money.",
  }),
  wallet: z.enum(["off", "local", "real"]).meta({
    description:
      "`local`: wallets hold play money on a chain of this machine; `real`: they hold the stablecoin that is configured; " +
      "`off`: no chain is set up.",
  }),
} satisfies Record<Rail, z.ZodType>);

export type RailModes = z.output<typeof railModes>;
