import * as fc from "fast-check";
import { FATES, recipientOf } from "../../../scripts/simulation/counterparts.ts";
import type { BudgetPolicy, BudgetPolicyPatch } from "../../../src/domain/agent/policy.ts";
import { DAY, HOUR, MINUTE, openPolicy, SECOND } from "../support/actor.ts";
import type { Action, ActionOf, Sequence } from "./actions.ts";

/** Tight enough that every limit is met, small amounts so that they are met exactly. */
const tightPolicy: BudgetPolicy = {
  budgetCents: 60,
  autoApprovalThresholdCents: 6,
  perTransactionLimitCents: 12,
  dailySpendLimitCents: 40,
  hourlyVelocityLimit: 6,
  dailyVelocityLimit: 12,
};
const loosePolicy: BudgetPolicy = { ...openPolicy, budgetCents: 60, autoApprovalThresholdCents: 6 };

const kindOf = <const K extends string>(...kinds: readonly [K, ...K[]]) => fc.constantFrom(...kinds);
const orNone = (values: readonly number[]) => fc.constantFrom(null, ...values);
const pick = fc.nat(30);
/** Of what there are a few of. */
const pickOfFew = fc.nat(9);

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

const recipient = fc
  .record({ fate: fc.constantFrom(...FATES), afterMs: fc.constantFrom(0, SECOND, 20 * MINUTE, 12 * HOUR) })
  .map(recipientOf);

const payBy = (key: fc.Arbitrary<number | null>): fc.Arbitrary<ActionOf<"pay">> =>
  fc.record({
    kind: kindOf("pay"),
    amountCents: fc.integer({ min: 1, max: 13 }),
    replayOf: fc.option(pick, { freq: 4 }),
    otherPayload: fc.boolean(),
    recipient,
    key,
  });

const resolve: fc.Arbitrary<Action> = fc.record({
  kind: kindOf("resolve"),
  how: kindOf("approve", "deny", "cancel", "expire"),
  pick,
});
const carryOut: fc.Arbitrary<Action> = fc.record({ kind: kindOf("carry_out"), pick });
const arrive: fc.Arbitrary<Action> = fc.record({ kind: kindOf("arrive"), pick, again: fc.boolean() });
const policy: fc.Arbitrary<Action> = fc.record({ kind: kindOf("policy"), patch, stale: fc.boolean() });
const record: fc.Arbitrary<Action> = fc.record({ kind: kindOf("record") });
const confirmed: fc.Arbitrary<Action> = fc.record({
  kind: kindOf("confirmed"),
  pick: pickOfFew,
  again: fc.boolean(),
});
const time = (...ms: readonly number[]): fc.Arbitrary<Action> =>
  fc.record({ kind: kindOf("time"), ms: fc.constantFrom(...ms) });

const toEdge = (
  ...of: readonly ["window" | "approval", ...("window" | "approval")[]]
): fc.Arbitrary<Action> =>
  fc.record({ kind: kindOf("edge"), of: fc.constantFrom(...of), plusMs: fc.constantFrom(-SECOND, -1, 0, 1) });

/** Payments against every limit, with all that may become of them. */
const paying: fc.Arbitrary<Action> = fc.oneof(
  { weight: 10, arbitrary: payBy(fc.constant(null)) },
  { weight: 5, arbitrary: resolve },
  { weight: 6, arbitrary: carryOut },
  { weight: 6, arbitrary: arrive },
  { weight: 2, arbitrary: policy },
  { weight: 2, arbitrary: fc.record({ kind: kindOf("pause") }) },
  { weight: 3, arbitrary: fc.record({ kind: kindOf("resume") }) },
  { weight: 1, arbitrary: record },
  { weight: 1, arbitrary: confirmed },
  { weight: 1, arbitrary: toEdge("approval") },
  { weight: 4, arbitrary: time(1, SECOND, 20 * MINUTE, HOUR - 1, HOUR, 12 * HOUR, DAY - 1, DAY) },
);

const payments: fc.Arbitrary<Sequence> = fc.record({
  origin: kindOf("person"),
  policy: fc.constant(tightPolicy),
  approvalWindowSeconds: fc.constantFrom(3_600, 86_400),
  actions: fc.array(paying, { minLength: 1, maxLength: 80, size: "max" }),
});

const machine = fc.record({
  type: kindOf("machine"),
  own: fc.constantFrom(true, true, true, false),
  balance: kindOf("zero", "zero", "not_zero", "unreadable"),
});

/** What leaves keys and money alone: a machine may archive the agent afterwards. */
const quiet: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ kind: kindOf("replay", "prove"), own: fc.constantFrom(true, true, false) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: kindOf("archive"), by: machine }) },
  { weight: 3, arbitrary: fc.record({ kind: kindOf("pause", "resume", "close_window", "record") }) },
  { weight: 1, arbitrary: fc.record({ kind: kindOf("detached") }) },
  { weight: 1, arbitrary: fc.record({ kind: kindOf("rename"), name: fc.constantFrom("A", "B") }) },
  { weight: 2, arbitrary: confirmed },
  { weight: 2, arbitrary: time(1, SECOND, MINUTE, 15 * MINUTE, 30 * MINUTE - 1, HOUR) },
  { weight: 3, arbitrary: toEdge("window", "window", "approval") },
);

/** What uses the agent, and what people do to its keys. */
const busy: fc.Arbitrary<Action> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: kindOf("authenticate"), pick: pickOfFew }) },
  { weight: 4, arbitrary: payBy(fc.option(pickOfFew, { freq: 3 })) },
  { weight: 3, arbitrary: resolve },
  { weight: 2, arbitrary: carryOut },
  { weight: 2, arbitrary: arrive },
  { weight: 1, arbitrary: toEdge("approval") },
  { weight: 3, arbitrary: fc.record({ kind: kindOf("mint", "revoke"), recorded: pickOfFew }) },
  { weight: 1, arbitrary: fc.record({ kind: kindOf("archive"), by: fc.record({ type: kindOf("user") }) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: kindOf("policy"),
      patch: fc.record({ budgetCents: fc.constantFrom(10, 30, 60) }),
      stale: fc.constant(false),
    }),
  },
);

/** From the create to the archive: a quiet beginning, so that machines' archives succeed often enough, then anything. */
const lives: fc.Arbitrary<Sequence> = fc
  .record({
    origin: kindOf("machine", "machine", "machine", "machine", "person", "unknown"),
    begin: fc.array(quiet, { maxLength: 12, size: "max" }),
    rest: fc.array(fc.oneof(quiet, busy), { maxLength: 30, size: "max" }),
  })
  .map(({ begin, origin, rest }) => ({
    origin,
    policy: loosePolicy,
    // Past the end of the delivery's window for what is held late in it.
    approvalWindowSeconds: 25 * 60,
    actions: [...begin, ...rest],
  }));

export const sequences: fc.Arbitrary<Sequence> = fc.oneof(payments, lives);
