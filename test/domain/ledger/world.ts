import { must } from "../../../lab/simulation/audit/violation.ts";
import { mustEqual } from "../../../lab/simulation/audit/violation.ts";
import { isInFlight } from "../../../src/domain/ledger/permission.ts";
import type { StoredPayment } from "../../../src/domain/ledger/payment.ts";
import type { LedgerCommand, LedgerReply } from "../../../src/domain/ledger/commands.ts";
import { judge } from "../../../src/domain/ledger/judge.ts";
import { packLedger, unpackLedger } from "../../../src/domain/ledger/pack.ts";
import { type Account, type Ledger, type LedgerBounds, newLedger } from "../../../src/domain/ledger/state.ts";
import { ledgerBytes, weightOf } from "../../../src/domain/ledger/weight.ts";
import { NOON } from "../support/actor.ts";
import { type AccountModel, type PaymentModel, LedgerModel } from "./book.ts";

/** Low, so that short runs come to them. */
export const BOUNDS: LedgerBounds = {
  accounts: 8,
  openOfAgent: 2,
  openOfProject: 5,
  closedKeys: 5,
  openedBelowBytes: 3_300,
  paidBelowBytes: 5_550,
  resolvedBelowBytes: 5_750,
  paidBelowBytesOfAgent: 2_260,
  partsOfRest: 1,
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
  /** Counts of closed payments that accounts of a restored ledger began with, by agent. */
  readonly closedBefore = new Map<string, number>();
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
  open(agentId: string, transactionId: string): StoredPayment | undefined {
    return this.account(agentId)?.open.get(transactionId)?.payment;
  }

  /** Payments that are open in the ledger, in the order of the book. */
  openPayments(): PaymentModel[] {
    return this.model.payments.filter(
      ({ agentId, request }) => this.open(agentId, request.transactionId) !== undefined,
    );
  }

  pick(place: number, isMeant: (payment: StoredPayment) => boolean = () => true): PaymentModel | undefined {
    const open = this.openPayments().filter(({ payment }) => isMeant(payment));
    return open[place % Math.max(1, open.length)];
  }

  /** A permit that was given before a fence is below it, and none given after. */
  permitted(agentId: string, permit: number): void {
    const { fence = 0 } = this.model.numbers.get(agentId) ?? {};
    mustEqual(permit > fence, true, "whether a permit is above all fences");
    this.#note(agentId, { permit });
  }

  fenced(agentId: string, fence: number): void {
    const { permit = 0 } = this.model.numbers.get(agentId) ?? {};
    mustEqual(fence > permit, true, "whether a fence is above all permits");
    this.#note(agentId, { fence });
  }

  #note(agentId: string, number: { readonly permit?: number; readonly fence?: number }): void {
    this.model.numbers.set(agentId, { ...this.model.numbers.get(agentId), ...number });
  }

  /** Payments that a server may be about to send. */
  inFlight(agentId: string): string[] {
    return this.openPayments()
      .filter((each) => each.agentId === agentId && isInFlight(each.payment))
      .map(({ request }) => request.transactionId);
  }

  /** The emergency stop: what was decided and not sent is not to be sent any more. */
  withdraw(agentId: string): void {
    for (const each of this.openPayments()) {
      if (each.agentId === agentId && isInFlight(each.payment)) each.isWithdrawn = true;
    }
  }
}

/** The least that a ledger weighs now: a full one is weighed anew before it refuses, without what has expired. */
export function leastBytes({ ledger, now }: Pick<LedgerWorld, "ledger" | "now">): number {
  return ledgerBytes({ ...ledger, weightBytes: leastAccountBytes({ ledger, now }) });
}

export function leastAccountBytes({ ledger, now }: Pick<LedgerWorld, "ledger" | "now">): number {
  const fresh = [...ledger.accounts.values()].reduce((sum, account) => sum + weightOf(account, now), 0);
  return Math.min(ledger.weightBytes, fresh);
}
