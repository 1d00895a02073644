import { Auditor } from "../../../scripts/simulation/audit/auditor.ts";
import { mustBeSame, Violation } from "../../../scripts/simulation/audit/violation.ts";
import { type Domain, realDomain } from "../../../scripts/simulation/domain.ts";
import { shownOf } from "../../../scripts/simulation/shown.ts";
import type { AgentCommand, AgentReply } from "../../../src/domain/agent/commands.ts";
import type { PaymentRequest } from "../../../src/domain/agent/payment.ts";
import type { Leave } from "../../../src/domain/agent/leave.ts";
import { type AgentState, type OpenPayment, summarize } from "../../../src/domain/agent/state.ts";
import { DAY, heldCommand, MINUTE, NOON, profile } from "../support/actor.ts";
import type { Action, ActionOf, ArchiveBy, Sequence } from "./actions.ts";
import { Executors } from "./executors.ts";

const DELIVERY_WINDOW_MS = 30 * MINUTE;
const CREATOR = "lineage-creator";
const STRANGER = "lineage-stranger";
const FIRST_KEY = "akey_0";

/** Enough for the longest way to an end: decided, sent, settled, final. */
const LAST_ROUNDS = 4;

/** Commands between two continue-as-news of the twin; it is not cheap. */
const ROLL_OVER_EVERY = 3;

/**
 * Plays a sequence against one agent's actor under the auditor's eyes. Beside the actor runs its twin, which goes through
 * continue-as-new again and again: both must say and be the same for ever.
 */
export class SequenceRun {
  readonly #domain: Domain;
  readonly #sequence: Sequence;
  readonly #auditor = new Auditor();
  readonly #clock = { now: NOON };
  readonly #executors = new Executors(profile, this.#clock, this.#auditor);
  readonly #requests: PaymentRequest[] = [];
  readonly #keyIds = [FIRST_KEY];
  readonly #until = NOON + DELIVERY_WINDOW_MS;
  readonly #state: AgentState;
  #twin: AgentState;
  /** Commands that were handled. */
  commands = 0;

  constructor(sequence: Sequence, domain: Domain = realDomain) {
    this.#domain = domain;
    this.#sequence = sequence;
    const { origin, policy } = sequence;
    const lineageId = origin === "machine" ? CREATOR : null;
    const told = { keyId: FIRST_KEY, lineageId, deliverableUntil: this.#until };
    const firstKey = origin === "unknown" ? null : told;
    this.#state = domain.initialAgentState(profile, policy, NOON, firstKey ?? undefined);
    this.#twin = structuredClone(this.#state);
    this.#executors.records.agents.set(profile.agentId, {
      teamId: profile.teamId,
      summary: summarize(this.#state),
    });
    this.#auditor.agentCreated(profile, policy, { firstKey, recordedKeyId: FIRST_KEY });
  }

  /** What has happened, how often. */
  get tally(): ReadonlyMap<string, number> {
    return this.#auditor.tally;
  }

  /** Throws at the first thing that is wrong. */
  run(): void {
    for (const action of this.#sequence.actions) this.#play(action);
    this.#end();
  }

  #do(command: AgentCommand): AgentReply {
    const { agentId } = profile;
    const auditor = this.#auditor;
    this.commands += 1;
    const reply = this.#handle(this.#state, command);
    const twins = this.#handle(this.#twin, command);
    mustBeSame(twins, reply, "after continue-as-new the actor answers something else");
    if (this.commands % ROLL_OVER_EVERY === 0) this.#rollOver();
    auditor.agentAnswered(agentId, command, reply, summarize(this.#state), this.#clock.now);
    auditor.agentShown(agentId, shownOf(this.#state, this.#clock.now), this.#clock.now);
    this.#throwViolation();
    return reply;
  }

  #handle(state: AgentState, command: AgentCommand): AgentReply {
    try {
      return this.#domain.handle(state, command, this.#clock.now);
    } catch (error) {
      throw new Violation(`${command.kind} threw ${String(error)}`, { cause: error });
    }
  }

  #rollOver(): void {
    this.#twin = this.#domain.rollOverAgent(this.#twin);
    this.#auditor.rolledOver(profile.agentId, this.#state, this.#twin);
  }

  #throwViolation(): void {
    const { violation } = this.#auditor;
    if (violation !== null) throw violation;
  }

  #play(action: Action): void {
    switch (action.kind) {
      case "pay":
        return this.#pay(action);
      case "resolve":
        return this.#resolve(action.how, this.#resolved(action.pick));
      case "carry_out":
        return this.#carryOut(action.pick);
      case "arrive":
        return this.#arrive(action.pick, action.again);
      case "policy": {
        const version = this.#state.policyVersion - (action.stale ? 1 : 0);
        return void this.#do({ kind: "change_policy", patch: action.patch, version });
      }
      case "authenticate":
        return void this.#authenticate(action.pick);
      case "mint":
      case "revoke":
        return this.#changeKey(action);
      case "replay":
        return this.#replayCreate(action.own);
      case "prove":
        return void this.#do({ kind: "prove_non_delivery", lineageId: action.own ? CREATOR : STRANGER });
      case "archive":
        return void this.#do({ kind: "archive", by: archiverOf(action.by) });
      case "rename":
        return void this.#do({ kind: "rename", name: action.name });
      case "pause":
      case "resume":
        return void this.#do({ kind: action.kind });
      case "close_window":
        return this.#closeWindow();
      case "detached":
        return void this.#do({ kind: "confirm_detached" });
      case "record":
        return this.#executors.record(this.#state);
      case "confirmed":
        return this.#confirmed(action);
      case "time":
        this.#clock.now += action.ms;
        return;
      case "edge":
        return this.#toEdge(action);
    }
  }

  /** A server looks the key up before it asks: of an actor that does not know its keys, the record is the judge. */
  #authenticate(pick: number): boolean {
    const keyId = this.#keyIds[pick] ?? "akey_of_another";
    if (this.#state.access === undefined && keyId !== FIRST_KEY) return false;
    const reply = this.#do({ kind: "authenticate", keyId });
    return reply.kind === "authenticated" && reply.accepted;
  }

  #pay({ amountCents, key, otherPayload, recipient, replayOf }: ActionOf<"pay">): void {
    if (key !== null && !this.#authenticate(key)) return;
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
      recipient,
      merchantCategory: null,
      purpose: "a test",
      proof: "",
    };
    this.#requests.push(request);
    const { approvalWindowSeconds } = this.#sequence;
    const keyId = this.#keyIds[key ?? 0] ?? "akey_of_another";
    this.#do({ kind: "pay", keyId, request, approvalWindowSeconds, lookedUpThrough: this.#state.closed });
  }

  #resolve(how: "approve" | "deny" | "cancel" | "expire", transactionId: string): void {
    const expiresAt = this.#state.open[transactionId]?.payment.approval?.expiresAt ?? 0;
    // Expiry comes from a timer, so never before the time; and a person may come late.
    if (how !== "expire" || this.#clock.now >= expiresAt) this.#do(heldCommand(how, transactionId));
    this.#do({ kind: "read_payment", transactionId });
  }

  #carryOut(pick: number): void {
    const open = Object.values(this.#state.open);
    const found = open[pick % Math.max(1, open.length)];
    if (found !== undefined) this.#executors.carryOut(structuredClone(found.payment), this.#leaveFor(found));
    this.#throwViolation();
  }

  /** Who is about to send a payment asks the actor first. */
  #leaveFor({ payment }: OpenPayment): Leave | null {
    if (payment.phase !== "sending") return null;
    const { transactionId } = payment.request;
    const reply = this.#do({ kind: "ask_to_send", transactionId });
    return reply.kind === "leave" ? reply.leave : null;
  }

  #arrive(pick: number, again: boolean): void {
    const confirmation = this.#executors.arrive(pick, again);
    if (confirmation !== null) this.#do(confirmation);
  }

  /** Mostly a payment that waits for a person, but any other, too, and one that nobody has made. */
  #resolved(pick: number): string {
    const held = Object.values(this.#state.open).filter(({ payment }) => payment.phase === "held");
    const all = [...held, ...held, ...held].map(({ payment }) => payment.request);
    const requests = [...all, ...this.#requests];
    return requests[pick % Math.max(1, requests.length)]?.transactionId ?? "txn_none";
  }

  #changeKey({ kind, recorded }: ActionOf<"mint" | "revoke">): void {
    // What the record said a moment ago: an actor that knows its keys does not believe it.
    const read = this.#keyIds[recorded] ?? null;
    const recordedKeyId = this.#state.access === undefined ? FIRST_KEY : read;
    if (kind === "revoke") return void this.#do({ kind: "revoke_key", recordedKeyId });
    const keyId = `akey_${this.#keyIds.length}`;
    this.#keyIds.push(keyId);
    this.#do({ kind: "mint_key", keyId, recordedKeyId });
  }

  /** Another lineage's same idempotency key is another create, which this agent never hears of. */
  #replayCreate(own: boolean): void {
    if (this.#sequence.origin !== "machine" || !own) return;
    const isDelivered = this.#domain.isDeliverable(this.#until, this.#clock.now);
    this.#auditor.createReplayed(profile.agentId, isDelivered, this.#clock.now);
    this.#throwViolation();
    if (!isDelivered) this.#do({ kind: "prove_non_delivery", lineageId: CREATOR });
  }

  #closeWindow(): void {
    if (this.#sequence.origin !== "unknown" && this.#clock.now >= this.#until)
      this.#do({ kind: "confirm_erased" });
  }

  #confirmed({ again, pick }: ActionOf<"confirmed">): void {
    const revision = this.#executors.recorded(pick, again);
    if (revision !== null) this.#do({ kind: "confirm_summary", revision });
  }

  #toEdge({ of, plusMs }: ActionOf<"edge">): void {
    const held = Object.values(this.#state.open).filter(({ payment }) => payment.phase === "held");
    const ends =
      of === "window" ? [this.#until] : held.map(({ payment }) => payment.approval?.expiresAt ?? 0);
    const coming = ends.map((end) => end + plusMs).filter((at) => at > this.#clock.now);
    if (coming.length > 0) this.#clock.now = Math.min(...coming);
  }

  /** Lets everything come to its end: windows close, rails finish, sweeps find what was lost on the way. */
  #end(): void {
    const { onTheWay } = this.#executors;
    this.#do({ kind: "resume" });
    while (onTheWay.length > 0) this.#arrive(onTheWay.length - 1, false);
    this.#clock.now += 2 * DAY;
    for (const { transactionId } of this.#requests) this.#resolve("expire", transactionId);
    for (let round = 0; round < LAST_ROUNDS; round += 1) {
      for (const open of Object.values(this.#state.open)) {
        this.#executors.carryOut(structuredClone(open.payment), this.#leaveFor(open));
        this.#arrive(0, false);
      }
      // The slowest rail has made up its mind.
      this.#clock.now += DAY;
    }
    this.#executors.record(this.#state);
    this.#do({ kind: "confirm_summary", revision: this.#state.revision });
    this.#rollOver();
    if (Object.keys(this.#state.open).length > 0) throw new Violation("something is open for ever");
    this.#rest();
  }

  /** The actor, the book, the rail's books and the records agree to the cent. */
  #rest(): void {
    const { agentId } = profile;
    const { processor, records } = this.#executors;
    const { now } = this.#clock;
    this.#auditor.atRest({
      now,
      agents: new Map([[agentId, shownOf(this.#state, now)]]),
      agentRecords: new Map([...records.agents].map(([id, { summary }]) => [id, summary])),
      paymentRecords: records.payments,
      pendingApprovals: records.pending,
      budget: { project: { spentCents: 0, reservedCents: 0 }, teams: {} },
      ledger: processor.ledger(),
    });
    this.#throwViolation();
  }
}

function archiverOf(by: ArchiveBy): Extract<AgentCommand, { kind: "archive" }>["by"] {
  if (by.type === "user") return by;
  return { type: "organization_key", lineageId: by.own ? CREATOR : STRANGER, balance: by.balance };
}
