import type { Payment, RailOutcome, RulesVersions } from "../../../src/domain/ledger/payment.ts";
import type { CommandOf, LedgerCommand, LedgerReply } from "../../../src/domain/ledger/commands.ts";
import { AccountModel, type PaymentModel, isClosed, isHeld, type Verdict } from "./account-model.ts";
import { type WorldModel, expectDenial } from "./books.ts";
import type { LedgerShown } from "./observer.ts";
import { must, mustEqual } from "./violation.ts";

type Resolution = CommandOf<"approve" | "deny" | "cancel" | "expire">;
type Reply<K extends LedgerReply["kind"]> = Extract<LedgerReply, { readonly kind: K }>;

/** How long a lease to send may be made use of: a second, and as much as clocks differ. */
const LEASE_MS = 1_250;

/** An answer to a request with an id is given again for so long, unless so many came since. */
const AGAIN_MS = 300_000;
const AGAIN_MAX = 256;

/** What a payment is when its rail has said so. */
export const STATUS_BY_RAIL = {
  pending: "pending",
  settled: "approved",
  final: "approved",
  failed: "failed",
  reversed: "reversed",
  withheld: "denied",
} as const;

/** How long a lease to send is good for, and clocks may differ. */
const LEASE_MS_MAX = 1_250;

/** What a project's ledger must answer, by the books, which follow the answers. */
export class LedgerAudit {
  readonly #books: WorldModel;
  readonly #answers = new Map<string, { readonly at: number; readonly reply: LedgerReply }>();

  constructor(books: WorldModel) {
    this.#books = books;
  }

  expect(command: LedgerCommand, reply: LedgerReply, shown: LedgerShown): void {
    must(reply.kind !== "failed", () => `${command.kind} failed: ${JSON.stringify(reply)}`);
    const { requestId } = command;
    const first = requestId === undefined ? undefined : this.#answers.get(requestId);
    if (first !== undefined) {
      this.#books.count("asked again");
      return expectAgain(first.reply, reply);
    }
    this.#expectNew(command, reply, shown);
    if (requestId === undefined) return;
    this.#answers.set(requestId, { at: shown.now, reply });
    for (const [id, { at }] of this.#answers) {
      if (this.#answers.size <= AGAIN_MAX && at > shown.now - AGAIN_MS) break;
      this.#answers.delete(id);
    }
  }

  #expectNew(command: LedgerCommand, reply: LedgerReply, shown: LedgerShown): void {
    const { now } = shown;
    switch (command.kind) {
      case "open_account":
        return this.#expectOpen(command, reply, shown);
      case "pay":
        return this.#expectPay(command, reply, shown);
      case "confirm":
        return this.#expectConfirm(command, reply, now);
      case "approve":
      case "deny":
      case "cancel":
      case "expire":
        return this.#expectResolution(command, reply, now);
      case "request_lease":
        return this.#expectLease(command, reply, now);
      case "read_payment":
        return this.#expectRead(command.transactionId, reply);
      case "change_policy":
        return this.#expectPolicy(command, reply);
      case "pause":
      case "resume":
        return this.#expectStatus(command, reply, now);
      case "follow_agent":
        return this.#expectFollowed(command, reply, now);
      case "replace_project":
      case "replace_team":
        return this.#expectReplaced(command, reply);
      case "follow_rules": {
        const level = this.#books.level(command.teamId);
        level.rulesVersion = Math.max(level.rulesVersion, command.version);
        return mustEqual(reply.kind, "confirmed", "the answer to new rules");
      }
      case "confirm_records":
      case "confirm_caps":
      case "confirm_limits":
        return mustEqual(reply.kind, "confirmed", `the answer to ${command.kind}`);
    }
  }

  #expectOpen(command: CommandOf<"open_account">, reply: LedgerReply, { bounds }: LedgerShown): void {
    const { accounts } = this.#books;
    const known = accounts.has(command.agentId);
    if (reply.kind === "project_full") {
      this.#books.count("project full");
      const mayBeThere = accounts.size;
      return must(!known && mayBeThere >= bounds.accounts, "a project that is not full took no agent");
    }
    mustEqual(reply, { kind: "opened", changed: !known }, "an account");
    if (known) return;
    const live = [...accounts.values()].filter(({ status }) => status !== "closed");
    must(live.length < bounds.accounts, "more accounts than there may be");
    accounts.set(command.agentId, new AccountModel(command));
  }

  #expectPay(command: CommandOf<"pay">, reply: LedgerReply, { bounds, now }: LedgerShown): void {
    const { agentId, keyId, request } = command;
    const model = this.#books.account(agentId);
    const known = model.byKey.get(request.keyHash);
    if (known !== undefined) return this.#expectReplay(known, model, command, reply);
    if (model.status === "closed") return mustEqual(reply.kind, "no_account", "a closed account's payment");
    if (model.keyId !== keyId) {
      this.#books.count("payment by a dead key");
      return mustEqual(reply.kind, "inactive_key", "a dead key's payment");
    }
    must(
      !this.#books.life(agentId).deadKeys.has(keyId),
      "a key pays of which its owner was told that it is dead",
    );
    if (reply.kind === "records_check_required") {
      this.#books.count("look up");
      return must(model.payments.some(isClosed), "a look-up, and nothing was closed");
    }
    if (this.#isOutdated(model, request.rulesVersions)) {
      this.#books.count("stale rules");
      return mustEqual(reply.kind, "stale_rules", "a payment that was judged by old rules");
    }
    const isFullAgent = model.open().length >= bounds.openOfAgent;
    if (isFullAgent || this.#books.openCount() >= bounds.openOfProject) {
      const of = isFullAgent ? "agent" : "project";
      this.#books.count(`too many open of the ${of}`);
      return mustEqual(reply, { kind: "too_many_open", of }, "a payment too many");
    }
    must(reply.kind === "decided", `a new key was answered ${reply.kind}`);
    this.#decided(model, command, reply, now);
  }

  #isOutdated({ teamId }: AccountModel, versions: RulesVersions | undefined): boolean {
    const levels = [
      [this.#books.level(null), versions?.project ?? 0],
      [this.#books.level(teamId), versions?.team ?? 0],
    ] as const;
    if (levels.some(([level, judged]) => judged < level.rulesVersion)) return true;
    for (const [level, judged] of levels) level.rulesVersion = Math.max(level.rulesVersion, judged);
    return false;
  }

  #decided(
    model: AccountModel,
    command: CommandOf<"pay">,
    { decision }: Reply<"decided">,
    now: number,
  ): void {
    const { agentId, approvalWindowSeconds, request, rules } = command;
    const { amountCents, fingerprint } = request;
    const verdict = this.#books.verdict(model, amountCents, now);
    const what = `a payment of ${amountCents} by ${agentId}`;
    expectDenial(decision.denial, verdict, what);
    const flags =
      verdict === null ? model.flags(amountCents, fingerprint, rules?.checks ?? [], now) : new Set<string>();
    const told = decision.approval?.flaggedByRuleTypes ?? [];
    mustEqual(inOrder(told), inOrder(flags), `what flags ${what}`);
    mustEqual(new Set(told).size, told.length, "a type of rule that is named twice: types");
    const payment = newPayment(model, command, { verdict, needsPerson: flags.size > 0, now });
    if (decision.approval !== null)
      mustEqual(decision.approval.expiresAt, now + approvalWindowSeconds * 1_000, "the end of the window");
    mustEqual([decision.createdAt, decision.day], [now, payment.day], "when it was decided");
    mustEqual(decision.sequence, model.payments.length + 1, "the sequence");
    const { isArchiveAnswered } = this.#books.life(agentId);
    must(!isArchiveAnswered, "a payment was decided after its agent's archive was answered");
    this.#books.add(model, payment);
    if (verdict === null && !payment.needsPerson) model.leaseUntil = now + LEASE_MS;
    this.#books.count(verdict?.code ?? (payment.needsPerson ? "held" : "sending"));
    for (const flag of flags) this.#books.count(`flagged: ${flag}`);
  }

  /** A key that was used is never decided upon again, whatever the ledger has forgotten. */
  #expectReplay(
    known: PaymentModel,
    model: AccountModel,
    command: CommandOf<"pay">,
    reply: LedgerReply,
  ): void {
    this.#books.count(`known key: ${reply.kind}`);
    switch (reply.kind) {
      case "replayed":
        mustEqual(reply.transactionId, known.id, "the transaction of a replay");
        mustEqual(reply.samePayload, known.payloadHash === command.request.payloadHash, "the same payload");
        return mustEqual(reply.payment.status, known.status, "the status in a replay");
      case "recorded":
      case "records_check_required":
        return must(isClosed(known), `${known.id} is open, and was answered ${reply.kind}`);
      case "no_account":
        return must(model.status === "closed" && isClosed(known), "an account that is there was not found");
      case "inactive_key":
        return must(
          model.keyId !== command.keyId && isClosed(known),
          "a known key was answered inactive_key",
        );
      default:
        throw new Error(`a known key was answered ${reply.kind}`);
    }
  }

  #expectConfirm(command: CommandOf<"confirm">, reply: LedgerReply, now: number): void {
    mustEqual(reply.kind, "confirmed", "the answer to a confirmation");
    const payment = this.#books.payment(command.transactionId);
    if (isClosed(payment)) return;
    const model = this.#books.account(payment.agentId);
    if (command.outcome !== null && !payment.isOver && !isHeld(payment))
      this.#settle(model, payment, command.outcome.result, now);
    const confirmed = Math.min(command.revision, payment.revision);
    payment.confirmedRevision = Math.max(payment.confirmedRevision, confirmed);
  }

  #settle(model: AccountModel, payment: PaymentModel, outcome: RailOutcome, now: number): void {
    if (outcome.status === "pending") {
      if (!payment.isFollowed) this.#books.change(model, payment, { isFollowed: true }, now);
      return;
    }
    const isRefused = outcome.status === "failed" || outcome.status === "withheld";
    if (isRefused && payment.status !== "pending") return;
    const status = STATUS_BY_RAIL[outcome.status];
    const isOver = outcome.status !== "settled" || outcome.final;
    if (status === payment.status && isOver === payment.isOver) return;
    if (outcome.status === "withheld") this.#books.count("withheld");
    if (status !== payment.status) this.#books.count(status);
    this.#books.change(model, payment, { status, isOver, isFollowed: true }, now);
  }

  /** Nothing is sent of a paused agent, and what was withdrawn never is. */
  #expectLease(
    { agentId, transactionId }: CommandOf<"request_lease">,
    reply: LedgerReply,
    now: number,
  ): void {
    if (reply.kind === "not_open") return this.#expectClosed(transactionId);
    const payment = this.#books.payment(transactionId);
    const model = this.#books.account(agentId);
    if (!model.inFlight().includes(payment))
      return mustEqual(reply.kind, "payment", `lease to send ${transactionId}`);
    const lease = payment.isWithdrawn ? "withdraw" : model.status === "paused" ? "wait" : "send";
    mustEqual(reply, { kind: "lease", lease }, `lease to send ${transactionId}`);
    this.#books.count(`lease: ${lease}`);
    if (lease === "send") model.leaseUntil = now + LEASE_MS;
  }

  #expectRead(transactionId: string, reply: LedgerReply): void {
    if (reply.kind === "not_open") return this.#expectClosed(transactionId);
    must(reply.kind === "payment" && !reply.changed, `a read was answered ${reply.kind}`);
    const { status } = this.#books.payment(transactionId);
    mustEqual(reply.payment.status, status, `the status of ${transactionId}`);
  }

  /** What was decided stays until it is over, and a process has confirmed that all is done for it. */
  #expectClosed(transactionId: string): void {
    const payment = this.#books.payments.get(transactionId);
    must(payment === undefined || isClosed(payment), `${transactionId} is not over, and not open`);
  }

  #expectResolution(command: Resolution, reply: LedgerReply, now: number): void {
    if (reply.kind === "not_open") return this.#expectClosed(command.transactionId);
    const payment = this.#books.payment(command.transactionId);
    const model = this.#books.account(payment.agentId);
    must(reply.kind === "payment", `${command.kind} was answered ${reply.kind}`);
    const held = isHeld(payment);
    const inTime = held && now < payment.expiresAt;
    if (held) this.#resolve(model, payment, command, reply.payment, now);
    mustEqual(reply.changed, inTime, `whether ${command.kind} changed ${payment.id}`);
    mustEqual(reply.payment.status, payment.status, `what ${command.kind} made of ${payment.id}`);
    if (held) expectResolved(reply.payment, command, inTime);
  }

  #resolve(
    model: AccountModel,
    payment: PaymentModel,
    command: Resolution,
    told: Payment,
    now: number,
  ): void {
    const books = this.#books;
    const isLate = now >= payment.expiresAt;
    books.count(isLate ? `${command.kind} too late` : command.kind);
    const end = (status: "denied" | "expired" | "failed"): void =>
      books.change(model, payment, { isOver: true, status }, now);
    if (isLate || command.kind === "expire") return end("expired");
    if (command.kind !== "approve") return end("denied");
    const verdict = books.verdict(model, payment.amountCents, now, payment);
    expectDenial(told.denial, verdict, `the approval of ${payment.id}`);
    if (verdict !== null) {
      books.count(`approve: ${verdict.code}`);
      return end("failed");
    }
    // What is spent today counts today, also when it was put on hold yesterday.
    const day = model.dayOf(now);
    mustEqual(told.day, day, `the day of ${payment.id}`);
    if (day !== payment.day) model.counted(now);
    books.change(model, payment, { approvedAt: now, day }, now);
    model.leaseUntil = now + LEASE_MS;
  }

  #expectPolicy(command: CommandOf<"change_policy">, reply: LedgerReply): void {
    const model = this.#books.account(command.agentId);
    if (model.status === "closed") return mustEqual(reply.kind, "no_account", "a closed account's policy");
    if (command.version !== model.version) {
      this.#books.count("stale policy");
      return mustEqual(reply, { kind: "version_conflict", version: model.version }, "a stale version");
    }
    const before = model.policy;
    model.policy = { ...before, ...command.patch };
    model.version += 1;
    this.#books.count("policy changed");
    must(reply.kind === "policy", `a new policy was answered ${reply.kind}`);
    mustEqual(reply.policyVersion, model.version, "the version of a new policy");
    mustEqual(reply.policy, model.policy, "a new policy");
    mustEqual(reply.before, before, "the policy before a new one");
  }

  #expectStatus(command: CommandOf<"pause" | "resume">, reply: LedgerReply, now: number): void {
    const model = this.#books.account(command.agentId);
    if (model.status === "closed") return mustEqual(reply.kind, "no_account", "a closed account's status");
    const status = command.kind === "pause" ? "paused" : "active";
    const changed = model.status !== status;
    const isQuiet = status === "active" || model.inFlight().length === 0;
    // After a clock went back no caller waits longer than a lease is ever good for.
    const quietAfterMs = isQuiet ? 0 : Math.max(0, Math.min(model.leaseUntil - now, LEASE_MS_MAX));
    mustEqual(reply, { kind: "account_status", status, changed, quietAfterMs }, "a change of status");
    if (!changed) return;
    model.status = status;
    model.turns += 1;
    if (status === "active") this.#books.life(model.agentId).pausedAtSequence = null;
    if (status === "paused" && model.keyId === null) model.withdraw();
    model.journal.happened(status === "paused" ? "agent.paused" : "agent.resumed", now);
    this.#books.count(status === "paused" ? "paused" : "resumed");
  }

  #expectFollowed(command: CommandOf<"follow_agent">, reply: LedgerReply, now: number): void {
    const model = this.#books.account(command.agentId);
    must(reply.kind === "followed", `what is to be followed was answered ${reply.kind}`);
    if (model.status === "closed" || command.revision <= model.followedRevision)
      return mustEqual(reply.ended, [], "what an old end has ended");
    model.followedRevision = command.revision;
    model.name = command.name;
    if (!command.isArchived) {
      model.keyId = command.keyId;
      if (command.keyId === null && model.status === "paused") model.withdraw();
      return mustEqual(reply.ended, [], "what is ended of an agent that lives");
    }
    const held = model.held();
    mustEqual([...reply.ended].toSorted(), held.map(({ id }) => id).toSorted(), "what closing has ended");
    for (const payment of held) {
      const status = now >= payment.expiresAt ? "expired" : "denied";
      this.#books.change(model, payment, { status, isOver: true }, now);
    }
    if (model.status === "paused") model.withdraw();
    model.status = "closed";
    model.keyId = null;
    this.#books.count(held.length > 0 ? "closed with payments on hold" : "closed");
  }

  /** Whole, or not at all. */
  #expectReplaced(command: CommandOf<"replace_project" | "replace_team">, reply: LedgerReply): void {
    const own = command.kind === "replace_team" ? command.teamId : null;
    const level = this.#books.level(own);
    if (command.version !== level.version) {
      this.#books.count("stale budget");
      return mustEqual(reply, { kind: "version_conflict", version: level.version }, "a stale budget");
    }
    must(reply.kind === "replaced", `a replacement was answered ${reply.kind}`);
    this.#books.count("budget replaced");
    this.#setCap(own, command.capCents);
    const teams = command.kind === "replace_project" ? command.teams : [];
    for (const { capCents, teamId } of teams) {
      if (this.#books.level(teamId).capCents !== capCents) this.#setCap(teamId, capCents);
    }
    for (const { agentId, budgetCents } of command.kind === "replace_team" ? command.agents : []) {
      const model = this.#books.accounts.get(agentId);
      if (model === undefined || model.status === "closed" || model.teamId !== own) continue;
      if (model.policy.budgetCents === budgetCents) continue;
      model.policy = { ...model.policy, budgetCents };
      model.version += 1;
      this.#books.count("budget by team");
    }
    mustEqual(reply.version, level.version, "the version of a replaced budget");
  }

  #setCap(teamId: string | null, capCents: number | null): void {
    const level = this.#books.level(teamId);
    level.capCents = capCents;
    level.version += 1;
  }
}

function expectAgain(first: LedgerReply, reply: LedgerReply): void {
  const [was, is] = [first, reply].map(answerOf);
  if (first.kind === "payment" && reply.kind === "not_open") return;
  mustEqual(is, was, "the answer to a request that came again");
}

/** What is the same each time: a payment is read anew, and which caps are to be recorded is known by then. */
function answerOf(reply: LedgerReply): unknown {
  if (reply.kind === "payment") return { kind: reply.kind, changed: reply.changed };
  return reply.kind === "replaced" ? { kind: reply.kind, version: reply.version } : reply;
}

function newPayment(
  model: AccountModel,
  { approvalWindowSeconds, request }: CommandOf<"pay">,
  decided: { readonly verdict: Verdict | null; readonly needsPerson: boolean; readonly now: number },
): PaymentModel {
  const { needsPerson, now, verdict } = decided;
  const isAccepted = verdict === null;
  const { amountCents, fingerprint, keyHash, payloadHash, transactionId } = request;
  const day = model.dayOf(now);
  return {
    id: transactionId,
    agentId: model.agentId,
    keyHash,
    payloadHash,
    fingerprint,
    amountCents,
    createdAt: now,
    countedAt: model.countedAt(now),
    countedOn: day,
    expiresAt: now + approvalWindowSeconds * 1_000,
    needsPerson,
    isCounted: isAccepted,
    status: isAccepted ? "pending" : "denied",
    isOver: !isAccepted,
    day,
    approvedAt: null,
    isFollowed: false,
    isCaptured: false,
    isReversed: false,
    rail: null,
    recorded: null,
    written: new Map(),
    isWithdrawn: false,
    revision: 1,
    confirmedRevision: 0,
  };
}

/** What a decision on hold leaves in the approval: who decided, and what. */
function expectResolved(payment: Payment, { kind }: Resolution, inTime: boolean): void {
  const isExecuting = payment.status === "pending";
  const resolution = isExecuting ? "executing" : payment.status;
  mustEqual(payment.approval?.resolution, resolution, "the approval's resolution");
  mustEqual(payment.denial === null, isExecuting, "whether there is no denial");
  const isByPerson = inTime && (kind === "approve" || kind === "deny");
  mustEqual(payment.approval?.resolvedBy !== null, isByPerson, "whether a person resolved it");
}

const inOrder = (names: Iterable<string>): string[] =>
  [...names].toSorted((one, other) => one.localeCompare(other));
