import type { FirstKey } from "../../../src/domain/agent/access.ts";
import type { Payment, RailOutcome } from "../../../src/domain/ledger/payment.ts";
import type { AgentProfile, AgentSummary } from "../../../src/domain/agent/state.ts";
import type { LedgerCommand, LedgerReply } from "../../../src/domain/ledger/commands.ts";
import type { AccountSummary } from "../../../src/domain/ledger/state.ts";
import { MC, mayFollow } from "./account-model.ts";
import { auditAtRest } from "./at-rest.ts";
import { WorldModel, type LevelModel } from "./books.ts";
import { LedgerAudit } from "./ledger-audit.ts";
import { isAsAnswered } from "./payment-audit.ts";
import { AgentAudit } from "./agent-audit.ts";
import { AgentModel } from "./agent-model.ts";
import type { AgentAnswered, Books, LedgerShown, Observer } from "./observer.ts";
import { shownAt } from "./increases-model.ts";
import { must, mustBeSame, mustEqual, Violation } from "./violation.ts";

/**
 * Watches the service from outside and keeps books of its own: what each answer must be, and that the limits hold at every
 * level at every moment. It knows the contract and not the ledger. The first thing that is wrong stays as `violation`.
 */
export class Auditor implements Observer {
  readonly #books = new WorldModel();
  readonly #ledgerAudit = new LedgerAudit(this.#books);
  readonly #agentAudit = new AgentAudit(this.#books);
  violation: Error | null = null;

  /** Counts of what has happened. */
  get tally(): ReadonlyMap<string, number> {
    return this.#books.tally;
  }

  agentCreated(profile: AgentProfile, firstKey: FirstKey): void {
    this.#audit(() => {
      this.#books.account(profile.agentId);
      this.#books.lives.set(profile.agentId, new AgentModel(profile, firstKey));
    });
  }

  agentAnswered(answered: AgentAnswered): void {
    this.#audit(() => this.#agentAudit.expect(answered));
  }

  ledgerAnswered(command: LedgerCommand, reply: LedgerReply, shown: LedgerShown): void {
    this.#audit(() => {
      const { clock } = this.#books;
      clock.latest = Math.max(clock.latest, shown.now);
      const agentId = "agentId" in command ? command.agentId : "";
      const model = this.#books.accounts.get(agentId);
      const levels = [null, ...Object.keys(shown.caps.teams)].map((teamId) => this.#books.level(teamId));
      const before = levels.map(usedMc);
      const usedBefore = model?.usedMc ?? 0;
      this.#ledgerAudit.expect(command, reply, shown);
      this.#expectShown(agentId, shown);
      // A network's effect is no decision: it is told as a breach, to the cent.
      if (command.kind === "book") return;
      levels.forEach((level, place) => {
        const most = Math.max((level.capCents ?? Infinity) * MC, before[place] ?? 0);
        must(usedMc(level) <= most, "more was used than there is room under a cap");
      });
      if (model !== undefined)
        must(
          model.usedMc <= Math.max(model.policy.budgetCents * MC, usedBefore),
          "more was used than there is budget",
        );
    });
  }

  /** Checks the ledger's figures against the book, at all three levels. */
  #expectShown(agentId: string, { account, caps, now }: LedgerShown): void {
    const at = this.#books.windowsAt(now);
    for (const [teamId, { cap, totals }] of [[null, caps.project] as const, ...Object.entries(caps.teams)]) {
      const { capCents, increases, reservedMc, spendLimits, spentMc, version } = this.#books.level(teamId);
      const where = teamId ?? "the project";
      mustEqual({ ...totals }, { spentMc, reservedMc }, `the totals of ${where}`);
      const expected = { capCents, spendLimits, version, increases };
      mustEqual(shownAt({ spendLimits: [], ...cap }, at), shownAt(expected, at), `the cap of ${where}`);
    }
    if (account === null) return;
    const model = this.#books.account(agentId);
    mustEqual(account.spentCents, Math.ceil(model.spentMc / MC), `spent by ${agentId}`);
    mustEqual(account.reservedCents, Math.ceil(model.reservedMc / MC), `reserved by ${agentId}`);
    mustEqual(account.status, model.status, `the status of ${agentId}`);
    mustEqual(account.policyVersion, model.version, `the version of the policy of ${agentId}`);
    const { increases, policy } = model;
    mustEqual(shownAt(account.policy, at), shownAt({ ...policy, increases }, at), `the policy of ${agentId}`);
  }

  rolledOver(actor: string, before: unknown, after: unknown): void {
    this.#audit(() => mustBeSame(after, before, `continue-as-new lost something of ${actor}`));
  }

  /** A revision may be written before its ledger has it, and by several, who must all mean the same by it. */
  accountRecorded(summary: AccountSummary): void {
    const { agentId, events, policyVersion, reservedCents, revision, spentCents, status } = summary;
    this.#audit(() => {
      const { journal, written } = this.#books.account(agentId);
      const text = `${String(spentCents)} ${String(reservedCents)} ${String(policyVersion)} ${status}`;
      const before = written.get(revision) ?? text;
      mustEqual(text, before, `revision ${String(revision)} of ${agentId} was written as two things`);
      written.set(revision, text);
      journal.write(events);
    });
  }

  agentRecorded({ agentId, events }: AgentSummary): void {
    this.#audit(() => this.#books.account(agentId).journal.write(events));
  }

  /** A revision may be written by several, who must all mean the same by it. */
  paymentRecorded({ approval, phase, request, revision, status }: Payment): void {
    this.#audit(() => {
      const payment = this.#books.payment(request.transactionId);
      const { recorded, written } = payment;
      const text = `${status} ${phase} ${approval?.resolution ?? ""}`;
      const before = written.get(revision) ?? text;
      mustEqual(text, before, `revision ${revision} of ${payment.id} was written as two things`);
      written.set(revision, text);
      if (recorded !== null && recorded.revision >= revision) return;
      const was = recorded?.status ?? "pending";
      must(mayFollow(was, status), `${payment.id} was ${was} and became ${status}`);
      must(status !== "approved" || payment.isCaptured, `${payment.id} is approved and was never paid`);
      payment.recorded = { revision, status };
    });
  }

  /** Not while its agent is paused, once the caller who paused it was answered. */
  captured(transactionId: string, amountMc: number): void {
    this.#audit(() => {
      const payment = this.#books.payment(transactionId);
      const { pausedAtSequence } = this.#books.life(payment.agentId);
      const { turns } = this.#books.account(payment.agentId);
      must(pausedAtSequence !== turns, `${transactionId} was paid while its agent was paused`);
      must(!payment.isCaptured, `${transactionId} was paid twice`);
      mustEqual(amountMc, payment.amountMc, `what was paid for ${transactionId}`);
      must(payment.status === "pending", `${transactionId} was paid when it was ${payment.status}`);
      const { approvedAt, expiresAt, needsPerson } = payment;
      const isApproved = approvedAt !== null && approvedAt < expiresAt;
      must(!needsPerson || isApproved, `${transactionId} was paid without a person's approval`);
      payment.isCaptured = true;
      this.#books.count("captured");
    });
  }

  railAnswered(transactionId: string, outcome: RailOutcome): void {
    const payment = this.#books.payments.get(transactionId);
    if (payment !== undefined) payment.rail = outcome.status;
  }

  clientAnswered(agentId: string, keyHash: string, transactionId: string): void {
    this.#audit(() => {
      const known = this.#books.accounts.get(agentId)?.byKey.get(keyHash);
      mustEqual(transactionId, known?.id, "the transaction that a key was answered with");
    });
  }

  pauseAnswered(agentId: string): void {
    const model = this.#books.accounts.get(agentId);
    const life = this.#books.lives.get(agentId);
    // A user may have resumed it since.
    if (model?.status !== "paused" || life === undefined) return;
    life.pausedAtSequence = model.turns;
    this.#books.count("pause answered");
  }

  stopAnswered(requestId: string): void {
    for (const { agentId, revokedKeyId, turns } of this.#books.stops.get(requestId) ?? []) {
      const life = this.#books.life(agentId);
      // A user may have resumed it since.
      if (this.#books.account(agentId).turns === turns) life.pausedAtSequence = turns;
      if (revokedKeyId !== null) life.deadKeys.add(revokedKeyId);
    }
    this.#books.count("stop answered");
  }

  archiveAnswered(agentId: string, record: AgentSummary | undefined): void {
    this.#audit(() => {
      mustEqual(
        this.#books.account(agentId).status,
        "closed",
        "an archive was answered before the ledger had received it",
      );
      mustEqual(record?.archivedAt === null, false, "an archive was answered before it was recorded");
      this.#books.life(agentId).isArchiveAnswered = true;
      this.#books.count("archive answered");
    });
  }

  keyAnswered(agentId: string, deadKeyId: string | null): void {
    this.#audit(() => {
      if (deadKeyId === null) return;
      const { keyId } = this.#books.account(agentId);
      must(keyId !== deadKeyId, "a revocation was answered before the ledger had received it");
      this.#books.life(agentId).deadKeys.add(deadKeyId);
      this.#books.count("revocation answered");
    });
  }

  capsAnswered(answered: Parameters<Observer["capsAnswered"]>[0]): void {
    this.#audit(() => {
      for (const { cap, recorded, teamId } of answered) {
        const isRecorded = recorded.version >= cap.version;
        must(isRecorded, `the cap of ${teamId ?? "the project"} was answered before it was recorded`);
      }
      this.#books.count("caps answered");
    });
  }

  rulesAnswered(teamId: string | null, version: number): void {
    this.#audit(() => {
      const { rulesVersion } = this.#books.level(teamId);
      must(rulesVersion >= version, "rules were answered before the ledger had received them");
      this.#books.count("rules answered");
    });
  }

  restrictionsAnswered(level: string | null, version: number, never: ReadonlySet<string>): void {
    this.#audit(() => {
      const known = this.#books.accounts.get(level ?? "") ?? this.#books.level(level);
      must(known.rulesVersion >= version, "restrictions were answered before the ledger had received them");
      const before = this.#books.restrictions.get(level);
      if ((before?.version ?? 0) < version) this.#books.restrictions.set(level, { version, never });
      this.#books.count("restrictions answered");
    });
  }

  checked(agentId: string, amountCents: number, denialCode: string | null, now: number): void {
    this.#audit(() => {
      const verdict = this.#books.verdict(this.#books.account(agentId), amountCents * MC, now, {
        seen: denialCode,
      });
      mustEqual(denialCode, verdict?.code ?? null, `what a dry run of ${amountCents} by ${agentId} said`);
      this.#books.count("dry run");
    });
  }

  atRest(books: Books): void {
    this.#audit(() => {
      auditAtRest(this.#books, books);
      this.#books.count("at rest");
    });
  }

  /**
   * Whether the rail has answered a process an end that the ledger has not received: that process died over it, and the ledger
   * learns of it when the rail is asked the next time.
   */
  get isBehindItsRail(): boolean {
    for (const payment of this.#books.payments.values()) {
      if (!payment.isOver && !isAsAnswered(payment)) return true;
    }
    return false;
  }

  broke(what: string, error: unknown): void {
    this.violation ??= new Violation(`${what}: ${String(error)}`, { cause: error });
  }

  #audit(work: () => void): void {
    if (this.violation !== null) return;
    try {
      work();
    } catch (error) {
      this.violation = error instanceof Error ? error : new Error(String(error));
    }
  }
}

const usedMc = ({ reservedMc, spentMc }: LevelModel): number => spentMc + reservedMc;
