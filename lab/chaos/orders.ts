import type { Random } from "../random.ts";
import type { Shop } from "./shop.ts";
import type { PayingAgent } from "./tenant.ts";

/** Accounts that are paid on the chain. Only this run uses them. */
export const RECIPIENTS = [
  "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
  "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
  "0x90F79bf6EB2c4f870365E785982E1f101E93b906",
] as const;

export const MERCHANTS = ["Paper & Pens", "Cloud Hosting", "Conference Inc"] as const;
/** Merchants at which the sandbox processor behaves specially. */
const ODD_MERCHANTS = ["sandbox-flaky", "sandbox-decline", "sandbox-partial", "sandbox-over"] as const;
/**
 * Merchants that act after a while. The sandbox uses its process's clock: where that is wrong by minutes, so is the
 * delay.
 */
const LATER_MERCHANTS = [
  "sandbox-slow",
  "sandbox-reverse",
  "sandbox-partial-refund",
  "sandbox-several",
  "sandbox-late",
  "sandbox-uncharged",
  "sandbox-forced",
  "sandbox-refund-reversed",
  "sandbox-dispute-won",
  "sandbox-dispute-lost",
] as const;

const PURCHASE_SHARE = 0.2;
const WALLET_SHARE = 0.5;
const ODD_SHARE = 0.4;
const AMOUNT_MAX_CENTS = 900;
const ODD_AMOUNT_MIN_CENTS = 10;

/** A payment that a client wants, under one idempotency key for good. */
export interface Order {
  readonly agent: PayingAgent;
  readonly key: string;
  readonly rail: "card" | "wallet";
  /** The merchant, the account on the chain, or a shop's. */
  readonly to: string;
  readonly amountCents: number;
  /** URL of the purchase; null: it is none. */
  readonly url: string | null;
}

export interface OrderOptions {
  readonly random: Random;
  readonly agents: readonly PayingAgent[];
  readonly shop: Pick<Shop, "payTo" | "urlOf">;
  readonly key: string;
  /** Whether the services' clocks stay right. */
  readonly areClocksCorrect: boolean;
}

/** Makes up orders, each under a key of its own. */
export function newOrder({ agents, areClocksCorrect, key, random, shop }: OrderOptions): Order {
  const agent = random.pick(agents);
  const amountCents = random.between(1, AMOUNT_MAX_CENTS);
  // A signature of a clock that is minutes off is over before it can be settled.
  if (areClocksCorrect && random.chance(PURCHASE_SHARE)) {
    const url = shop.urlOf(key, amountCents);
    return { agent, key, rail: "wallet", to: shop.payTo, amountCents, url };
  }
  if (random.chance(WALLET_SHARE)) {
    return { agent, key, rail: "wallet", to: random.pick(RECIPIENTS), amountCents, url: null };
  }
  const odd = areClocksCorrect ? [...ODD_MERCHANTS, ...LATER_MERCHANTS] : ODD_MERCHANTS;
  if (!random.chance(ODD_SHARE))
    return { agent, key, rail: "card", to: random.pick(MERCHANTS), amountCents, url: null };
  // Of a few cents a network's parts would be nothing.
  const divisibleCents = Math.max(ODD_AMOUNT_MIN_CENTS, amountCents);
  return { agent, key, rail: "card", to: random.pick(odd), amountCents: divisibleCents, url: null };
}

/** A card payment that needs nobody's consent. */
export function plainOrder({ agents, key, random }: OrderOptions): Order {
  const agent = random.pick(agents.filter(({ isPlain }) => isPlain));
  const amountCents = random.between(1, AMOUNT_MAX_CENTS);
  return { agent, key, rail: "card", to: random.pick(MERCHANTS), amountCents, url: null };
}

/** The request's body; the same each time that the order is sent. */
export const bodyOf = ({ amountCents, key, rail, to, url }: Order): Readonly<Record<string, unknown>> => ({
  ...(url === null
    ? { rail, amountCents, ...(rail === "card" ? { merchant: to } : { recipient: to }) }
    : { url, maxAmountCents: amountCents }),
  purpose: "chaos",
  idempotencyKey: key,
});
