import { must } from "../../../scripts/simulation/audit/violation.ts";
import { isInFlight } from "../../../src/domain/ledger/lease.ts";
import type { Payment } from "../../../src/domain/ledger/payment.ts";
import type { LedgerCommand, LedgerReply } from "../../../src/domain/ledger/commands.ts";
import { judge } from "../../../src/domain/ledger/judge.ts";
import { packLedger, unpackLedger } from "../../../src/domain/ledger/pack.ts";
import { type Account, type Ledger, type LedgerBounds, newLedger } from "../../../src/domain/ledger/state.ts";
import { NOON } from "../support/actor.ts";
import { type AccountModel, type PaymentModel, LedgerModel } from "./book.ts";

/** Low, so that short runs come to them. */
export const BOUNDS: LedgerBounds = {
  accounts: 8,
  openOfAgent: 3,
  openOfProject: 6,
  closedKeys: 5,
  openedBelowBytes: 4_900,
  paidBelowBytes: 5_900,
  resolvedBelowBytes: 6_100,
  paidBelowBytesOfAgent: 1_700,
};

/** What a run drives: the domain, or a faulty one. */
export interface LedgerDomain {
  readonly judge: typeof judge;
  readonly pack: typeof packLedger;
  readonly unpack: typeof unpackLedger;
}
export const SOUND: LedgerDomain = { judge, pack: packLedger, unpack: unpackLedger };

/** A project's ledger, with its book beside it, and a clock. */
export class LedgerWorld {
  /** What has happened, how often. */
  readonly tally = new Map<string, number>();
  readonly domain: LedgerDomain;
  readonly model = new LedgerModel();
  ledger: Ledger = newLedger("org-1", "project-1", BOUNDS);
  now = NOON;
  /** The last command that carried a request's id. */
  last: { readonly command: LedgerCommand; readonly reply: LedgerReply; readonly at: number } | null = null;
  #numbered = 0;

  constructor(domain: LedgerDomain) {
    this.domain = domain;
  }

  note(what: string): void {
    this.tally.set(what, (this.tally.get(what) ?? 0) + 1);
  }

  number(): number {
    return (this.#numbered += 1);
  }

  requestId(): string {
    return `req-${this.number()}`;
  }

  judge(command: LedgerCommand): LedgerReply {
    const reply = this.tryToJudge(command);
    must(reply.kind !== "failed", () => `${command.kind} failed: ${JSON.stringify(reply)}`);
    if (command.requestId !== undefined) this.last = { command, reply, at: this.now };
    return reply;
  }

  /** What has changed is sent to the ledger's owner, who writes the records. */
  tryToJudge(command: LedgerCommand): LedgerReply {
    const { ledger } = this;
    const before = new Map([...ledger.accounts].map(([id, { revision }]) => [id, revision]));
    ledger.touched.clear();
    const reply = this.domain.judge(ledger, command, this.now);
    for (const [id, { revision }] of ledger.accounts) {
      const isSaid = before.get(id) === revision || ledger.touched.has(id);
      must(isSaid, () => `${command.kind} changed ${id} and did not say so`);
    }
    return reply;
  }

  agent(place: number): AccountModel | undefined {
    return [...this.model.agents.values()][place % Math.max(1, this.model.agents.size)];
  }

  account(agentId: string): Account | undefined {
    return this.ledger.accounts.get(agentId);
  }

  /** The payment as the ledger has it; undefined: it is not open. */
  open(agentId: string, transactionId: string): Payment | undefined {
    return this.account(agentId)?.open.get(transactionId)?.payment;
  }

  /** Payments that are open in the ledger, in the order of the book. */
  openPayments(): PaymentModel[] {
    return this.model.payments.filter(
      ({ agentId, request }) => this.open(agentId, request.transactionId) !== undefined,
    );
  }

  pick(place: number, isMeant: (payment: Payment) => boolean = () => true): PaymentModel | undefined {
    const open = this.openPayments().filter(({ payment }) => isMeant(payment));
    return open[place % Math.max(1, open.length)];
  }

  /** A server that is told to send begins within this time. */
  grantLease(agentId: string): void {
    this.model.leaseUntil.set(agentId, this.now + LEASE_MS);
  }

  /** How long others may still begin to send. */
  quietAfterMs(agentId: string): number {
    const isAny = this.openPayments().some((each) => each.agentId === agentId && isInFlight(each.payment));
    const until = this.model.leaseUntil.get(agentId) ?? 0;
    return isAny ? Math.max(0, Math.min(until - this.now, LEASE_MS)) : 0;
  }

  /** The emergency stop: what was decided and not sent is not to be sent any more. */
  withdraw(agentId: string): void {
    for (const each of this.openPayments()) {
      if (each.agentId === agentId && isInFlight(each.payment)) each.isWithdrawn = true;
    }
  }
}

/** A second, and as much as clocks may differ. */
const LEASE_MS = 1_250;
