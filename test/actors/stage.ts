import { mcOf } from "../../src/domain/money.ts";
import { CommandsRefused } from "../../src/actors/commands-refused.ts";
import { ALONE, type LedgerRoute } from "../../src/actors/ledger-peers.ts";
import { Ledgers } from "../../src/actors/ledgers.ts";
import { fillOf } from "../../src/domain/ledger/capacity.ts";
import type { CommandOf, LedgerCommand } from "../../src/domain/ledger/commands.ts";
import { judge } from "../../src/domain/ledger/judge.ts";
import {
  type AccountSummary,
  type Ledger,
  LEDGER_BOUNDS,
  newLedger,
  summaryOf,
} from "../../src/domain/ledger/state.ts";
import { realTimers, type Timers } from "../../src/lib/timers.ts";
import { ledgerRefusal } from "../../src/messages/guards/batch-refusals.ts";
import type { KnownRevisions } from "../../src/messages/ledger.ts";
import type { LedgerRevisionRecords } from "../../src/store/ledger-revisions.ts";
import { turn } from "./support.ts";

export const kindsIn = (commands: readonly { readonly kind: string }[]) => commands.map(({ kind }) => kind);

const OPEN = {
  budgetCents: 1_000_000,
  autoApprovalThresholdCents: null,
  perTransactionLimitCents: null,
  dailySpendLimitCents: null,
  hourlyVelocityLimit: null,
  dailyVelocityLimit: null,
};

interface Stage {
  /** By default a ledger of its own, with three accounts. */
  readonly ledger?: Ledger;
  /** By default it is the only server. */
  readonly route?: LedgerRoute;
  /** Failure of an update that is not judged. */
  readonly fails?: (commands: readonly LedgerCommand[]) => Error | null;
  readonly revisions?: Revisions;
  readonly timers?: Timers;
  readonly confirmAfterMs?: number;
}

/** Timers whose clock stands still until the test moves it. */
export class HeldTimers implements Timers {
  #now = 1_000;
  #waiting: { readonly at: number; readonly run: () => void }[] = [];

  after(ms: number, run: () => void): () => void {
    const timer = { at: this.#now + ms, run };
    this.#waiting.push(timer);
    return () => (this.#waiting = this.#waiting.filter((each) => each !== timer));
  }

  monotonicMs(): number {
    return this.#now;
  }

  pass(ms: number): void {
    this.#now += ms;
    const due = this.#waiting.filter(({ at }) => at <= this.#now);
    this.#waiting = this.#waiting.filter(({ at }) => at > this.#now);
    for (const { run } of due) run();
  }
}

/** Records of how far ledgers have come. */
export class Revisions implements LedgerRevisionRecords {
  revision = 0;
  reads = 0;
  #untilWritten: Promise<void> = Promise.resolve();

  /** Nothing is written until the answer is called. */
  hold(): () => void {
    let release: (() => void) | null = null;
    this.#untilWritten = new Promise((resolve) => (release = resolve));
    return () => release?.();
  }

  read(): Promise<number> {
    this.reads += 1;
    return Promise.resolve(this.revision);
  }

  async write(_projectId: string, revision: number): Promise<void> {
    await this.#untilWritten;
    this.revision = Math.max(this.revision, revision);
  }
}

const openAccount = (agentId: string): LedgerCommand => {
  return { kind: "open_account", agentId, teamId: "team", name: "Agent", policy: OPEN, keyId: "akey_1" };
};

export const confirm = ({ agentId, request: { transactionId } }: CommandOf<"pay">): CommandOf<"confirm"> => ({
  kind: "confirm",
  agentId,
  transactionId,
  revision: 1,
  outcome: null,
});

/** A ledger with three accounts. */
export function stagedLedger(): Ledger {
  const ledger = newLedger("organization", "project", {
    ...LEDGER_BOUNDS,
    accounts: 100,
    openOfAgent: 10_000,
    paidBelowBytesOfAgent: Infinity,
    openOfProject: 10_000,
    closedKeys: 10_000,
  });
  for (const agentId of ["one", "two", "three"]) judge(ledger, openAccount(agentId), 1);
  return ledger;
}

let numbered = 0;

const pay = (agentId: string, change: object = {}): CommandOf<"pay"> => {
  numbered += 1;
  const request = {
    transactionId: `txn_${String(numbered)}`,
    approvalId: `apr_${String(numbered)}`,
    keyHash: `key-${String(numbered)}`,
    payloadHash: "payload",
    fingerprint: "like",
    proof: "",
    rail: "card",
    amountMc: mcOf(1),
    currency: "USD",
    recipient: "shop",
    merchantCategory: null,
    purpose: "a test",
    ...change,
  } as const;
  return {
    kind: "pay",
    agentId,
    keyId: "akey_1",
    request,
    approvalWindowSeconds: 60,
    recordsCheckedThrough: 0,
  };
};

/** A ledger behind its guard, without an engine: each update is answered in a turn of its own. */
export function stage({
  confirmAfterMs = 1,
  fails = () => null,
  ledger = stagedLedger(),
  revisions = new Revisions(),
  route = ALONE,
  timers = realTimers,
}: Stage = {}) {
  const batches: (readonly LedgerCommand[])[] = [];
  const knowns: KnownRevisions[] = [];
  const errors: string[] = [];
  const records: AccountSummary[] = [];
  const flight = { now: 0, most: 0 };
  const ledgers = new Ledgers({
    wholePayment: () => Promise.reject(new Error("nothing is confirmed here")),
    async submit(_place, commands, known) {
      batches.push(commands);
      knowns.push(known);
      flight.now += 1;
      flight.most = Math.max(flight.most, flight.now);
      await turn();
      flight.now -= 1;
      const failure = fails(commands);
      if (failure !== null) throw failure;
      const refusal = ledgerRefusal(commands);
      if (refusal !== null) throw new CommandsRefused(refusal, {});
      ledger.revision += 1;
      ledger.touched.clear();
      const replies = commands.map((command) => judge(ledger, command, 1_000_000));
      const touched = [...ledger.touched].flatMap((agentId) => ledger.accounts.get(agentId) ?? []);
      const accounts = touched.filter(({ confirmedRevision, revision }) => confirmedRevision < revision);
      const fill = fillOf(ledger);
      return { revision: ledger.revision, replies, fill, accounts: accounts.map(summaryOf), closed: {} };
    },
    revisions,
    route,
    recordAccount(summary) {
      records.push(summary);
      return Promise.resolve();
    },
    flushPublished: () => undefined,
    confirmAfterMs,
    timers,
    onError: (message) => void errors.push(message),
  });
  return { batches, errors, flight, knowns, ledger, ledgers, pay, records };
}
