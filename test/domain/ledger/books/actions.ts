import * as fc from "fast-check";
import type { BudgetPolicyPatch } from "../../../../src/domain/ledger/policy.ts";
import { DAY, HOUR, SECOND } from "../../support/actor.ts";

/** Steps of a random run. Picks are places in whatever there is by then. */
export type BooksAction =
  | { readonly kind: "pay"; readonly agent: number; readonly mc: number }
  | {
      readonly kind: "request";
      readonly pick: number;
      readonly authorization: number;
      readonly mc: number;
      readonly how: RequestWay;
    }
  | {
      readonly kind: "effect";
      readonly pick: number;
      readonly authorization: number;
      readonly mc: number;
      readonly what: NetworkAct;
    }
  | {
      readonly kind: "read";
      readonly pick: number;
      /** Versions by which each authorization's report is behind. */
      readonly behind: readonly number[];
      /** Whether it comes in steps, with other things between them. */
      readonly isSlow: boolean;
    }
  | { readonly kind: "step"; readonly pick: number; readonly isLost: boolean }
  | { readonly kind: "policy"; readonly agent: number; readonly patch: BudgetPolicyPatch }
  | { readonly kind: "account"; readonly agent: number; readonly change: "pause" | "resume" | "archive" }
  | { readonly kind: "records" }
  | { readonly kind: "roll_over" }
  | { readonly kind: "restore" }
  | { readonly kind: "wait"; readonly ms: number };

/** `stands_in`: the network grants what nobody was asked for. `lost`: our answer does not arrive, and it declines or stands in. */
export type RequestWay = "asked" | "twice" | "late" | "lost" | "lost_stands_in" | "stands_in";
export type NetworkAct =
  "capture" | "capture_and_close" | "release_part" | "close" | "refund" | "recall" | "dispute";

export interface BooksScene {
  /** Whether all amounts are whole cents. */
  readonly isWhole: boolean;
  readonly caps: { readonly project: number | null; readonly team: number | null };
  readonly actions: readonly BooksAction[];
}

const pick = fc.nat(11);
const agent = fc.nat(2);
const authorization = fc.nat(2);
const mc = fc.oneof(fc.integer({ min: 1, max: 60_000 }), fc.constantFrom(1, 500, 20_000, 40_000));
const few = fc.integer({ min: 1, max: 15_000 });
const limit = fc.option(fc.integer({ min: 10, max: 120 }), { nil: null });

const patch: fc.Arbitrary<BudgetPolicyPatch> = fc.record(
  {
    budgetCents: fc.integer({ min: 10, max: 150 }),
    perTransactionLimitCents: limit,
    dailySpendLimitCents: limit,
  },
  { requiredKeys: [] },
);

const action: fc.Arbitrary<BooksAction> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("pay"), agent, mc: fc.oneof(mc, few) }) },
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant("request"),
      pick,
      authorization,
      mc: fc.oneof(mc, few, few, fc.constant(0)),
      how: fc.constantFrom("asked", "asked", "asked", "twice", "late", "lost", "lost_stands_in", "stands_in"),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("effect"),
      pick,
      authorization,
      mc,
      what: fc.constantFrom(
        "capture",
        "capture_and_close",
        "release_part",
        "close",
        "refund",
        "recall",
        "dispute",
      ),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("read"),
      pick,
      behind: fc.array(fc.oneof(fc.constant(0), fc.nat(3)), { minLength: 3, maxLength: 3 }),
      isSlow: fc.boolean(),
    }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("step"), pick, isLost: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("policy"), agent, patch }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("account"),
      agent,
      change: fc.constantFrom("pause", "resume", "resume", "archive"),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("records") }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("roll_over") }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restore") }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("wait"), ms: fc.constantFrom(SECOND, HOUR, 10 * HOUR, DAY) }),
  },
);

export const booksScenes: fc.Arbitrary<BooksScene> = fc.record({
  isWhole: fc.boolean(),
  caps: fc.record({ project: limit, team: limit }),
  actions: fc.array(action, { minLength: 10, maxLength: 60, size: "max" }),
});
