import type {
  Payment,
  PaymentRequest,
  PaymentTexts,
  RailOutcome,
  StoredPayment,
} from "../../../src/domain/ledger/payment.ts";
import { capturedInFull, type RailBooks } from "../../../src/domain/ledger/books.ts";
import { MC_PER_CENT, mcOf } from "../../../src/domain/money.ts";
import { settle, withTexts } from "../../../src/domain/ledger/payment.ts";
import type { BudgetPolicyPatch } from "../../../src/domain/ledger/policy.ts";
import type { FollowedAgent } from "../../../src/domain/agent/state.ts";
import type { AccountCommand, LedgerCommand, LedgerReply } from "../../../src/domain/ledger/commands.ts";
import { judge } from "../../../src/domain/ledger/judge.ts";
import {
  type Account,
  type Ledger,
  LEDGER_BOUNDS,
  type LedgerBounds,
  newLedger,
} from "../../../src/domain/ledger/state.ts";
import { type RaiseBasis, raiseBasis } from "../../../src/domain/ledger/raises.ts";
import type { PaymentRules } from "../../../src/domain/rules/checks.ts";
import { APPROVAL_WINDOW_SECONDS, human, NOON, openPolicy, profile } from "./actor.ts";

type Of<K extends LedgerReply["kind"]> = Extract<LedgerReply, { kind: K }>;
export type HeldKind = "approve" | "deny" | "cancel" | "expire";

type WithoutAgent<C> = C extends { readonly agentId: string }
  ? Omit<C, "agentId"> & { readonly requestId?: string }
  : never;
/** What is asked of one agent's account, without the agent. */
export type Asked = WithoutAgent<AccountCommand>;

export const KEY = "akey_1";

/** A ledger with one agent's account, and a clock: puts commands to the domain in a test's words. */
export class TestAccount {
  readonly ledger: Ledger;
  now: number;
  approvalWindowSeconds = APPROVAL_WINDOW_SECONDS;
  #numbered = 0;
  readonly #texts = new Map<string, PaymentTexts>();
  readonly #records = new Map<string, Payment>();
  #followed = 0;

  constructor(policy: BudgetPolicyPatch = {}, now = NOON, bounds: Partial<LedgerBounds> = {}) {
    this.now = now;
    this.ledger = newLedger(profile.organizationId, profile.projectId, { ...LEDGER_BOUNDS, ...bounds });
    this.open(profile.agentId, profile.teamId, policy);
  }

  /** Opens one more account in the ledger. */
  open(agentId: string, teamId: string, policy: BudgetPolicyPatch = {}): void {
    const opened = { agentId, teamId, name: "Agent", policy: { ...openPolicy, ...policy }, keyId: KEY };
    this.as("opened", this.judge({ kind: "open_account", ...opened }));
  }

  /** What the ledger answers; a command that fails is a fault of the test. */
  judge(command: LedgerCommand): LedgerReply {
    const reply = judge(this.ledger, command, this.now);
    if (reply.kind === "failed") throw new Error(`${command.kind} failed: ${reply.message}`);
    return reply;
  }

  do(command: Asked): LedgerReply {
    return this.judge({ agentId: profile.agentId, ...command });
  }

  /** The account as it stands. */
  get state(): Account {
    const account = this.ledger.accounts.get(profile.agentId);
    if (account === undefined) throw new Error("the account is no more");
    return account;
  }

  request(amountCents: number, change: Partial<PaymentRequest> = {}): PaymentRequest {
    this.#numbered += 1;
    const number = this.#numbered;
    const request: PaymentRequest = {
      transactionId: `txn_${number}`,
      approvalId: `apr_${number}`,
      keyHash: `key-${number}`,
      payloadHash: `payload-${number}`,
      proof: "",
      rail: "card",
      amountMc: mcOf(amountCents),
      currency: "USD",
      recipient: "shop",
      merchantCategory: null,
      purpose: "a test",
      fingerprint: `fingerprint-${number}`,
      ...change,
    };
    this.#texts.set(request.transactionId, request);
    return request;
  }

  payReply(request: PaymentRequest, recordsCheckedThrough = 0, rules?: PaymentRules): LedgerReply {
    const pay = { kind: "pay", keyId: this.state.keyId ?? KEY, request, recordsCheckedThrough } as const;
    const { approvalWindowSeconds } = this;
    return this.do({ ...pay, approvalWindowSeconds, ...(rules === undefined ? {} : { rules }) });
  }

  /** A payment, its key just looked up, that must be decided: as the ledger has it afterwards. */
  pay(amountCents: number, change: Partial<PaymentRequest> = {}, rules?: PaymentRules): Payment {
    const request = this.request(amountCents, change);
    this.as("decided", this.payReply(request, this.state.closed, rules));
    return this.payment(request.transactionId);
  }

  payment(transactionId: string): Payment {
    const open = this.state.open.get(transactionId);
    if (open === undefined) throw new Error(`${transactionId} is not open`);
    return this.#whole(open.payment);
  }

  /** With the texts that were requested, as its record has them. */
  #whole(payment: StoredPayment): Payment {
    const { transactionId } = payment.request;
    const texts = this.#texts.get(transactionId);
    if (texts === undefined) throw new Error(`${transactionId} was never requested`);
    return withTexts(payment, texts);
  }

  isOpen(transactionId: string): boolean {
    return this.state.open.has(transactionId);
  }

  resolve(kind: HeldKind, transactionId: string): Of<"payment"> & { readonly payment: Payment } {
    const reply = this.as("payment", this.do(heldCommand(kind, transactionId)));
    return { ...reply, payment: this.#whole(reply.payment) };
  }

  /** The rail has answered, and the server that asked it tells the ledger. */
  settle(transactionId: string, result: RailOutcome = { status: "settled" }): void {
    const settled = settle(this.payment(transactionId), result, this.now);
    const { revision } = settled;
    this.#records.set(transactionId, settled);
    this.do({ kind: "confirm", transactionId, revision, outcome: { result, at: this.now } });
  }

  /** The network's report of the payment: as if it was captured in full, but for `change`. */
  network(transactionId: string, change: Partial<RailBooks>): Payment {
    const record = this.#records.get(transactionId);
    if (record === undefined) throw new Error(`${transactionId} has no record`);
    const books = [{ ...capturedInFull(record.request.amountMc), ...change }];
    const closed = record.phase === "done" ? { closed: record } : {};
    const recordsCheckedThrough = this.state.closed;
    const command = { kind: "book", transactionId, books, recordsCheckedThrough, ...closed } as const;
    const booked = this.#whole(this.as("payment", this.do(command)).payment);
    this.#records.set(transactionId, booked);
    this.do({ kind: "confirm", transactionId, revision: booked.revision, outcome: null });
    return booked;
  }

  /** What there was to do for a payment that changes no more is done. */
  close(transactionId: string): void {
    const { revision } = this.payment(transactionId);
    this.do({ kind: "confirm", transactionId, revision, outcome: null });
  }

  /** A payment made and settled, or, with an outcome, whatever its rail answered. */
  paid(amountCents: number, result?: RailOutcome): Payment {
    const payment = this.pay(amountCents);
    this.settle(payment.request.transactionId, result);
    return payment;
  }

  change(patch: BudgetPolicyPatch): void {
    this.as("policy", this.do({ kind: "change_policy", patch, version: this.state.policyVersion }));
  }

  /** The agent's actor has changed it, and the ledger receives that. */
  follow(change: Partial<FollowedAgent>): Of<"followed"> {
    const { keyId, name } = this.state;
    const revision = (this.#followed += 1);
    return this.as(
      "followed",
      this.do({ kind: "follow_agent", name, keyId, isArchived: false, revision, ...change }),
    );
  }

  /** The agent was archived. */
  archive(): Of<"followed"> {
    return this.follow({ keyId: null, isArchived: true });
  }

  /** Basis of a raise that a person grants now. */
  basis(): { readonly basis: RaiseBasis } {
    return { basis: raiseBasis(this.ledger, this.state) };
  }

  /** The project's cap and its team's are replaced. */
  cap(projectCents: number | null, teamCents: number | null = null): void {
    const { version } = this.ledger.project.cap;
    const teams = [{ teamId: profile.teamId, capCents: teamCents }];
    this.as("replaced", this.judge({ kind: "replace_project", version, capCents: projectCents, teams }));
  }

  /** Spent, reserved, counted on the newest day. */
  totals(): { spent: number; reserved: number; today: number; count: number } {
    const { spentMc, reservedMc, day } = this.state.usage;
    const [spent, reserved, today] = [spentMc, reservedMc, day.amountMc].map((mc) => mc / MC_PER_CENT);
    return { spent: spent ?? 0, reserved: reserved ?? 0, today: today ?? 0, count: day.count };
  }

  as<K extends LedgerReply["kind"]>(kind: K, reply: LedgerReply): Of<K> {
    if (!isOf(kind, reply)) throw new Error(`expected ${kind}, got ${JSON.stringify(reply)}`);
    return reply;
  }
}

const isOf = <K extends LedgerReply["kind"]>(kind: K, reply: LedgerReply): reply is Of<K> =>
  reply.kind === kind;

export function heldCommand(
  kind: HeldKind,
  transactionId: string,
): Extract<Asked, { readonly kind: HeldKind }> {
  switch (kind) {
    case "approve":
      return { kind, transactionId, by: human, proof: "" };
    case "deny":
      return { kind, transactionId, by: human, feedback: "Too dear.", proof: "" };
    case "cancel":
    case "expire":
      return { kind, transactionId };
  }
}

/** The ledger without what is only for its owner to look at: two that are alike decide alike. */
export const shownOf = ({ touched: _touched, ...ledger }: Ledger): Omit<Ledger, "touched"> => ledger;

/** The same as it is now, whatever becomes of the ledger, and whatever it weighs. */
export function contentOf(ledger: Ledger): Omit<Ledger, "touched"> {
  const content = structuredClone(shownOf(ledger));
  Object.assign(content, { weighedAt: 0, weightBytes: 0 });
  for (const account of content.accounts.values()) account.weightBytes = 0;
  return content;
}
