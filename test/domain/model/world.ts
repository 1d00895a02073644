import assert from "node:assert/strict";
import type { AgentCommand } from "../../../src/domain/agent/commands.ts";
import type { Payment, RailOutcome } from "../../../src/domain/agent/payment.ts";
import { settle } from "../../../src/domain/agent/payment.ts";

/** What a rail does with a payment, one step after another; the last one stays. */
export const RAIL_SCRIPTS = {
  instant: [{ status: "settled", final: true }],
  declined: [{ status: "failed", code: "CARD_DECLINED", reason: "Declined." }],
  slow: [{ status: "pending" }, { status: "settled", final: true }],
  bounced: [{ status: "pending" }, { status: "failed", code: "INSUFFICIENT_FUNDS", reason: "Empty." }],
  reversed: [{ status: "settled", final: false }, { status: "reversed" }],
  cleared: [{ status: "pending" }, { status: "settled", final: false }, { status: "settled", final: true }],
} as const satisfies Record<string, readonly RailOutcome[]>;

export type RailScript = keyof typeof RAIL_SCRIPTS;
export const RAIL_SCRIPT_NAMES = ["instant", "declined", "slow", "bounced", "reversed", "cleared"] as const;

type Confirmation = Extract<AgentCommand, { kind: "confirm" }>;

interface RailEntry {
  readonly script: readonly RailOutcome[];
  readonly amountCents: number;
  step: number;
}

/**
 * What stands around the actor: a rail with books of its own, executors that carry payments out and whose
 * confirmations get lost, delayed, doubled and reordered on the way, and the projection that they write.
 */
export class World {
  readonly #rail = new Map<string, RailEntry>();
  readonly #projection = new Map<string, Map<number, string>>();
  readonly #clock: () => number;
  readonly onTheWay: Confirmation[] = [];

  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** One executor carries a payment out as it knows it; its confirmation is then on the way. */
  carryOut(payment: Payment): void {
    const { request, phase } = payment;
    const outcome = phase === "sending" ? this.#send(payment) : this.#query(request.transactionId);
    const at = this.#clock();
    const after = outcome === null ? payment : settle(payment, outcome, at);
    this.#project(after);
    this.onTheWay.push({
      kind: "confirm",
      transactionId: request.transactionId,
      revision: after.revision,
      outcome: outcome === null ? null : { result: outcome, at },
    });
  }

  /** The rail goes on with a payment, if it has it. */
  advance(transactionId: string): void {
    const entry = this.#rail.get(transactionId);
    if (entry !== undefined) entry.step = Math.min(entry.step + 1, entry.script.length - 1);
  }

  /** Removes a confirmation on the way, or leaves it there to arrive again. */
  arrive(index: number, again: boolean): Confirmation | null {
    const found = this.onTheWay[index % Math.max(1, this.onTheWay.length)];
    if (found !== undefined && !again) this.onTheWay.splice(this.onTheWay.indexOf(found), 1);
    return found ?? null;
  }

  sentIds(): string[] {
    return [...this.#rail.keys()];
  }

  /** Cents that the rail has taken and kept, by transaction. */
  captured(): Map<string, number> {
    const entries = [...this.#rail].filter(([, entry]) => entry.script[entry.step]?.status === "settled");
    return new Map(entries.map(([id, entry]) => [id, entry.amountCents]));
  }

  /** The record of a payment, as the newest revision that was written says. */
  recorded(transactionId: string): string | undefined {
    const revisions = this.#projection.get(transactionId);
    return revisions?.get(Math.max(...revisions.keys()));
  }

  #send({ request }: Payment): RailOutcome | null {
    const { transactionId, amountCents, recipient } = request;
    if (!this.#rail.has(transactionId)) {
      this.#rail.set(transactionId, { script: scriptOf(recipient), amountCents, step: 0 });
    }
    return this.#query(transactionId);
  }

  #query(transactionId: string): RailOutcome | null {
    const entry = this.#rail.get(transactionId);
    return entry?.script[entry.step] ?? null;
  }

  /** Writes a record down. Two executors may write the same revision; they must mean the same by it. */
  #project({ request, revision, status, phase, approval }: Payment): void {
    const { transactionId } = request;
    const revisions = this.#projection.get(transactionId) ?? new Map<number, string>();
    const record = JSON.stringify({ status, phase, resolution: approval?.resolution ?? null });
    const before = revisions.get(revision) ?? record;
    assert.equal(record, before, `revision ${revision} of ${transactionId} was written as two things`);
    this.#projection.set(transactionId, revisions.set(revision, record));
  }
}

function scriptOf(recipient: string): readonly RailOutcome[] {
  const name = RAIL_SCRIPT_NAMES.find((script) => script === recipient);
  assert(name !== undefined, `no script for ${recipient}`);
  return RAIL_SCRIPTS[name];
}
