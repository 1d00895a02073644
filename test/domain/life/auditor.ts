import assert from "node:assert/strict";
import type { AgentCommand, AgentReply } from "../../../src/domain/agent/commands.ts";
import { type AgentState, type AgentSummary, summarize } from "../../../src/domain/agent/state.ts";
import type { LifecycleEvent } from "../../../src/domain/events.ts";
import type { LifeModel } from "./model.ts";

/** A reply in the model's few words. */
function wordsOf(reply: AgentReply): string {
  switch (reply.kind) {
    case "decided": {
      const { approval, denial } = reply.decision;
      return `decided ${denial?.code ?? (approval === null ? "sent" : "held")}`;
    }
    case "replayed":
      return `replayed ${reply.transactionId}`;
    case "payment":
      return `payment ${reply.changed} ${reply.payment.status}`;
    case "policy":
      return `policy ${reply.policyVersion}`;
    case "lifecycle":
      return `${reply.lifecycle} ${reply.changed}`;
    case "authenticated":
      return `authenticated ${reply.accepted}`;
    case "key":
      return `key ${reply.keyId}`;
    case "non_delivery":
      return `window over ${reply.windowOver}, proven ${reply.proven}`;
    case "archive":
      return `archive ${reply.changed}`;
    case "archive_refused":
      return `refused ${reply.code}`;
    default:
      return reply.kind;
  }
}

/** Holds an actor's answers and its state against the model, command by command, and the journal at the end. */
export class LifeAuditor {
  readonly #model: LifeModel;
  /** Which of the changes that happened each event's id belongs to. */
  readonly #ids = new Map<string, number>();
  readonly #journal = new Map<string, string>();
  /** What each revision of the record shows. */
  readonly #shown = new Map<number, string>();
  #highestRevision = 0;

  constructor(model: LifeModel) {
    this.#model = model;
  }

  /** Throws at the first thing that is wrong; answers what the actor was expected to say. */
  observe(command: AgentCommand, reply: AgentReply, state: AgentState, now: number): string {
    const expected = this.#model.answer(command, now);
    const words = wordsOf(reply);
    if (words !== expected) assert.fail(`${command.kind} was answered "${words}", not "${expected}"`);
    this.#checkKeys(state);
    this.#checkLife(state);
    this.#checkMoney(state);
    this.#checkOutbox(state.outbox ?? []);
    this.#checkRecord(state);
    return words;
  }

  /** Somebody writes the record down, with what it tells of. */
  journal({ events }: AgentSummary): void {
    for (const event of events) {
      const text = JSON.stringify(event);
      assert.equal(this.#journal.get(event.id) ?? text, text, "an event was told as two things");
      this.#journal.set(event.id, text);
    }
  }

  /** Everything that happened is in the journal exactly once, in its order, and nothing else is. */
  checkEnd(state: AgentState): void {
    assert.deepEqual(state.outbox ?? [], [], "an event stays in the outbox for ever");
    const told = [...this.#journal.values()].map((text) => {
      const { at, type }: LifecycleEvent = JSON.parse(text);
      return { type, at };
    });
    assert.deepEqual(told, this.#model.happened, "the journal against what happened");
  }

  #checkKeys({ access }: AgentState): void {
    const model = this.#model;
    if (access === undefined) return assert.equal(model.origin, "unknown", "an actor forgot its keys");
    same(access.activeKeyId, model.activeKeyId(), "the active key");
    same(access.authenticatedAt, model.authenticatedAt, "when a key was first used");
    if (model.origin === "unknown") return;
    same(access.touchedByPerson, model.touchedByPerson, "whether a person touched its keys");
    same(access.bundled?.provenAt ?? null, model.provenAt, "the proof of non-delivery");
    same(access.bundled?.erased ?? false, model.erased, "whether the first key is erased");
    if (model.provenAt !== null) assert(model.provenAt >= model.until, "proven in the window");
  }

  #checkLife(state: AgentState): void {
    const model = this.#model;
    same(state.lifecycle, model.lifecycle, "the lifecycle");
    same(state.profile.name, model.name, "the name");
    same(state.walletDetached ?? false, model.detached, "whether the wallet is detached");
    same(state.archivedAt !== undefined, model.lifecycle === "archived", "when it was archived");
    const wasUsed = model.authenticatedAt !== null || model.payments.length > 0;
    assert(!(wasUsed && model.archivedBy === "organization_key"), "used, and archived by a machine");
  }

  #checkMoney({ lifecycle, open, usage }: AgentState): void {
    same(usage.spentCents, this.#model.sum("approved"), "spent against the sum over the payments");
    same(usage.reservedCents, this.#model.sum("pending"), "reserved against the sum over the payments");
    for (const { payment } of Object.values(open)) {
      const { transactionId } = payment.request;
      same(payment.status, this.#model.statusOf(transactionId), `the status of ${transactionId}`);
    }
    if (lifecycle !== "archived") return;
    const held = Object.values(open).filter(({ payment }) => payment.phase === "held");
    same(held.length, 0, "on hold at an archived agent");
  }

  /** The outbox is the end of what happened, and its beginning is in the journal: nothing is lost, made up or doubled. */
  #checkOutbox(outbox: readonly LifecycleEvent[]): void {
    const { happened } = this.#model;
    const first = happened.length - outbox.length;
    assert(first >= 0, "an event for a change that did not happen");
    assert(first <= this.#journal.size, "an event left the outbox and is not in the journal");
    for (const [at, event] of outbox.entries()) {
      const change = happened[first + at];
      same(`${event.type} ${event.at}`, `${change?.type} ${change?.at}`, "an event against what happened");
      same(this.#ids.get(event.id) ?? first + at, first + at, "an event's id was given twice");
      this.#ids.set(event.id, first + at);
    }
  }

  /** A revision is written by whoever comes, so it must always show the same; and it never falls. */
  #checkRecord(state: AgentState): void {
    assert(state.revision >= this.#highestRevision, "the record's revision fell");
    this.#highestRevision = state.revision;
    const { events: _events, ...summary } = summarize(state);
    const text = JSON.stringify(summary);
    same(text, this.#shown.get(state.revision) ?? text, "one revision shows two things");
    this.#shown.set(state.revision, text);
  }
}

function same<T extends string | number | boolean | null>(is: T, expected: T, what: string): void {
  if (is !== expected) assert.fail(`${what}: ${is}, not ${expected}`);
}
