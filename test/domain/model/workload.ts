import * as fc from "fast-check";
import type { BudgetPolicy, BudgetPolicyPatch } from "../../../src/domain/agent/policy.ts";
import { DAY, HOUR, MINUTE, SECOND } from "../support/actor.ts";
import type { RailScript } from "./world.ts";
import { RAIL_SCRIPT_NAMES } from "./world.ts";

/** What can happen to an agent. `pick` chooses among what is there at that moment. */
export type Action =
  | {
      readonly kind: "pay";
      readonly amountCents: number;
      readonly replayOf: number | null;
      readonly otherPayload: boolean;
      readonly rail: RailScript;
    }
  | {
      readonly kind: "resolve";
      readonly how: "approve" | "deny" | "cancel" | "expire";
      readonly pick: number;
    }
  | { readonly kind: "carry_out"; readonly pick: number }
  | { readonly kind: "arrive"; readonly pick: number; readonly again: boolean }
  | { readonly kind: "rail_step"; readonly pick: number }
  | { readonly kind: "policy"; readonly patch: BudgetPolicyPatch; readonly stale: boolean }
  | { readonly kind: "pause" | "resume" | "record" }
  | { readonly kind: "time"; readonly ms: number };

/** Tight enough that every limit is met, small amounts so that they are met exactly. */
export const initialPolicy: BudgetPolicy = {
  budgetCents: 60,
  autoApprovalThresholdCents: 6,
  perTransactionLimitCents: 12,
  dailySpendLimitCents: 40,
  hourlyVelocityLimit: 6,
  dailyVelocityLimit: 12,
};

const pick = fc.nat(30);
const kindOf = <const K extends string>(kind: K) => fc.constant(kind);
const orNone = (values: readonly number[]) => fc.constantFrom(null, ...values);

const patch: fc.Arbitrary<BudgetPolicyPatch> = fc.record(
  {
    budgetCents: fc.constantFrom(0, 20, 60, 61, 1_000),
    autoApprovalThresholdCents: orNone([0, 5, 6]),
    perTransactionLimitCents: orNone([0, 7, 12]),
    dailySpendLimitCents: orNone([0, 20, 40, 41]),
    hourlyVelocityLimit: orNone([0, 1, 3, 6]),
    dailyVelocityLimit: orNone([0, 3, 12]),
  },
  { requiredKeys: [] },
);

const pay = fc.record({
  kind: kindOf("pay"),
  amountCents: fc.integer({ min: 1, max: 13 }),
  replayOf: fc.option(pick, { freq: 4 }),
  otherPayload: fc.boolean(),
  rail: fc.constantFrom(...RAIL_SCRIPT_NAMES),
});

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 10, arbitrary: pay },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: kindOf("resolve"),
      how: fc.constantFrom("approve", "deny", "cancel", "expire"),
      pick,
    }),
  },
  { weight: 6, arbitrary: fc.record({ kind: kindOf("carry_out"), pick }) },
  { weight: 6, arbitrary: fc.record({ kind: kindOf("arrive"), pick, again: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ kind: kindOf("rail_step"), pick }) },
  { weight: 2, arbitrary: fc.record({ kind: kindOf("policy"), patch, stale: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom("pause", "record") }) },
  { weight: 2, arbitrary: fc.record({ kind: kindOf("resume") }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: kindOf("time"),
      ms: fc.constantFrom(1, SECOND, 20 * MINUTE, HOUR - 1, HOUR, 12 * HOUR, DAY - 1, DAY),
    }),
  },
);

export const workload = fc.array(action, { minLength: 1, maxLength: 80, size: "max" });
