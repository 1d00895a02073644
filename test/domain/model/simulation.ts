import assert from "node:assert/strict";
import type { AgentCommand, AgentReply } from "../../../src/domain/agent/commands.ts";
import { handle } from "../../../src/domain/agent/decide.ts";
import type { PaymentRequest } from "../../../src/domain/agent/payment.ts";
import type { AgentState } from "../../../src/domain/agent/state.ts";
import { initialAgentState } from "../../../src/domain/agent/state.ts";
import { heldCommand, NOON, profile } from "../support/actor.ts";
import { Auditor } from "./auditor.ts";
import type { Action } from "./workload.ts";
import { initialPolicy } from "./workload.ts";
import { World } from "./world.ts";

/** How an actor handles a command, and how it is carried over continue-as-new; mutants replace one of them. */
export interface Subject {
  handle(state: AgentState, command: AgentCommand, now: number): AgentReply;
  rollOver(state: AgentState): AgentState;
}

export function throughJson(state: AgentState): AgentState {
  const copied: AgentState = JSON.parse(JSON.stringify(state));
  return copied;
}

export const realSubject: Subject = { handle, rollOver: throughJson };

/**
 * Plays a workload against an actor under an auditor's eyes. Beside the actor runs its twin, which goes through
 * continue-as-new after every command: both must say and be the same for ever.
 */
export class Simulation {
  readonly #subject: Subject;
  readonly #auditor = new Auditor(initialPolicy);
  readonly #world = new World(() => this.#now);
  readonly #requests: PaymentRequest[] = [];
  readonly #state: AgentState;
  #twin: AgentState;
  #now = NOON;

  constructor(subject: Subject) {
    this.#subject = subject;
    this.#state = initialAgentState(profile, initialPolicy, NOON);
    this.#twin = structuredClone(this.#state);
  }

  run(actions: readonly Action[]): void {
    for (const action of actions) this.#play(action);
    this.#quiesce();
  }

  #do(command: AgentCommand): void {
    const reply = this.#subject.handle(this.#state, command, this.#now);
    const twins = this.#subject.handle(this.#twin, command, this.#now);
    assert.deepEqual(twins, reply, "after continue-as-new the actor answers something else");
    this.#twin = this.#subject.rollOver(this.#twin);
    assert.deepEqual(this.#twin, this.#state, "continue-as-new lost something");
    this.#auditor.observe(command, reply, this.#state, this.#now);
  }

  #play(action: Action): void {
    switch (action.kind) {
      case "pay":
        return this.#pay(action);
      case "resolve":
        return this.#resolve(action.how, this.#idAt(action.pick));
      case "carry_out":
        return this.#carryOut(action.pick);
      case "arrive":
        return this.#arrive(action.pick, action.again);
      case "rail_step":
        return this.#world.advance(this.#idAt(action.pick));
      case "policy": {
        const version = this.#state.policyVersion - (action.stale ? 1 : 0);
        return this.#do({ kind: "change_policy", patch: action.patch, version });
      }
      case "pause":
      case "resume":
        return this.#do({ kind: action.kind });
      case "record":
        return this.#do({ kind: "confirm_summary", revision: this.#state.revision });
      case "time":
        this.#now += action.ms;
    }
  }

  #pay({ amountCents, replayOf, otherPayload, rail }: Extract<Action, { kind: "pay" }>): void {
    const number = this.#requests.length + 1;
    const known = replayOf === null ? undefined : this.#requests[replayOf % Math.max(1, number - 1)];
    const request: PaymentRequest = {
      transactionId: `txn_${number}`,
      approvalId: `apr_${number}`,
      keyHash: known?.keyHash ?? `key-${number}`,
      payloadHash: otherPayload || known === undefined ? `payload-${number}` : known.payloadHash,
      rail: "card",
      amountCents,
      currency: "USD",
      recipient: rail,
      merchantCategory: null,
      purpose: "a test",
    };
    this.#requests.push(request);
    this.#do({ kind: "pay", request, approvalWindowSeconds: 86_400, lookedUpThrough: 0 });
  }

  #resolve(how: "approve" | "deny" | "cancel" | "expire", transactionId: string): void {
    const expiresAt = this.#state.open[transactionId]?.payment.approval?.expiresAt ?? 0;
    // Expiry comes from a timer, so never before the time; and a person may come late.
    if (how !== "expire" || this.#now >= expiresAt) this.#do(heldCommand(how, transactionId));
  }

  #carryOut(pick: number): void {
    const open = Object.values(this.#state.open);
    const found = open[pick % Math.max(1, open.length)];
    if (found !== undefined) this.#world.carryOut(structuredClone(found.payment));
  }

  #arrive(pick: number, again: boolean): void {
    const confirmation = this.#world.arrive(pick, again);
    if (confirmation !== null) this.#do(confirmation);
  }

  #idAt(pick: number): string {
    return this.#requests[pick % Math.max(1, this.#requests.length)]?.transactionId ?? "txn_none";
  }

  /** Lets everything come to its end: windows close, rails finish, sweeps find what was lost on the way. */
  #quiesce(): void {
    while (this.#world.onTheWay.length > 0) this.#arrive(this.#world.onTheWay.length - 1, false);
    this.#now += 2 * 86_400_000;
    for (const { transactionId } of this.#requests) this.#resolve("expire", transactionId);
    for (let round = 0; round < 4; round += 1) {
      for (const { payment } of Object.values(this.#state.open)) {
        this.#world.carryOut(payment);
        this.#arrive(this.#world.onTheWay.length - 1, false);
      }
      for (const id of this.#world.sentIds()) this.#world.advance(id);
    }
    this.#checkEnd();
  }

  /** The actor, the auditor's book, the rail's books and the projection agree to the cent. */
  #checkEnd(): void {
    assert.deepEqual(this.#state.open, {}, "something is open for ever");
    const captured = this.#world.captured();
    const total = [...captured.values()].reduce((sum, cents) => sum + cents, 0);
    const { spentCents, reservedCents } = this.#state.usage;
    assert.deepEqual([spentCents, reservedCents], [total, 0], "spent against what the rail has kept");
    for (const { id, status } of this.#auditor.book.payments.values()) {
      assert.equal(captured.has(id), status === "approved", `${id} is ${status}, and the rail`);
      const record: unknown = JSON.parse(this.#world.recorded(id) ?? "null");
      assert(typeof record === "object" && record !== null && "status" in record, `${id} has no record`);
      assert.equal(record.status, status, `the record of ${id}`);
    }
  }
}
