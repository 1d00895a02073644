import { must, mustEqual } from "../../../../lab/simulation/audit/violation.ts";
import type { RailBooks } from "../../../../src/domain/ledger/books.ts";
import type { CommandOf, LedgerCommand, LedgerReply } from "../../../../src/domain/ledger/commands.ts";
import { decidedPayment } from "../../../../src/domain/ledger/pay.ts";
import {
  type Payment,
  moneyOf,
  type StoredPayment,
  withTexts,
} from "../../../../src/domain/ledger/payment.ts";
import type { BudgetPolicy } from "../../../../src/domain/ledger/policy.ts";
import { restoredLedger } from "../../../../src/domain/ledger/restore.ts";
import { type Ledger, LEDGER_BOUNDS, levelOf, newLedger } from "../../../../src/domain/ledger/state.ts";
import { utcDate } from "../../../../src/domain/ledger/usage.ts";
import { NOON, SECOND } from "../../support/actor.ts";
import { type LedgerDomain, SOUND } from "../world.ts";
import type { BooksAction, BooksScene, RequestWay } from "./actions.ts";
import type { Used } from "../../../../lab/simulation/audit/booked-payment.ts";
import { BooksModel, PaymentModel } from "./model.ts";
import { NetworkPayment } from "./network.ts";
import { BooksRecords, TEXTS } from "./records.ts";

const AGENTS = [
  { agentId: "agent-0", teamId: "team-0" },
  { agentId: "agent-1", teamId: "team-0" },
  { agentId: "agent-2", teamId: "team-1" },
] as const;
const TEAMS = ["team-0", "team-1"] as const;
const BOUNDS = { ...LEDGER_BOUNDS, closedKeys: 3 };
const POLICY: BudgetPolicy = {
  budgetCents: 100,
  autoApprovalThresholdCents: null,
  perTransactionLimitCents: 60,
  dailySpendLimitCents: 80,
  hourlyVelocityLimit: null,
  dailyVelocityLimit: null,
};

/** A report on its way into the ledger, as a server submits it: the command of its next submission, or what is left to be done. */
interface Delivery {
  readonly payment: PaymentModel;
  next:
    | { readonly kind: "submit"; readonly command: CommandOf<"book"> }
    | { readonly kind: "record"; readonly booked: Payment }
    | { readonly kind: "confirm"; readonly booked: Payment }
    | null;
}

type ActionOf<K extends BooksAction["kind"]> = Extract<BooksAction, { readonly kind: K }>;

/** Plays a scene on a ledger, with a network and the model beside it; throws where they differ. */
export class BooksRun {
  readonly #domain: LedgerDomain;
  readonly #scene: BooksScene;
  readonly model: BooksModel;
  readonly #network = new Map<string, NetworkPayment>();
  readonly #records = new BooksRecords();
  readonly #dropped = new Set<string>();
  #deliveries: Delivery[] = [];
  #ledger: Ledger = newLedger("org-1", "project-1", BOUNDS);
  #now = NOON;
  #numbered = 0;
  /** What has happened, how often. */
  readonly tally = new Map<string, number>();

  constructor(scene: BooksScene, domain: LedgerDomain = SOUND) {
    this.#scene = scene;
    this.#domain = domain;
    this.model = new BooksModel(scene.caps);
    for (const { agentId, teamId } of AGENTS) {
      this.model.policies.set(agentId, POLICY);
      this.#judge({ kind: "open_account", agentId, teamId, name: agentId, policy: POLICY, keyId: agentId });
    }
    const teams = TEAMS.map((teamId) => ({ teamId, capCents: scene.caps.team }));
    this.#judge({ kind: "replace_project", version: 1, capCents: scene.caps.project, teams });
  }

  play(): void {
    for (const action of this.#scene.actions) {
      this.#act(action);
      this.#audit();
      this.#now += SECOND;
    }
    this.#rest();
  }

  #act(action: BooksAction): void {
    switch (action.kind) {
      case "pay":
        return this.#pay(action);
      case "request":
        return this.#request(action);
      case "effect":
        return this.#effect(action);
      case "read":
        return this.#read(action);
      case "step":
        return this.#step(action);
      case "policy":
        return this.#changePolicy(action);
      case "account":
        return this.#changeAccount(action);
      case "records":
        return this.#confirmRecords();
      case "roll_over":
        return this.#rollOver();
      case "restore":
        return this.#restore();
      case "wait":
        this.#now += action.ms;
    }
  }

  get #today(): string {
    return utcDate(this.#now);
  }

  #mc(mc: number): number {
    return this.#scene.isWhole ? Math.ceil(mc / 1_000) * 1_000 : mc;
  }

  #note(what: string): void {
    this.tally.set(what, (this.tally.get(what) ?? 0) + 1);
  }

  #judge(command: LedgerCommand): LedgerReply {
    this.#ledger.revision += 1;
    const before = new Set(this.#ledger.accounts.keys());
    const reply = this.#domain.judge(this.#ledger, command, this.#now);
    must(reply.kind !== "failed", () => `${command.kind} failed: ${JSON.stringify(reply)}`);
    for (const agentId of before) if (!this.#ledger.accounts.has(agentId)) this.#drop(agentId);
    for (const agentId of this.#ledger.accounts.keys())
      if (this.#dropped.delete(agentId)) this.#note("an account came back");
    return reply;
  }

  #drop(agentId: string): void {
    this.#dropped.add(agentId);
    this.#note("an account was dropped");
  }

  #payment(pick: number): PaymentModel | undefined {
    const payments = [...this.model.payments.values()];
    // The newest have the most before them.
    return payments.at(-1 - (pick % Math.max(1, payments.length)));
  }

  #open({ agentId, id }: PaymentModel): StoredPayment | undefined {
    return this.#ledger.accounts.get(agentId)?.open.get(id)?.payment;
  }

  #pay({ agent, mc }: ActionOf<"pay">): void {
    const { agentId, teamId } = AGENTS[agent] ?? AGENTS[0];
    this.#numbered += 1;
    const id = `txn-${this.#numbered}`;
    const request = {
      transactionId: id,
      approvalId: `apr-${this.#numbered}`,
      keyHash: `key-${this.#numbered}`,
      payloadHash: "payload",
      proof: "",
      rail: "card",
      amountMc: this.#mc(mc),
      currency: "USD",
      merchantCategory: null,
      fingerprint: id,
      ...TEXTS,
    } as const;
    const submit = (recordsCheckedThrough: number): LedgerReply =>
      this.#judge({
        kind: "pay",
        agentId,
        keyId: agentId,
        request,
        approvalWindowSeconds: 60,
        recordsCheckedThrough,
      });
    const before = this.model.used({ agentId, teamId, id }, this.#today);
    let reply = submit(0);
    if (reply.kind === "records_check_required") reply = submit(reply.closed);
    if (reply.kind !== "decided") return;
    const decided = decidedPayment(request, reply.decision);
    if (decided.denial !== null) {
      this.#note("denied");
      this.#records.write(decided, agentId);
      this.#judge({ kind: "confirm", agentId, transactionId: id, revision: 1, outcome: null });
      return;
    }
    const { day } = decided;
    const payment = new PaymentModel({ id, agentId, teamId }, request.amountMc, day);
    this.model.payments.set(id, payment);
    this.#network.set(id, new NetworkPayment());
    this.#expectWithin(payment, before, `the payment ${id}`);
    const outcome = { result: { status: "pending" }, at: this.#now } as const;
    this.#judge({ kind: "confirm", agentId, transactionId: id, revision: 0, outcome });
    this.#records.write(this.#open(payment) ?? decided, agentId);
    this.#note("armed");
  }

  /** A yes of ours lifts nothing above its limit. */
  #expectWithin(payment: PaymentModel, before: readonly Used[], what: string): void {
    for (const [place, { limit, limitMc, usedMc }] of this.model.used(payment, this.#today).entries()) {
      const isWithin = limitMc === null || usedMc <= Math.max(limitMc, before[place]?.usedMc ?? 0);
      must(isWithin, `${what} lifts ${limit} to ${usedMc} of ${String(limitMc)}`);
    }
  }

  #request(action: ActionOf<"request">): void {
    const payment = this.#payment(action.pick);
    const network = this.#network.get(payment?.id ?? "");
    if (payment === undefined || network === undefined) return;
    const authorization = `auth-${action.authorization}`;
    const mc = this.#mc(action.mc);
    const position = network.now(authorization).requests;
    const isAsked = action.how !== "stands_in";
    const isGranted = isAsked && this.#ask(payment, { authorization, position, mc }, action.how);
    const standsIn = action.how === "stands_in" || action.how === "lost_stands_in";
    const takesAnswer = action.how !== "lost" && isGranted;
    network.counted(authorization, takesAnswer || standsIn ? mc : 0);
    if (standsIn) this.#note("the network stood in");
  }

  #ask(
    payment: PaymentModel,
    { authorization, mc, position }: { authorization: string; position: number; mc: number },
    how: RequestWay,
  ): boolean {
    const { agentId, id } = payment;
    const answerBy = this.#now + (how === "late" ? -1 : 2 * SECOND);
    const ask = {
      kind: "authorize",
      agentId,
      transactionId: id,
      authorization,
      position,
      answerBy,
      merchant: "SHOP",
    } as const;
    const before = this.model.used(payment, this.#today);
    const reply = this.#judge({ ...ask, amountMc: mc });
    if (reply.kind !== "authorization") throw new Error(`a request was answered ${reply.kind}`);
    const { refusal } = reply;
    this.#note(`asked: ${refusal ?? "granted"}`);
    if (how === "late") must(refusal !== null, "a request was granted after its time");
    if (refusal === null && mc > 0)
      payment.granted({ authorization, position, mc, at: this.#now }, this.#today);
    if (refusal === null) this.#expectWithin(payment, before, `our yes to ${id}`);
    if (refusal === null) this.#write(this.#open(payment));
    if (how !== "twice") return refusal === null;
    const again = this.#judge({ ...ask, amountMc: mc });
    mustEqual(again.kind === "authorization" && again.refusal, refusal, "a request that came again");
    return refusal === null;
  }

  #effect({ authorization, mc, pick, what }: ActionOf<"effect">): void {
    const payment = this.#payment(pick);
    this.#network.get(payment?.id ?? "")?.act(`auth-${authorization}`, what, this.#mc(mc));
    if (payment !== undefined) this.#note(what);
  }

  #read({ behind, isSlow, pick }: ActionOf<"read">): void {
    const payment = this.#payment(pick);
    if (payment === undefined) return;
    const delivery = this.#delivery(payment, behind);
    if (isSlow) return void this.#deliveries.push(delivery);
    this.#deliver(delivery);
  }

  #delivery(payment: PaymentModel, behind: readonly number[]): Delivery {
    const { agentId, id } = payment;
    const books = this.#network.get(id)?.read(behind) ?? [];
    const command = { kind: "book", agentId, transactionId: id, books, recordsCheckedThrough: 0 } as const;
    const isEmpty = books.length === 0 && !payment.isCleared;
    return { payment, next: isEmpty ? null : { kind: "submit", command } };
  }

  #deliver(delivery: Delivery): void {
    for (let steps = 0; delivery.next !== null; steps += 1) {
      must(steps < 10, `a report of ${delivery.payment.id} is never booked`);
      this.#stepOf(delivery);
    }
  }

  /** Some of what is under way goes on, or its process dies. */
  #step({ isLost, pick }: ActionOf<"step">): void {
    const delivery = this.#deliveries[pick % Math.max(1, this.#deliveries.length)];
    if (delivery === undefined) return;
    if (isLost && delivery.next?.kind === "submit") delivery.next = null;
    else this.#stepOf(delivery);
    this.#deliveries = this.#deliveries.filter(({ next }) => next !== null);
  }

  #stepOf(delivery: Delivery): void {
    const { next, payment } = delivery;
    if (next === null) return;
    const { agentId, id: transactionId } = payment;
    if (next.kind === "record") {
      this.#write(next.booked);
      delivery.next = { kind: "confirm", booked: next.booked };
    } else if (next.kind === "confirm") {
      const { revision } = next.booked;
      this.#judge({ kind: "confirm", agentId, transactionId, revision, outcome: null });
      delivery.next = null;
    } else if (next.kind === "submit") delivery.next = this.#submit(payment, next.command);
  }

  #submit(payment: PaymentModel, command: CommandOf<"book">): Delivery["next"] {
    const before = this.model.used(payment, this.#today);
    const reply = this.#judge(command);
    switch (reply.kind) {
      case "records_check_required":
        this.#note("the record was read first");
        return {
          kind: "submit",
          command: { ...command, ...this.#closed(payment), recordsCheckedThrough: reply.closed },
        };
      case "account_dropped": {
        const policy = this.model.policies.get(payment.agentId) ?? POLICY;
        const { revision: asOfRevision, windows } = reply;
        const dropped = { ...this.#records.closedAgent(payment, policy, windows), asOfRevision };
        return { kind: "submit", command: { ...command, ...this.#closed(payment), dropped } };
      }
      case "payment": {
        if (command.closed !== undefined && reply.changed) this.#note("a closed payment was taken back");
        this.#expectBooked(payment, command.books, before, reply.payment);
        const booked = withTexts(reply.payment, TEXTS);
        return reply.changed ? { kind: "record", booked } : null;
      }
      default:
        throw new Error(`a report was answered ${reply.kind}`);
    }
  }

  #closed({ id }: PaymentModel): Pick<CommandOf<"book">, "closed"> {
    const closed = this.#records.payments.get(id);
    return closed?.phase === "done" ? { closed } : {};
  }

  /** What a booking has lifted above a limit is told, and nothing else. */
  #expectBooked(
    payment: PaymentModel,
    reports: readonly RailBooks[],
    before: readonly Used[],
    { books }: StoredPayment,
  ): void {
    const network = this.#network.get(payment.id);
    for (const report of reports) payment.told(report, network?.numberOf(report) ?? 0);
    payment.readAt(this.#now);
    payment.booked(this.#today);
    payment.exceeded(before, this.model.used(payment, this.#today));
    for (const limit of payment.breaches.keys()) this.#note(`breach: ${limit}`);
    payment.expectBreaches(books, payment.id);
  }

  #changePolicy({ agent, patch }: ActionOf<"policy">): void {
    const { agentId } = AGENTS[agent] ?? AGENTS[0];
    const version = this.#ledger.accounts.get(agentId)?.policyVersion ?? 0;
    const reply = this.#judge({ kind: "change_policy", agentId, patch, version });
    if (reply.kind === "policy") this.model.policies.set(agentId, reply.policy);
  }

  #changeAccount({ agent, change }: ActionOf<"account">): void {
    const { agentId } = AGENTS[agent] ?? AGENTS[0];
    if (change !== "archive") return void this.#judge({ kind: change, agentId });
    const revision = (this.#ledger.accounts.get(agentId)?.followedRevision ?? 0) + 1;
    this.#judge({ kind: "follow_agent", agentId, revision, name: agentId, keyId: null, isArchived: true });
  }

  #confirmRecords(): void {
    const records = [...this.#ledger.accounts.values()].map(({ agentId, revision }) => ({
      agentId,
      revision,
    }));
    this.#judge({ kind: "confirm_records", records });
  }

  #rollOver(): void {
    const packed: unknown = JSON.parse(JSON.stringify(this.#domain.pack(this.#ledger, this.#now)));
    this.#ledger = this.#domain.unpack(packed as ReturnType<LedgerDomain["pack"]>, BOUNDS);
  }

  #write(payment: StoredPayment | undefined): void {
    if (payment !== undefined) this.#records.write(payment);
  }

  /** The ledger is lost, and made anew of the records, once all that it had decided is in them. */
  #restore(): void {
    for (const { open } of this.#ledger.accounts.values())
      for (const { payment } of open.values()) this.#write(payment);
    for (const delivery of this.#deliveries)
      if (delivery.next?.kind === "submit") delivery.next = this.#delivery(delivery.payment, []).next;
    this.#ledger = restoredLedger(this.#records.project(this.#ledger, AGENTS), this.#now, BOUNDS);
    this.#note("restored");
  }

  /** At every level the ledger has what the model has, at any moment. */
  #audit(): void {
    const { accounts, project } = this.#ledger;
    mustEqual({ ...project.totals }, this.model.totals(this.model.of({})), "the totals of the project");
    for (const teamId of TEAMS)
      mustEqual(
        { ...levelOf(this.#ledger, teamId).totals },
        this.model.totals(this.model.of({ teamId })),
        `the totals of ${teamId}`,
      );
    for (const { agentId, usage } of accounts.values()) {
      const { day, reservedMc, spentMc } = usage;
      mustEqual(
        { spentMc, reservedMc },
        this.model.totals(this.model.of({ agentId })),
        `the usage of ${agentId}`,
      );
      mustEqual(day.amountMc, this.model.countedOn(agentId, day.date), `the day ${day.date} of ${agentId}`);
    }
  }

  /** In the end all is read as it is: then the ledger, and every record, has what the network has. */
  #rest(): void {
    for (const delivery of this.#deliveries) this.#deliver(delivery);
    for (const payment of this.model.payments.values()) this.#deliver(this.#delivery(payment, []));
    this.#audit();
    for (const payment of this.model.payments.values()) {
      const network = this.#network.get(payment.id);
      const reports = network?.read([]) ?? [];
      const sumOf = (mcIn: (report: RailBooks) => number): number =>
        reports.reduce((sum, report) => sum + mcIn(report), 0);
      const charged = sumOf(({ capturedMc, creditedMc, recalledMc }) => capturedMc - creditedMc + recalledMc);
      const held = sumOf((each) => (each.isOpen ? Math.max(0, each.authorizedMc - each.capturedMc) : 0));
      const truth = { heldMc: held, spentMc: Math.max(0, charged) };
      const record = this.#open(payment) ?? this.#records.payments.get(payment.id);
      must(record !== undefined, `${payment.id} is nowhere`);
      const isArmed = record.status === "pending" && !payment.isBooked;
      const expected = isArmed ? { heldMc: payment.requestedMc, spentMc: 0 } : truth;
      mustEqual({ ...moneyOf(record) }, expected, `the money of ${payment.id}, and what its network has`);
    }
  }
}
