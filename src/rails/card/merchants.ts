import type { NetworkEntry } from "../../domain/ledger/books.ts";

/** Merchants at which the sandbox's network behaves specially. */

/** A network's effect on a payment after its authorization. */
export interface NetworkEffect {
  readonly afterSeconds: number;
  readonly kind: Exclude<NetworkEntry, "authorized">;
  /** Percentage of the requested amount; rounded down to cents. */
  readonly percent: number;
}

export interface MerchantScript {
  /** Percentage captured with the authorization; 0 only authorizes. */
  readonly capturedPercent: number;
  /** Whether the network still holds the uncaptured rest. */
  readonly isOpen: boolean;
  readonly effects: readonly NetworkEffect[];
}

const captured = (percent: number, effects: readonly NetworkEffect[] = []): MerchantScript => ({
  capturedPercent: percent,
  isOpen: false,
  effects,
});

const authorized = (percent: number, effects: readonly NetworkEffect[]): MerchantScript => ({
  capturedPercent: percent,
  isOpen: true,
  effects,
});

const FULL: MerchantScript = captured(100);

export const DECLINES = "sandbox-decline";
/** Merchant whose capture is not final for some seconds. */
export const SETTLES_SLOWLY = "sandbox-slow";
export const SLOW_SETTLEMENT_SECONDS = 3;
/** Merchant with which the connection breaks after the first charge. */
export const LOSES_CONNECTION = "sandbox-flaky";

export const SCRIPTS: Readonly<Record<string, MerchantScript>> = {
  "sandbox-reverse": captured(100, [{ afterSeconds: 1, kind: "refunded", percent: 100 }]),
  "sandbox-partial": captured(50),
  "sandbox-over": captured(120),
  "sandbox-refund": captured(100, [{ afterSeconds: 1, kind: "refunded", percent: 100 }]),
  "sandbox-partial-refund": captured(100, [{ afterSeconds: 1, kind: "refunded", percent: 25 }]),
  "sandbox-several": authorized(40, [
    { afterSeconds: 1, kind: "captured", percent: 30 },
    { afterSeconds: 2, kind: "captured", percent: 20 },
    { afterSeconds: 3, kind: "released", percent: 0 },
  ]),
  "sandbox-late": authorized(0, [
    { afterSeconds: 2, kind: "captured", percent: 100 },
    { afterSeconds: 2, kind: "released", percent: 0 },
  ]),
  "sandbox-uncharged": authorized(0, [{ afterSeconds: 1, kind: "released", percent: 0 }]),
  "sandbox-forced": authorized(0, [
    { afterSeconds: 1, kind: "released", percent: 0 },
    { afterSeconds: 3, kind: "captured", percent: 100 },
  ]),
  "sandbox-refund-reversed": captured(100, [
    { afterSeconds: 1, kind: "refunded", percent: 100 },
    { afterSeconds: 2, kind: "refund_reversed", percent: 100 },
  ]),
  "sandbox-dispute-won": captured(100, [
    { afterSeconds: 1, kind: "disputed", percent: 100 },
    { afterSeconds: 2, kind: "refunded", percent: 100 },
  ]),
  "sandbox-dispute-lost": captured(100, [
    { afterSeconds: 1, kind: "disputed", percent: 100 },
    { afterSeconds: 2, kind: "refunded", percent: 100 },
    { afterSeconds: 3, kind: "dispute_lost", percent: 100 },
  ]),
};

export const scriptOf = (merchant: string): MerchantScript => SCRIPTS[merchant] ?? FULL;
