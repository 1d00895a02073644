import * as fc from "fast-check";
import type { BudgetPolicyPatch } from "../../../src/domain/ledger/policy.ts";
import { DAY, HOUR, MINUTE, SECOND } from "../support/actor.ts";

/** What a random run of a ledger is made of. Picks are places in whatever there is by then. */
export type Action =
  | {
      readonly kind: "pay";
      readonly agent: number;
      readonly amountCents: number;
      /** Under the key of an earlier payment of the agent; null: under a new one. */
      readonly replayOf: number | null;
      readonly otherPayload: boolean;
      readonly key: "own" | "other";
      readonly like: number;
      readonly rules: "none" | "velocity" | "duplicate" | "stale" | "newer";
    }
  | {
      readonly kind: "rail";
      readonly pick: number;
      readonly fate: Fate;
      readonly confirms: boolean;
      /** Of any open payment, also one that was never sent or is over. */
      readonly isAny: boolean;
    }
  | { readonly kind: "confirm"; readonly pick: number }
  | {
      readonly kind: "resolve";
      readonly how: "approve" | "deny" | "cancel" | "expire";
      readonly pick: number;
    }
  | {
      readonly kind: "policy";
      readonly agent: number;
      readonly patch: BudgetPolicyPatch;
      readonly stale: boolean;
    }
  | {
      readonly kind: "life";
      readonly agent: number;
      /** `stop`: paused and its key revoked, with nothing between. */
      readonly change: "pause" | "resume" | "revoke" | "stop" | "mint" | "close" | "old_mint";
    }
  | { readonly kind: "open"; readonly team: number }
  | {
      readonly kind: "project_cap";
      readonly capCents: number | null;
      readonly teamCapCents: number | null;
      readonly stale: boolean;
      readonly isRecorded: boolean;
    }
  | {
      readonly kind: "team_cap";
      readonly team: number;
      readonly capCents: number | null;
      readonly budgetCents: number;
      readonly stale: boolean;
      readonly isRecorded: boolean;
    }
  | { readonly kind: "broken"; readonly team: number; readonly capCents: number }
  /** Of an agent, of a team, or of the project. */
  | { readonly kind: "rules"; readonly agent: number | null; readonly team: number | null }
  | { readonly kind: "ask"; readonly pick: number }
  /** `isOlder`: as the account was before its last change. */
  | { readonly kind: "record"; readonly agent: number; readonly isOlder: boolean }
  | { readonly kind: "wait"; readonly ms: number }
  /** The last command that carried a request's id comes again. */
  | { readonly kind: "again" }
  /** The ledger goes on in a new run. */
  | { readonly kind: "roll_over" };

export type ActionOf<K extends Action["kind"]> = Extract<Action, { readonly kind: K }>;
export type Fate = "settled" | "pending" | "failed" | "withheld";

const pick = fc.nat(40);
const agent = fc.nat(5);
const team = fc.nat(1);
const kindOf = <const K extends string>(kind: K) => fc.constant(kind);
const orNone = (...values: number[]) => fc.constantFrom(null, ...values);

const patch: fc.Arbitrary<BudgetPolicyPatch> = fc.record(
  {
    budgetCents: fc.constantFrom(0, 20, 60, 61, 1_000),
    autoApprovalThresholdCents: orNone(0, 5, 8),
    perTransactionLimitCents: orNone(0, 7, 12),
    dailySpendLimitCents: orNone(0, 20, 40),
    hourlyVelocityLimit: orNone(0, 1, 3, 6),
    dailyVelocityLimit: orNone(0, 3, 12),
  },
  { requiredKeys: [] },
);

const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 18,
    arbitrary: fc.record({
      kind: kindOf("pay"),
      agent,
      amountCents: fc.integer({ min: 1, max: 13 }),
      replayOf: fc.option(pick, { freq: 5 }),
      otherPayload: fc.boolean(),
      key: fc.constantFrom("own", "own", "own", "own", "other"),
      like: fc.nat(2),
      rules: fc.constantFrom("none", "none", "none", "velocity", "duplicate", "stale", "newer"),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: kindOf("rail"),
      pick,
      fate: fc.constantFrom("settled", "settled", "pending", "failed", "withheld"),
      confirms: fc.boolean(),
      isAny: fc.constantFrom(true, false, false, false),
    }),
  },
  { weight: 6, arbitrary: fc.record({ kind: kindOf("confirm"), pick }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: kindOf("resolve"),
      how: fc.constantFrom("approve", "approve", "deny", "cancel", "expire"),
      pick,
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: kindOf("policy"), agent, patch, stale: fc.boolean() }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: kindOf("life"),
      agent,
      change: fc.constantFrom(
        ...(["pause", "resume", "resume", "revoke", "stop", "mint", "mint", "close", "old_mint"] as const),
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: kindOf("open"), team }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: kindOf("project_cap"),
      capCents: orNone(0, 30, 60, 90),
      teamCapCents: orNone(25, 45),
      stale: fc.boolean(),
      isRecorded: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: kindOf("team_cap"),
      team,
      capCents: orNone(0, 25, 45),
      budgetCents: fc.constantFrom(10, 60, 1_000),
      stale: fc.boolean(),
      isRecorded: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: kindOf("broken"), team, capCents: fc.constantFrom(0, 33) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: kindOf("rules"), agent: fc.option(agent), team: fc.option(team) }),
  },
  { weight: 4, arbitrary: fc.record({ kind: kindOf("ask"), pick }) },
  { weight: 3, arbitrary: fc.record({ kind: kindOf("record"), agent, isOlder: fc.boolean() }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: kindOf("wait"),
      ms: fc.constantFrom(1, SECOND, 20 * MINUTE, HOUR, 7 * HOUR, DAY, -20 * MINUTE, -13 * HOUR),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: kindOf("again") }) },
  { weight: 2, arbitrary: fc.record({ kind: kindOf("roll_over") }) },
);

export const runs = fc.array(action, { maxLength: 150, size: "max" });
