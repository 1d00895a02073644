import * as fc from "fast-check";
import { MINUTE, SECOND } from "../support/actor.ts";

export type Balance = "zero" | "not_zero" | "unreadable";

/** Who archives an agent: a person, or a key of an organization. */
export type ArchiveBy =
  { readonly type: "user" } | { readonly type: "machine"; readonly own: boolean; readonly balance: Balance };

/** What can happen to an agent. `pick` chooses among the keys that it ever had; beyond them, one that was never its own. */
export type Action =
  | { readonly kind: "authenticate"; readonly pick: number }
  | { readonly kind: "mint" | "revoke" | "mint_again" }
  /** A replay of the create, as a server answers it; and what a server asks whose clock is wrong. */
  | { readonly kind: "replay" | "prove"; readonly own: boolean }
  | { readonly kind: "archive"; readonly by: ArchiveBy }
  | { readonly kind: "rename"; readonly name: string }
  | { readonly kind: "status"; readonly status: "active" | "paused"; readonly isOld: boolean }
  | { readonly kind: "close_window" | "detached" }
  /** Its record, or the ledger, has it as it is now; `behind`: as it was so many revisions ago. */
  | { readonly kind: "recorded" | "followed"; readonly behind: number }
  | { readonly kind: "time"; readonly ms: number }
  /** To so many milliseconds after the end of the window, if that is to come. */
  | { readonly kind: "edge"; readonly plusMs: number }
  | { readonly kind: "roll_over" };

export type ActionOf<K extends Action["kind"]> = Extract<Action, { readonly kind: K }>;

/** An agent, who created it, and all that happens to it. */
export interface Life {
  readonly origin: "machine" | "person";
  readonly actions: readonly Action[];
}

const kindOf = <const K extends string>(...kinds: readonly [K, ...K[]]) => fc.constantFrom(...kinds);

const machine = fc.record({
  type: kindOf("machine"),
  own: fc.constantFrom(true, true, true, false),
  balance: kindOf("zero", "zero", "not_zero", "unreadable"),
});

/** What leaves its keys alone: a machine may archive the agent afterwards. */
const quiet: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ kind: kindOf("replay", "prove"), own: fc.constantFrom(true, true, false) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: kindOf("archive"), by: machine }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: kindOf("status"),
      status: kindOf("active", "paused"),
      isOld: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: kindOf("close_window", "detached", "roll_over") }) },
  { weight: 1, arbitrary: fc.record({ kind: kindOf("rename"), name: fc.constantFrom("A", "B") }) },
  { weight: 3, arbitrary: fc.record({ kind: kindOf("recorded", "followed"), behind: fc.nat(2) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: kindOf("time"),
      ms: fc.constantFrom(1, SECOND, MINUTE, 15 * MINUTE, 30 * MINUTE - 1, 60 * MINUTE),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: kindOf("edge"), plusMs: fc.constantFrom(-SECOND, -1, 0, 1) }),
  },
);

/** What uses the agent, and what people do to it. */
const busy: fc.Arbitrary<Action> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: kindOf("authenticate"), pick: fc.nat(5) }) },
  { weight: 4, arbitrary: fc.record({ kind: kindOf("mint", "revoke", "mint_again") }) },
  { weight: 1, arbitrary: fc.record({ kind: kindOf("archive"), by: fc.record({ type: kindOf("user") }) }) },
);

/** From the create to the archive: a quiet beginning, so that machines' archives succeed often enough, then anything. */
export const lives: fc.Arbitrary<Life> = fc
  .record({
    origin: kindOf("machine", "machine", "machine", "person"),
    begin: fc.array(quiet, { maxLength: 12, size: "max" }),
    rest: fc.array(fc.oneof(quiet, busy), { maxLength: 30, size: "max" }),
  })
  .map(({ begin, origin, rest }) => ({ origin, actions: [...begin, ...rest] }));
