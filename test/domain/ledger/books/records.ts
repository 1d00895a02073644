import { fullMinute } from "../../../../src/domain/ledger/windows.ts";
import type { DroppedAccount, DroppedWindows } from "../../../../src/domain/ledger/commands.ts";
import { type Payment, type StoredPayment, withTexts } from "../../../../src/domain/ledger/payment.ts";
import type { BudgetPolicy } from "../../../../src/domain/ledger/policy.ts";
import {
  PaymentsOfRecords,
  type RecordedAccount,
  type RecordedLevel,
  type RecordedProject,
} from "../../../../src/domain/ledger/restore.ts";
import { type Account, type Ledger, levelOf } from "../../../../src/domain/ledger/state.ts";

export const TEXTS = { recipient: "shop", purpose: "books" } as const;

interface Owner {
  readonly agentId: string;
  readonly teamId: string;
}

/** The records of a project's payments, and what can be made of them. */
export class BooksRecords {
  readonly payments = new Map<string, Payment>();
  readonly #owners = new Map<string, string>();

  /** An older revision changes nothing. `agentId`: of a new payment. */
  write(payment: StoredPayment, agentId?: string): void {
    const { transactionId } = payment.request;
    if (agentId !== undefined) this.#owners.set(transactionId, agentId);
    const known = this.payments.get(transactionId);
    if (known === undefined || known.revision < payment.revision)
      this.payments.set(transactionId, withTexts(payment, TEXTS));
  }

  closedAgent(
    { agentId, teamId }: Owner,
    policy: BudgetPolicy,
    { at, starts }: DroppedWindows,
  ): Omit<DroppedAccount, "asOfRevision"> {
    const { all, closed } = this.#of(agentId);
    const { day, spentMc } = all;
    const windows = { at: fullMinute(at), mc: starts.map(all.amountSince) };
    return {
      teamId,
      name: agentId,
      policy,
      policyVersion: 1,
      spentMc,
      day,
      windows,
      closed,
      revision: 1_000,
    };
  }

  /** What a lost ledger is made anew of. */
  project(lost: Ledger, agents: readonly Owner[]): RecordedProject {
    const accounts = [...lost.accounts.values()].map((account) => this.#account(account));
    const others: RecordedProject["others"][number][] = [];
    for (const { agentId, teamId } of agents) {
      if (lost.accounts.has(agentId)) continue;
      others.push({ teamId, ...this.#of(agentId).all });
    }
    const recorded = (teamId: string | null): RecordedLevel => {
      const { cap, rulesVersion } = teamId === null ? lost.project : levelOf(lost, teamId);
      return { cap, rulesVersion };
    };
    return {
      organizationId: lost.organizationId,
      projectId: lost.projectId,
      revision: lost.revision,
      project: recorded(null),
      teams: new Map(agents.map(({ teamId }) => [teamId, recorded(teamId)])),
      accounts,
      others,
      calendar: lost.calendar,
      droppedAccounts: agents.length - accounts.length,
    };
  }

  #account(account: Account): RecordedAccount {
    const { agentId, keyId, name, policy, policyVersion, revision, rulesVersion, status, teamId, updatedAt } =
      account;
    return {
      agentId,
      teamId,
      name,
      keyId,
      revokedKeyId: account.revokedKeyId,
      status: status === "paused" ? "paused" : "active",
      isArchived: status === "closed",
      agentRevision: account.followedRevision,
      policy,
      policyVersion,
      rulesVersion,
      isUnmirrored: false,
      recordedRevision: account.confirmedRevision,
      knownRevision: revision,
      updatedAt,
      payments: this.#of(agentId).all,
    };
  }

  #of(agentId: string): { readonly all: PaymentsOfRecords["all"]; readonly closed: number } {
    const payments = new PaymentsOfRecords();
    let closed = 0;
    for (const payment of this.payments.values()) {
      if (this.#owners.get(payment.request.transactionId) !== agentId) continue;
      payments.add({ ...payment, wasHeld: false });
      if (payment.phase === "done") closed += 1;
      else payments.open(payment);
    }
    return { all: payments.all, closed };
  }
}
