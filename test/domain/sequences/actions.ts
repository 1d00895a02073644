import type { BudgetPolicy, BudgetPolicyPatch } from "../../../src/domain/agent/policy.ts";

/** What can happen to an agent. `pick` chooses among what is there at that moment. */
export type Action =
  /** `key` null: its key was accepted before, and something has overtaken it since. */
  | {
      readonly kind: "pay";
      readonly amountCents: number;
      readonly replayOf: number | null;
      readonly otherPayload: boolean;
      /** What its rail makes of it. */
      readonly recipient: string;
      readonly key: number | null;
    }
  | {
      readonly kind: "resolve";
      readonly how: "approve" | "deny" | "cancel" | "expire";
      readonly pick: number;
    }
  /** Somebody carries an open payment out, and will tell the actor of it. */
  | { readonly kind: "carry_out"; readonly pick: number }
  /** The actor is told; `again`: once more later. */
  | { readonly kind: "arrive"; readonly pick: number; readonly again: boolean }
  | { readonly kind: "policy"; readonly patch: BudgetPolicyPatch; readonly stale: boolean }
  /** A request with one of the agent's keys, or one that was never its own. */
  | { readonly kind: "authenticate"; readonly pick: number }
  | { readonly kind: "mint" | "revoke"; readonly recorded: number }
  /** A replay of the create, as a server answers it; and what a server asks whose clock is wrong. */
  | { readonly kind: "replay" | "prove"; readonly own: boolean }
  | { readonly kind: "archive"; readonly by: ArchiveBy }
  | { readonly kind: "rename"; readonly name: string }
  | { readonly kind: "pause" | "resume" | "close_window" | "detached" | "record" }
  /** The record's confirmation reaches the actor; `again`: it comes once more later. */
  | { readonly kind: "confirmed"; readonly pick: number; readonly again: boolean }
  | { readonly kind: "time"; readonly ms: number }
  /** To this many milliseconds after the end of the window, or of the approval that ends next, if that is to come. */
  | { readonly kind: "edge"; readonly of: "window" | "approval"; readonly plusMs: number };

export type ActionOf<K extends Action["kind"]> = Extract<Action, { kind: K }>;

export type ArchiveBy =
  | { readonly type: "user" }
  | { readonly type: "machine"; readonly own: boolean; readonly balance: "zero" | "not_zero" | "unreadable" };

/** Who created the agent; `unknown`: an actor from before it knew. */
export type Origin = "machine" | "person" | "unknown";

/** An agent, and all that happens to it. */
export interface Sequence {
  readonly origin: Origin;
  readonly policy: BudgetPolicy;
  readonly approvalWindowSeconds: number;
  readonly actions: readonly Action[];
}
