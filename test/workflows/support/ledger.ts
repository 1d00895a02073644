import type { WorkflowHandle } from "@temporalio/client";
import { wholePayment, wholeReply } from "../../../src/actors/whole-payment.ts";
import type { Payment, PaymentRequest } from "../../../src/domain/ledger/payment.ts";
import type { BudgetPolicy } from "../../../src/domain/ledger/policy.ts";
import type { AgentProfile } from "../../../src/domain/agent/state.ts";
import type { LedgerCommand, LedgerReply } from "../../../src/domain/ledger/commands.ts";
import type { PackedLedger } from "../../../src/domain/ledger/pack.ts";
import { decidedPayment } from "../../../src/domain/ledger/pay.ts";
import {
  ACCOUNT_QUERY,
  type AccountQueryInput,
  type AccountView,
  type AccountSnapshot,
  SNAPSHOT_QUERY,
  type SnapshotPage,
  type SnapshotQueryInput,
  confirmationOf,
  type ExecutionResult,
  LEDGER_SETTINGS,
  LEDGER_STATE_QUERY,
  LEDGER_WORKFLOW,
  type LedgerInput,
  type ProjectRef,
  type LedgerSettings,
  type LedgerStateView,
  type LedgerSubmitResult,
  ledgerWorkflowId,
} from "../../../src/messages/ledger.ts";
import { ledgerSearchAttributes } from "../../../src/messages/search-attributes.ts";
import { VOUCHED } from "./doubles.ts";
import { agentIdOf, only, projectIdOf, type Stage } from "./stage.ts";

const DAY_SECONDS = 86_400;

export const containers = {
  organizationId: "0199aa00-0000-7000-8000-000000000001",
  projectId: "0199aa00-0000-7000-8000-000000000002",
  teamId: "0199aa00-0000-7000-8000-000000000003",
};

export const policy: BudgetPolicy = {
  budgetCents: 10_000,
  autoApprovalThresholdCents: 5_000,
  perTransactionLimitCents: null,
  dailySpendLimitCents: null,
  hourlyVelocityLimit: null,
  dailyVelocityLimit: null,
};

export const human = { userId: "0199aa00-0000-7000-8000-000000000005", name: "Ada" };

/** The key that agents pay with. */
export const KEY = "akey_1";

type Of<K extends LedgerReply["kind"]> = Extract<LedgerReply<Payment>, { kind: K }>;

/** The ledger of a scene's project. */
export class StagedLedger {
  readonly stage: Stage;
  readonly place: ProjectRef;
  readonly handle: WorkflowHandle;

  private constructor(stage: Stage) {
    this.stage = stage;
    this.place = { organizationId: containers.organizationId, projectId: projectIdOf(stage.scene) };
    this.handle = stage.client.workflow.getHandle(ledgerWorkflowId(this.place.projectId));
  }

  /** `packed`: what the run before has carried over. */
  static async start(
    stage: Stage,
    settings: Partial<LedgerSettings> = {},
    packed?: PackedLedger,
  ): Promise<StagedLedger> {
    const ledger = new StagedLedger(stage);
    const { handle, place } = ledger;
    const input: LedgerInput = {
      start: packed === undefined ? { kind: "create", ...place } : { kind: "resume", ledger: packed },
      settings: { ...LEDGER_SETTINGS, ...settings },
    };
    await stage.client.workflow.start(LEDGER_WORKFLOW, {
      // Of the engine's time: what is skipped while a task is at work must not end it.
      workflowTaskTimeout: "120 seconds",
      taskQueue: stage.taskQueue,
      workflowId: handle.workflowId,
      args: [input],
      typedSearchAttributes: ledgerSearchAttributes(place.organizationId, place.projectId),
    });
    return ledger;
  }

  update(...commands: readonly LedgerCommand[]): Promise<LedgerSubmitResult> {
    return this.stage.actors.submitToLedger(this.place, commands);
  }

  async submit(...commands: readonly LedgerCommand[]): Promise<readonly LedgerReply<Payment>[]> {
    const { replies } = await this.update(...commands);
    const { actors, projections } = this.stage;
    const sources = { projections, proofs: VOUCHED, workflows: actors };
    const payer = { organizationId: this.place.organizationId, agentId: "" };
    return Promise.all(
      replies.map((reply) => wholeReply(reply, (payment) => wholePayment(sources, payer, payment))),
    );
  }

  async ask<K extends LedgerReply["kind"]>(kind: K, command: LedgerCommand): Promise<Of<K>> {
    const reply = only(await this.submit(command));
    if (!isOf(kind, reply)) throw new Error(`got ${JSON.stringify(reply)}`);
    return reply;
  }

  /** Opens the accounts of the first agents of the scene, in one update. */
  async open(count: number, change: Partial<BudgetPolicy> = {}): Promise<readonly StagedAccount[]> {
    const accounts = Array.from({ length: count }, (_none, index) => new StagedAccount(this, index + 1));
    const replies = await this.submit(...accounts.map((account) => account.opening(change)));
    for (const reply of replies) if (reply.kind !== "opened") throw new Error(`got ${reply.kind}`);
    return accounts;
  }

  /** Sets the cap of the project (null) or a team; its record is not written. */
  cap(teamId: string | null, version: number, capCents: number | null): Promise<Of<"replaced">> {
    return this.ask(
      "replaced",
      teamId === null
        ? { kind: "replace_project", version, capCents, teams: [] }
        : { kind: "replace_team", teamId, version, capCents, agents: [] },
    );
  }

  state(): Promise<LedgerStateView> {
    return this.handle.query<LedgerStateView>(LEDGER_STATE_QUERY);
  }

  async books(): Promise<readonly AccountSnapshot[]> {
    const query: SnapshotQueryInput = { after: null, limit: 1_000 };
    return (await this.handle.query<SnapshotPage, [SnapshotQueryInput]>(SNAPSHOT_QUERY, query)).accounts;
  }
}

/** A ledger with the account of one agent, as most scenes have it. */
export async function withAccount(
  stage: Stage,
  change: Partial<BudgetPolicy> = {},
  settings: Partial<LedgerSettings> = {},
): Promise<{ readonly ledger: StagedLedger; readonly account: StagedAccount }> {
  const ledger = await StagedLedger.start(stage, settings);
  return { ledger, account: only(await ledger.open(1, change)) };
}

/** An agent's account, and what a server does with it. */
export class StagedAccount {
  readonly ledger: StagedLedger;
  readonly profile: AgentProfile;
  readonly agentId: string;
  #numbered = 0;
  #revision = 1;

  readonly #permits = new Map<string, number>();

  constructor(ledger: StagedLedger, number = 1) {
    this.ledger = ledger;
    this.agentId = agentIdOf(ledger.stage.scene, number);
    this.profile = { ...containers, ...ledger.place, agentId: this.agentId, name: "Agent" };
  }

  opening(change: Partial<BudgetPolicy> = {}): LedgerCommand {
    const { agentId, name, teamId } = this.profile;
    return { kind: "open_account", agentId, teamId, name, policy: { ...policy, ...change }, keyId: KEY };
  }

  request(amountCents: number, change: Partial<PaymentRequest> = {}): PaymentRequest {
    this.#numbered += 1;
    const number = `${this.agentId.slice("agent-".length)}-${String(this.#numbered).padStart(4, "0")}`;
    return {
      transactionId: `txn_${number}`,
      approvalId: `apr_${number}`,
      keyHash: `key-${number}`,
      payloadHash: `payload-${number}`,
      fingerprint: `fingerprint-${String(amountCents)}`,
      proof: "",
      rail: "card",
      amountCents,
      currency: "USD",
      recipient: "shop",
      merchantCategory: null,
      purpose: "a test",
      ...change,
    };
  }

  paying(request: PaymentRequest, approvalWindowSeconds = DAY_SECONDS): LedgerCommand {
    const { agentId } = this;
    return { kind: "pay", agentId, keyId: KEY, request, approvalWindowSeconds, recordsCheckedThrough: 0 };
  }

  /** A payment that must be decided; nothing of it is carried out. */
  async pay(amountCents: number, approvalWindowSeconds = DAY_SECONDS): Promise<Payment> {
    const request = this.request(amountCents);
    const { decision, permit } = await this.ledger.ask(
      "decided",
      this.paying(request, approvalWindowSeconds),
    );
    if (permit !== null) this.#permits.set(request.transactionId, permit);
    return decidedPayment(request, decision);
  }

  /** What a server does with a payment at once. `agoMs`: so long ago it has asked. */
  async execute(payment: Payment, agoMs = 0): Promise<ExecutionResult> {
    const { effects } = this.ledger.stage;
    const permit = this.#permits.get(payment.request.transactionId);
    const hints = permit === undefined ? {} : { decided: { permit, requestedMs: performance.now() - agoMs } };
    const done = await effects.execute(this.profile, payment, hints);
    await effects.publish(this.profile, done.payment, "soon");
    return done;
  }

  confirmation(done: ExecutionResult): LedgerCommand {
    return confirmationOf(this.agentId, done);
  }

  /** What a server does with a payment, and tells the ledger. */
  async finish(payment: Payment): Promise<Payment> {
    const done = await this.execute(payment);
    await this.ledger.submit(this.confirmation(done));
    return done.payment;
  }

  /** Pays as a server does, to the end; what became of it. */
  async payThrough(amountCents: number): Promise<Payment> {
    return this.finish(await this.pay(amountCents));
  }

  async resolve(kind: "approve" | "deny" | "cancel", { request }: Payment): Promise<Of<"payment">> {
    const { agentId } = this;
    const { transactionId } = request;
    if (kind === "cancel") return this.ledger.ask("payment", { kind, agentId, transactionId });
    const by = { by: human, proof: "" };
    const reply = await this.ledger.ask(
      "payment",
      kind === "approve"
        ? { kind, agentId, transactionId, ...by }
        : { kind, agentId, transactionId, ...by, feedback: "Too dear." },
    );
    if (reply.permit !== undefined) this.#permits.set(transactionId, reply.permit);
    return reply;
  }

  /** What its agent's actor has told: its key is revoked, or it is archived. */
  following(what: "revoked" | "archived"): LedgerCommand {
    this.#revision += 1;
    const { agentId, profile } = this;
    return {
      kind: "follow_agent",
      agentId,
      name: profile.name,
      revision: this.#revision,
      keyId: null,
      isArchived: what === "archived",
    };
  }

  /** As the ledger has it for who compares it with the records; undefined: there is none any more. */
  async booked(): Promise<AccountSnapshot | undefined> {
    return (await this.ledger.books()).find(({ agentId }) => agentId === this.agentId);
  }

  view(now: number, payment: AccountQueryInput["payment"] = null): Promise<AccountView | null> {
    const query: AccountQueryInput = { agentId: this.agentId, now, payment };
    return this.ledger.handle.query<AccountView | null, [AccountQueryInput]>(ACCOUNT_QUERY, query);
  }

  /** Spent, reserved, and how many payments are open. */
  async totals(): Promise<{ spent: number; reserved: number; open: number }> {
    const { open, reservedCents, spentCents } = (await this.booked()) ?? GONE;
    return { spent: spentCents, reserved: reservedCents, open: open.length };
  }
}

const GONE = { open: [], reservedCents: 0, spentCents: 0 };

const isOf = <K extends LedgerReply["kind"]>(kind: K, reply: LedgerReply): reply is Of<K> =>
  reply.kind === kind;
