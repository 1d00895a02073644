import type { Auditor } from "../../../scripts/simulation/audit/auditor.ts";
import { LineBroken, Processor, Records } from "../../../scripts/simulation/counterparts.ts";
import type { AgentCommand } from "../../../src/domain/agent/commands.ts";
import type { Leave } from "../../../src/domain/agent/leave.ts";
import { type Payment, type RailOutcome, settle } from "../../../src/domain/agent/payment.ts";
import { type AgentProfile, type AgentState, summarize } from "../../../src/domain/agent/state.ts";

type Confirmation = Extract<AgentCommand, { kind: "confirm" }>;

/**
 * What stands around the actor: a rail with books of its own, and those who carry payments out and write records down, whose
 * confirmations get lost, delayed, doubled and reordered on the way.
 */
export class Executors {
  readonly records: Records;
  readonly processor: Processor;
  readonly onTheWay: Confirmation[] = [];
  readonly #profile: AgentProfile;
  readonly #clock: { readonly now: number };
  /** Revisions of the agent's record that are written and not confirmed. */
  readonly #recorded: number[] = [];

  constructor(profile: AgentProfile, clock: { readonly now: number }, auditor: Auditor) {
    this.#profile = profile;
    this.#clock = clock;
    this.records = new Records(auditor);
    this.processor = new Processor(clock, auditor);
  }

  /** Somebody carries a payment out as he knows it, and as he has leave to; his confirmation is then on the way. */
  carryOut(payment: Payment, leave: Leave | null): void {
    const at = this.#clock.now;
    try {
      const outcome = this.#outcome(payment, leave);
      const isDone = payment.phase !== "sending" || outcome !== null;
      const after = outcome === null ? payment : settle(payment, outcome, at);
      this.records.writePayment(this.#profile, after);
      this.onTheWay.push({
        kind: "confirm",
        transactionId: payment.request.transactionId,
        revision: isDone ? after.revision : 0,
        outcome: outcome === null ? null : { result: outcome, at },
      });
    } catch (error) {
      if (!(error instanceof LineBroken)) throw error;
    }
  }

  #outcome(payment: Payment, leave: Leave | null): RailOutcome | null {
    if (leave === "send") return this.processor.charge(payment);
    if (leave === "withdraw") return this.processor.withhold(payment);
    return this.processor.query(payment.request.transactionId);
  }

  /** Takes a confirmation that is on the way, or leaves it there to arrive again. */
  arrive(pick: number, again: boolean): Confirmation | null {
    return taken(this.onTheWay, pick, again);
  }

  /** Somebody writes the agent's record down. */
  record(state: AgentState): void {
    const summary = summarize(state);
    this.records.writeAgent(this.#profile.agentId, summary);
    this.#recorded.push(summary.revision);
  }

  recorded(pick: number, again: boolean): number | null {
    return taken(this.#recorded, pick, again);
  }
}

function taken<T>(items: T[], pick: number, again: boolean): T | null {
  const index = pick % Math.max(1, items.length);
  const found = items[index];
  if (found !== undefined && !again) items.splice(index, 1);
  return found ?? null;
}
