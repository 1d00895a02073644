import assert from "node:assert/strict";
import { isDeliverable } from "../../../src/domain/agent/access.ts";
import type { AgentCommand } from "../../../src/domain/agent/commands.ts";
import { type PaymentRequest, type RailOutcome, settle } from "../../../src/domain/agent/payment.ts";
import type { BudgetPolicy } from "../../../src/domain/agent/policy.ts";
import { type AgentState, initialAgentState, summarize } from "../../../src/domain/agent/state.ts";
import { realSubject as paymentsSubject, type Subject } from "../model/simulation.ts";
import { heldCommand, MINUTE, NOON, openPolicy, profile } from "../support/actor.ts";
import { LifeAuditor } from "./auditor.ts";
import { LifeModel } from "./model.ts";
import type { Action, ArchiveBy, Life } from "./workload.ts";

/** What a fault may be in: an actor, and the look at the clock of whoever would deliver its first key again. */
export interface LifeSubject extends Subject {
  isDeliverable(deliverableUntil: number, now: number): boolean;
}

export const realSubject: LifeSubject = { ...paymentsSubject, isDeliverable };

const WINDOW = 30 * MINUTE;
/** Past the end of the window for what is held late in it. */
const APPROVAL_WINDOW_SECONDS = 25 * 60;
const CREATOR = "lineage-creator";
const STRANGER = "lineage-stranger";
const FIRST_KEY = "akey_0";
const policy: BudgetPolicy = { ...openPolicy, budgetCents: 60, autoApprovalThresholdCents: 6 };

const DECLINED: RailOutcome = { status: "failed", code: "CARD_DECLINED", reason: "Declined." };
const SETTLED: RailOutcome = { status: "settled", final: true };

type Of<K extends Action["kind"]> = Extract<Action, { kind: K }>;

/**
 * Plays an agent's life against its actor, with what stands around it: servers that answer replays of the create, and
 * writers of the record whose confirmations come late, twice or never.
 */
export class LifeSimulation {
  readonly #subject: LifeSubject;
  readonly #model: LifeModel;
  readonly #auditor: LifeAuditor;
  /** Words of all answers. */
  readonly answers: string[] = [];
  readonly #requests: PaymentRequest[] = [];
  readonly #keyIds = [FIRST_KEY];
  readonly #recorded: number[] = [];
  #state: AgentState;
  #now = NOON;

  constructor(subject: LifeSubject, { origin }: Life) {
    this.#subject = subject;
    const until = NOON + WINDOW;
    const lineageId = origin === "machine" ? CREATOR : null;
    const firstKey = { keyId: FIRST_KEY, lineageId, deliverableUntil: until };
    this.#state = initialAgentState(profile, policy, NOON, origin === "unknown" ? undefined : firstKey);
    const { autoApprovalThresholdCents: threshold, budgetCents } = policy;
    this.#model = new LifeModel({
      origin,
      keyId: FIRST_KEY,
      lineageId: CREATOR,
      until,
      name: profile.name,
      budgetCents,
      thresholdCents: threshold ?? Infinity,
    });
    this.#auditor = new LifeAuditor(this.#model);
  }

  run({ actions }: Life): void {
    for (const action of actions) this.#play(action);
    this.#record();
    this.#do({ kind: "confirm_summary", revision: this.#state.revision });
    this.#auditor.checkEnd(this.#state);
  }

  /** What the life has come to, in a few words each. */
  outcomes(): readonly string[] {
    return this.#model.outcomes();
  }

  #do(command: AgentCommand): string {
    const reply = this.#subject.handle(this.#state, command, this.#now);
    const words = this.#auditor.observe(command, reply, this.#state, this.#now);
    this.answers.push(words);
    return words;
  }

  #play(action: Action): void {
    switch (action.kind) {
      case "authenticate":
        return void this.#authenticate(action.pick);
      case "pay":
        return this.#pay(action);
      case "resolve":
        return this.#resolve(action);
      case "settle":
        return this.#settle(action);
      case "mint":
      case "revoke":
        return this.#changeKey(action);
      case "replay":
        return this.#replay(action.own);
      case "prove":
        return void this.#do({ kind: "prove_non_delivery", lineageId: action.own ? CREATOR : STRANGER });
      case "archive":
        return void this.#do({ kind: "archive", by: archiverOf(action.by) });
      case "rename":
        return void this.#do({ kind: "rename", name: action.name });
      case "policy": {
        const { budgetCents } = action;
        return void this.#do({
          kind: "change_policy",
          patch: { budgetCents },
          version: this.#state.policyVersion,
        });
      }
      case "pause":
      case "resume":
        return void this.#do({ kind: action.kind });
      case "close_window":
        return this.#closeWindow();
      case "detached":
        return void this.#do({ kind: "confirm_detached" });
      case "record":
        return this.#record();
      case "confirmed":
        return this.#confirmed(action);
      case "roll_over":
        return this.#rollOver();
      case "time":
        this.#now += action.ms;
        return;
      case "edge":
        return this.#toEdge(action);
    }
  }

  /** A server looks the key up before it asks: of an actor that does not know its keys, the record is the judge. */
  #authenticate(pick: number): boolean {
    const keyId = this.#keyIds[pick] ?? "akey_of_another";
    if (this.#state.access === undefined && keyId !== FIRST_KEY) return false;
    return this.#do({ kind: "authenticate", keyId }) === "authenticated true";
  }

  #pay({ amountCents, pick, replayOf }: Of<"pay">): void {
    if (pick !== null && !this.#authenticate(pick)) return;
    const number = this.#requests.length + 1;
    const known = replayOf === null ? undefined : this.#requests[replayOf];
    const request: PaymentRequest = {
      transactionId: `txn_${number}`,
      approvalId: `apr_${number}`,
      keyHash: known?.keyHash ?? `key-${number}`,
      payloadHash: known?.payloadHash ?? `payload-${number}`,
      rail: "card",
      amountCents,
      currency: "USD",
      recipient: "shop",
      merchantCategory: null,
      purpose: "a test",
    };
    this.#requests.push(request);
    const approvalWindowSeconds = APPROVAL_WINDOW_SECONDS;
    this.#do({ kind: "pay", request, approvalWindowSeconds, lookedUpThrough: this.#state.closed });
  }

  #resolve({ how, pick }: Of<"resolve">): void {
    const { payments } = this.#model;
    const { id, expiresAt } = payments[pick % Math.max(1, payments.length)] ?? { id: "txn_0", expiresAt: 0 };
    // Expiry comes from a timer, so never before its time.
    if (how !== "expire" || this.#now >= expiresAt) this.#do(heldCommand(how, id));
  }

  #settle({ fails, pick }: Of<"settle">): void {
    const open = Object.values(this.#state.open);
    const payment = open[pick % Math.max(1, open.length)]?.payment;
    if (payment === undefined || payment.phase === "held") return;
    const { transactionId } = payment.request;
    const result = fails ? DECLINED : SETTLED;
    const { revision } = settle(payment, result, this.#now);
    const outcome = payment.phase === "sending" ? { result, at: this.#now } : null;
    this.#do({ kind: "confirm", transactionId, revision, outcome });
  }

  #changeKey({ kind, recorded }: Of<"mint" | "revoke">): void {
    // What the record said a moment ago: an actor that knows its keys does not believe it.
    const read = this.#keyIds[recorded] ?? null;
    const recordedKeyId = this.#state.access === undefined ? this.#model.activeKeyId() : read;
    if (kind === "revoke") return void this.#do({ kind: "revoke_key", recordedKeyId });
    const keyId = `akey_${this.#keyIds.length}`;
    this.#keyIds.push(keyId);
    this.#do({ kind: "mint_key", keyId, recordedKeyId });
  }

  /** Another lineage's same idempotency key is another create, which this agent never hears of. */
  #replay(own: boolean): void {
    if (this.#model.origin !== "machine" || !own) return;
    if (this.#subject.isDeliverable(this.#model.until, this.#now)) {
      assert(this.#now < this.#model.until, "a key was delivered after the window");
      return;
    }
    assert(this.#now >= this.#model.until, "a key was not delivered in the window");
    const words = this.#do({ kind: "prove_non_delivery", lineageId: CREATOR });
    assert.equal(words, "window over true, proven true");
  }

  #closeWindow(): void {
    const { origin, until } = this.#model;
    if (origin !== "unknown" && this.#now >= until) this.#do({ kind: "confirm_erased" });
  }

  #record(): void {
    const summary = summarize(this.#state);
    this.#auditor.journal(summary);
    this.#recorded.push(summary.revision);
  }

  #confirmed({ again, pick }: Of<"confirmed">): void {
    const at = pick % Math.max(1, this.#recorded.length);
    const revision = this.#recorded[at];
    if (revision === undefined) return;
    if (!again) this.#recorded.splice(at, 1);
    this.#do({ kind: "confirm_summary", revision });
  }

  #rollOver(): void {
    const before = structuredClone(this.#state);
    this.#state = this.#subject.rollOver(this.#state);
    assert.deepEqual(this.#state, before, "continue-as-new lost something");
  }

  #toEdge({ of, plusMs }: Of<"edge">): void {
    const held = this.#model.payments.filter(({ place }) => place === "held");
    const ends = of === "window" ? [this.#model.until] : held.map(({ expiresAt }) => expiresAt);
    const coming = ends.map((end) => end + plusMs).filter((at) => at > this.#now);
    if (coming.length > 0) this.#now = Math.min(...coming);
  }
}

function archiverOf(by: ArchiveBy): Extract<AgentCommand, { kind: "archive" }>["by"] {
  if (by.type === "user") return by;
  return { type: "organization_key", lineageId: by.own ? CREATOR : STRANGER, balance: by.balance };
}
