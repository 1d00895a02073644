import * as fc from "fast-check";
import { maxUint256 } from "viem";

export const ACTORS = ["owner", "spender", "other", "stranger"] as const;
export type Actor = (typeof ACTORS)[number];
export const TOKENS = [0, 1] as const;
export type Token = (typeof TOKENS)[number];

/** Something that someone tries to do with the wallet. */
export type Deed =
  | {
      readonly kind: "spend";
      readonly id: number;
      readonly token: Token;
      readonly to: Recipient;
      readonly amount: bigint;
    }
  | {
      readonly kind: "setLimit";
      readonly token: Token;
      readonly cap: bigint;
      readonly period: bigint;
    }
  | {
      readonly kind: "setCeiling";
      readonly token: Token;
      readonly cap: bigint;
      readonly period: bigint;
    }
  | { readonly kind: "clearCeiling"; readonly token: Token }
  | { readonly kind: "withdraw"; readonly token: Token; readonly to: Recipient; readonly amount: bigint }
  | { readonly kind: "setSpender"; readonly to: "spender" | "other" | "nobody" }
  | { readonly kind: "mint"; readonly token: Token; readonly amount: bigint }
  | { readonly kind: "detach" }
  | { readonly kind: "renounceOwnership" };

export type Recipient = "shop" | "nobody" | "wallet" | "token";

export interface Action {
  /** `entitled`: the party that may do it at that moment, if there is one. */
  readonly by: Actor | "entitled";
  readonly wait: Wait;
  readonly deed: Deed;
}

/** Some seconds, or up to the next time that is a multiple of `edge` and some seconds more or less. */
export type Wait =
  | { readonly kind: "seconds"; readonly seconds: bigint }
  | { readonly kind: "edge"; readonly edge: bigint; readonly offset: bigint };

/** Multiples of each other and not, so that windows end together and apart; one that never ends. */
const PERIODS = [0n, 0n, 10n, 25n, 30n, 30n, 2n ** 64n - 1n];

const token = fc.constantFrom(0, 0, 0, 0, 1) satisfies fc.Arbitrary<Token>;
const amount = fc.oneof(
  { weight: 20, arbitrary: fc.bigInt(1n, 50n) },
  { weight: 1, arbitrary: fc.constantFrom(0n, maxUint256) },
);
const cap = fc.oneof(
  { weight: 12, arbitrary: fc.bigInt(20n, 150n) },
  { weight: 1, arbitrary: fc.constantFrom(0n, maxUint256) },
);
const recipient = fc.oneof(
  { weight: 30, arbitrary: fc.constant("shop" as const) },
  { weight: 1, arbitrary: fc.constantFrom("nobody" as const, "wallet" as const, "token" as const) },
);

const deed: fc.Arbitrary<Deed> = fc.oneof(
  {
    weight: 14,
    arbitrary: fc.record({ kind: fc.constant("spend"), id: fc.nat(24), token, to: recipient, amount }),
  },
  {
    weight: 7,
    arbitrary: fc.record({
      kind: fc.constantFrom("setLimit", "setCeiling"),
      token,
      cap,
      period: fc.constantFrom(...PERIODS),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("clearCeiling"), token }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("withdraw"), token, to: recipient, amount }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("setSpender"),
      to: fc.constantFrom("spender", "other", "nobody"),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("mint"), token, amount: fc.bigInt(1n, 200n) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("detach", "renounceOwnership") }) },
);

/** Mostly none, so that much happens within one window; and often right at the edge of one. */
const wait: fc.Arbitrary<Wait> = fc.oneof(
  { weight: 5, arbitrary: fc.constant({ kind: "seconds", seconds: 0n }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("seconds"), seconds: fc.bigInt(1n, 8n) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("edge"),
      edge: fc.constantFrom(10n, 25n, 30n),
      offset: fc.constantFrom(-1n, 0n, 1n),
    }),
  },
);

const by = fc.oneof(
  { weight: 5, arbitrary: fc.constant("entitled" as const) },
  { weight: 1, arbitrary: fc.constantFrom(...ACTORS) },
);

const STEPS = { minLength: 10, maxLength: 35, size: "max" } as const;

/** What people and thieves do with a wallet, in any order and at any time. */
export const actions: fc.Arbitrary<readonly Action[]> = fc.array(fc.record({ by, wait, deed }), STEPS);
