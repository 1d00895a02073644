import * as fc from "fast-check";
import { HOUR, MINUTE, SECOND } from "../support/actor.ts";

/** What can happen in an agent's life. `pick` chooses among what is there at that moment. */
export type Action =
  /** A request with one of the agent's keys, or one that was never its own. */
  | { readonly kind: "authenticate"; readonly pick: number }
  /** `pick` null: its key was accepted before, and something has overtaken it since. */
  | {
      readonly kind: "pay";
      readonly amountCents: number;
      readonly pick: number | null;
      readonly replayOf: number | null;
    }
  | {
      readonly kind: "resolve";
      readonly how: "approve" | "deny" | "cancel" | "expire";
      readonly pick: number;
    }
  | { readonly kind: "settle"; readonly pick: number; readonly fails: boolean }
  | { readonly kind: "mint" | "revoke"; readonly recorded: number }
  /** A replay of the create, as a server answers it; and what a server asks whose clock is wrong. */
  | { readonly kind: "replay" | "prove"; readonly own: boolean }
  | { readonly kind: "archive"; readonly by: ArchiveBy }
  | { readonly kind: "rename"; readonly name: string }
  | { readonly kind: "policy"; readonly budgetCents: number }
  | { readonly kind: "pause" | "resume" | "close_window" | "detached" | "record" | "roll_over" }
  /** The record's confirmation reaches the actor; `again`: it comes once more later. */
  | { readonly kind: "confirmed"; readonly pick: number; readonly again: boolean }
  | { readonly kind: "time"; readonly ms: number }
  /** To this many milliseconds after the end of the window, or of the approval that ends next, if that is to come. */
  | { readonly kind: "edge"; readonly of: "window" | "approval"; readonly plusMs: number };

export type ArchiveBy =
  | { readonly type: "user" }
  | { readonly type: "machine"; readonly own: boolean; readonly balance: "zero" | "not_zero" | "unreadable" };

/** Who created the agent; `unknown`: an actor from before it knew. */
export type Origin = "machine" | "person" | "unknown";

export interface Life {
  readonly origin: Origin;
  readonly actions: readonly Action[];
}

const pick = fc.nat(9);
const kindOf = <const K extends string>(...kinds: readonly [K, ...K[]]) => fc.constantFrom(...kinds);
const machine = fc.record({
  type: kindOf("machine"),
  own: fc.constantFrom(true, true, true, false),
  balance: fc.constantFrom("zero" as const, "zero" as const, "not_zero" as const, "unreadable" as const),
});
const own = fc.constantFrom(true, true, false);

/** What leaves keys and money alone: a machine may archive the agent afterwards. */
const quiet: fc.Arbitrary<Action> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: kindOf("replay", "prove"), own }) },
  { weight: 3, arbitrary: fc.record({ kind: kindOf("archive"), by: machine }) },
  { weight: 3, arbitrary: fc.record({ kind: kindOf("pause", "resume", "close_window", "record") }) },
  { weight: 1, arbitrary: fc.record({ kind: kindOf("roll_over", "detached") }) },
  { weight: 1, arbitrary: fc.record({ kind: kindOf("rename"), name: fc.constantFrom("A", "B") }) },
  { weight: 2, arbitrary: fc.record({ kind: kindOf("confirmed"), pick, again: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: kindOf("time"),
      ms: fc.constantFrom(1, SECOND, MINUTE, 15 * MINUTE, 30 * MINUTE - 1, HOUR),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: kindOf("edge"),
      of: kindOf("window", "window", "approval"),
      plusMs: fc.constantFrom(-SECOND, -1, 0, 1),
    }),
  },
);

const busy: fc.Arbitrary<Action> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: kindOf("authenticate"), pick }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: kindOf("pay"),
      amountCents: fc.integer({ min: 1, max: 12 }),
      pick: fc.option(pick, { freq: 3 }),
      replayOf: fc.option(pick, { freq: 1 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: kindOf("resolve"),
      how: kindOf("approve", "deny", "cancel", "expire"),
      pick,
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: kindOf("settle"), pick, fails: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ kind: kindOf("mint", "revoke"), recorded: pick }) },
  { weight: 1, arbitrary: fc.record({ kind: kindOf("archive"), by: fc.record({ type: kindOf("user") }) }) },
  { weight: 1, arbitrary: fc.record({ kind: kindOf("policy"), budgetCents: fc.constantFrom(10, 30, 60) }) },
);

/** A quiet beginning, so that machines' archives succeed often enough, then anything. */
export const life: fc.Arbitrary<Life> = fc
  .record({
    origin: kindOf("machine", "machine", "machine", "machine", "person", "unknown"),
    begin: fc.array(quiet, { maxLength: 12, size: "max" }),
    rest: fc.array(fc.oneof(quiet, busy), { maxLength: 30, size: "max" }),
  })
  .map(({ begin, origin, rest }) => ({ origin, actions: [...begin, ...rest] }));
