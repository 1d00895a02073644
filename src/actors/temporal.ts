import { usedCents } from "../domain/money.ts";
import type { Client, WorkflowHandle } from "@temporalio/client";
import {
  QueryRejectedError,
  WorkflowIdConflictPolicy,
  WorkflowIdReusePolicy,
  WorkflowNotFoundError,
} from "@temporalio/client";
import { setTimeout as sleep } from "node:timers/promises";
import { newUuid } from "../lib/ids.ts";
import { forUpdate, openAnswer, type Opened } from "../messages/envelope.ts";
import { ActorUnavailable } from "./actor-unavailable.ts";
import { NoSuchActor } from "./no-such-actor.ts";
import type { LedgerStarter, PaymentWorkflows } from "../payments/ports.ts";
import type { AgentCommand } from "../domain/agent/commands.ts";
import { type Payment, type PaymentTexts, type StoredPayment, textsIn } from "../domain/ledger/payment.ts";
import type { FirstKey } from "../domain/agent/access.ts";
import type { AgentProfile } from "../domain/agent/state.ts";
import type { LedgerCommand } from "../domain/ledger/commands.ts";
import type { PackedLedger } from "../domain/ledger/pack.ts";
import type { AgentInput, SubmitResult } from "../messages/agent.ts";
import {
  AGENT_SETTINGS,
  AGENT_WORKFLOW,
  agentWorkflowId,
  STATE_QUERY,
  SUBMIT_UPDATE,
} from "../messages/agent.ts";
import type { ApprovalEnd, ApprovalInput, ApprovalStateView } from "../messages/approval.ts";
import { APPROVAL_WORKFLOW, approvalWorkflowId, RESOLVED_SIGNAL } from "../messages/approval.ts";
import type {
  AccountQueryInput,
  AccountView,
  SnapshotPage,
  SnapshotQueryInput,
  CapsView,
  LedgerInput,
  ProjectRef,
  LedgerStateView,
  LedgerSubmitResult,
  TeamBudgetView,
} from "../messages/ledger.ts";
import {
  ACCOUNT_QUERY,
  SNAPSHOT_QUERY,
  CAPS_QUERY,
  LEDGER_SETTINGS,
  LEDGER_STATE_QUERY,
  LEDGER_SUBMIT_UPDATE,
  LEDGER_TASK_TIMEOUT_SECONDS,
  type LedgerSettings,
  LEDGER_WORKFLOW,
  ledgerWorkflowId,
  NOTHING_KNOWN,
  TEAM_BUDGET_QUERY,
} from "../messages/ledger.ts";
import type { OrganizationInput } from "../messages/organization.ts";
import { ORGANIZATION_WORKFLOW, organizationWorkflowId } from "../messages/organization.ts";
import {
  agentSearchAttributes,
  ledgerSearchAttributes,
  paymentSearchAttributes,
} from "../messages/search-attributes.ts";
import type { SettlementInput, SettlementStateView } from "../messages/settlement.ts";
import {
  RAIL_NETWORK_WORKFLOW,
  type RailNetworkInput,
  railNetworkWorkflowId,
} from "../messages/rail-network.ts";
import { SETTLEMENT_WORKFLOW, settlementWorkflowId, waitingWorkflowId } from "../messages/settlement.ts";
import { LedgerLost } from "./actor-unavailable.ts";
import type { StartOptions, TemporalCalls } from "./calls.ts";
import { refusalIn } from "./commands-refused.ts";

/** Maximum retries, and their interval, of an update that arrives between two runs of an actor. */
const ROLL_OVER_RETRIES_MAX = 20;
const ROLL_OVER_RETRY_MS = 5;

export class TemporalActors implements PaymentWorkflows, LedgerStarter {
  readonly #calls: TemporalCalls;
  readonly #client: Client;
  readonly #ledgerSettings: LedgerSettings;

  constructor(calls: TemporalCalls, ledgerSettings = LEDGER_SETTINGS) {
    this.#calls = calls;
    this.#client = calls.client;
    this.#ledgerSettings = ledgerSettings;
  }

  /** Throws `NoSuchActor` if there is none, `CommandsRefused` if the actor rejects one of the commands. */
  submit(agentId: string, commands: readonly AgentCommand[]): Promise<SubmitResult> {
    return this.#update<SubmitResult>(
      { workflowId: agentWorkflowId(agentId), update: SUBMIT_UPDATE, args: [commands] },
      (cause) => new NoSuchActor(agentId, { cause }),
    );
  }

  /** Starts an agent's actor. Idempotent by the agent's id. */
  startAgent(profile: AgentProfile, firstKey: FirstKey): Promise<void> {
    const input: AgentInput = { start: { kind: "create", profile, firstKey }, settings: AGENT_SETTINGS };
    return this.#calls.startOnce(AGENT_WORKFLOW, agentWorkflowId(profile.agentId), [input], {
      typedSearchAttributes: agentSearchAttributes(profile, "active"),
      staticSummary: "An agent: its name, its keys and its end",
    });
  }

  /**
   * Throws `LedgerLost` if the ledger no longer exists, `CommandsRefused` if it rejects one of the commands, and
   * `StaleLedger` or `StaleRecords` if it decides nothing because of `known`.
   */
  submitToLedger(
    { projectId }: ProjectRef,
    commands: readonly LedgerCommand[],
    known = NOTHING_KNOWN,
  ): Promise<LedgerSubmitResult> {
    return this.#update<LedgerSubmitResult>(
      { workflowId: ledgerWorkflowId(projectId), update: LEDGER_SUBMIT_UPDATE, args: [commands, known] },
      (cause) => ledgerLost(projectId, cause),
    );
  }

  async #update<R>({ args, update, workflowId }: Update, lost: (cause: unknown) => Error): Promise<R> {
    const handle = this.#client.workflow.getHandle(workflowId);
    for (let tries = 1; ; tries += 1) {
      try {
        const updateId = newUuid();
        const answer = await this.#calls.bounded(() =>
          handle.executeUpdate<unknown, [unknown, ...unknown[]]>(update, { args: [...args], updateId }),
        );
        return answerIn(openAnswer<R>(forUpdate(update, updateId), answer));
      } catch (error) {
        if (!(error instanceof WorkflowNotFoundError)) throw refusalIn(error);
        // Also thrown for an actor that is just continuing as new. A missing ledger is a permanent error, so this is
        // checked.
        if (!(await this.#isRunning(handle)) || tries > ROLL_OVER_RETRIES_MAX) throw lost(error);
        await sleep(ROLL_OVER_RETRY_MS);
      }
    }
  }

  async #isRunning(handle: WorkflowHandle): Promise<boolean> {
    try {
      const { status } = await this.#calls.bounded(() => handle.describe());
      return status.name === "RUNNING";
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return false;
      throw error;
    }
  }

  /** Starts a project's ledger. Idempotent; only before the project has a record. */
  startLedger({ organizationId, projectId }: ProjectRef): Promise<void> {
    const input: LedgerInput = {
      start: { kind: "create", organizationId, projectId },
      settings: this.#ledgerSettings,
    };
    const options = ledgerOptions(organizationId, projectId);
    return this.#calls.startOnce(LEDGER_WORKFLOW, ledgerWorkflowId(projectId), [input], options);
  }

  /**
   * Returns Temporal's status of a project's ledger, with a null `endedAt` while it runs; null if Temporal knows none.
   */
  async ledgerStatus(projectId: string): Promise<LedgerStatus | null> {
    const handle = this.#client.workflow.getHandle(ledgerWorkflowId(projectId));
    try {
      const { closeTime = null, status } = await this.#calls.bounded(() => handle.describe());
      return { name: status.name, endedAt: status.name === "RUNNING" ? null : closeTime };
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return null;
      throw error;
    }
  }

  /** Restarts a lost ledger in its former state. Throws `WorkflowExecutionAlreadyStartedError` if one runs. */
  async resumeLedger(ledger: PackedLedger): Promise<void> {
    const { organizationId, projectId } = ledger;
    const input: LedgerInput = { start: { kind: "resume", ledger }, settings: this.#ledgerSettings };
    await this.#calls.bounded(() =>
      this.#client.workflow.start(LEDGER_WORKFLOW, {
        ...ledgerOptions(organizationId, projectId),
        taskQueue: this.#calls.once.taskQueue,
        workflowId: ledgerWorkflowId(projectId),
        workflowIdConflictPolicy: WorkflowIdConflictPolicy.FAIL,
        workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
        args: [input],
      }),
    );
  }

  /** Returns an agent's account; null if the ledger has dropped it, so that only its records are left. */
  account(projectId: string, query: AccountQueryInput): Promise<AccountView | null> {
    return this.#query(projectId, ACCOUNT_QUERY, query);
  }

  caps(projectId: string): Promise<CapsView> {
    return this.#query(projectId, CAPS_QUERY, { now: Date.now() });
  }

  teamBudget(projectId: string, teamId: string): Promise<TeamBudgetView> {
    return this.#query(projectId, TEAM_BUDGET_QUERY, { teamId, now: Date.now() });
  }

  ledgerState(projectId: string): Promise<LedgerStateView> {
    return this.#query(projectId, LEDGER_STATE_QUERY);
  }

  /** Permanently ends a project's ledger on an operator's command. */
  async endLedger(projectId: string, reason: string): Promise<void> {
    const handle = this.#client.workflow.getHandle(ledgerWorkflowId(projectId));
    await this.#calls.bounded(() => handle.terminate(reason));
  }

  ledgerSnapshot(projectId: string, query: SnapshotQueryInput): Promise<SnapshotPage> {
    return this.#query(projectId, SNAPSHOT_QUERY, query);
  }

  /** Throws `LedgerLost` if the ledger no longer exists. */
  async #query<R>(projectId: string, query: string, ...args: unknown[]): Promise<R> {
    const handle = this.#client.workflow.getHandle(ledgerWorkflowId(projectId));
    try {
      return await this.#calls.query(handle, query, ...args);
    } catch (error) {
      const isLost = error instanceof WorkflowNotFoundError || error instanceof QueryRejectedError;
      if (isLost) throw ledgerLost(projectId, error);
      throw error;
    }
  }

  startApproval(profile: AgentProfile, payment: Payment): Promise<void> {
    const input = approvalInput(profile, payment);
    if (input === null) return Promise.resolve();
    const id = approvalWorkflowId(input.approvalId);
    return this.#calls.startOnce(APPROVAL_WORKFLOW, id, [input], approvalOptions(profile, payment));
  }

  /** Ends the approval's workflow. Starts one that never ran, together with the signal; ignores one that has ended. */
  async endApproval(profile: AgentProfile, payment: Payment, end: ApprovalEnd): Promise<void> {
    const input = approvalInput(profile, payment);
    if (input === null) return;
    await this.#calls.ignoringStarted(() =>
      this.#client.workflow.signalWithStart(APPROVAL_WORKFLOW, {
        ...this.#calls.once,
        ...approvalOptions(profile, payment),
        workflowId: approvalWorkflowId(input.approvalId),
        args: [input],
        signal: RESOLVED_SIGNAL,
        signalArgs: [end],
      }),
    );
  }

  startSettlement(profile: AgentProfile, payment: Payment): Promise<void> {
    const { transactionId } = payment.request;
    const input: SettlementInput = { profile, payment, polls: 0 };
    return this.#calls.startOnce(SETTLEMENT_WORKFLOW, settlementWorkflowId(transactionId), [input], {
      typedSearchAttributes: paymentSearchAttributes(profile, transactionId, null),
      staticSummary: `Follows ${transactionId} on the ${payment.request.rail} rail`,
    });
  }

  startRailNetwork(profile: AgentProfile, { effects, rail, transactionId }: RailNetworkInput): Promise<void> {
    // The rail's effects have more fields than the workflow needs.
    const timed = effects.map(({ afterSeconds }) => ({ afterSeconds }));
    const input: RailNetworkInput = { rail, transactionId, effects: timed };
    return this.#calls.startOnce(RAIL_NETWORK_WORKFLOW, railNetworkWorkflowId(transactionId), [input], {
      typedSearchAttributes: paymentSearchAttributes(profile, transactionId, null),
      staticSummary: `Plays the ${rail} network's part in ${transactionId}`,
    });
  }

  async textsOf(payment: StoredPayment): Promise<PaymentTexts | null> {
    const handle = this.#client.workflow.getHandle(waitingWorkflowId(payment));
    try {
      return (await this.#calls.query<ApprovalStateView | SettlementStateView>(handle, STATE_QUERY)).texts;
    } catch (error) {
      if (error instanceof WorkflowNotFoundError || error instanceof QueryRejectedError) return null;
      throw error;
    }
  }

  /**
   * Runs an organization's provisioning workflow, or joins a running one, and waits for its end. Returns false if that
   * takes longer than `withinMs`; the workflow then continues. Its steps are idempotent, so an ended one may run again.
   */
  async provision(input: OrganizationInput, withinMs: number): Promise<boolean> {
    const handle = await this.#calls.bounded(() =>
      this.#client.workflow.start(ORGANIZATION_WORKFLOW, {
        taskQueue: this.#calls.once.taskQueue,
        workflowId: organizationWorkflowId(input.organizationId),
        workflowIdConflictPolicy: WorkflowIdConflictPolicy.USE_EXISTING,
        workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
        args: [input],
        staticSummary: "Provisions an organization",
      }),
    );
    if (withinMs <= 0) return false;
    try {
      await this.#client.withDeadline(Date.now() + withinMs, () => handle.result());
      return true;
    } catch {
      return false;
    }
  }

  /** Resolves to whether the payment settled on its rail within `withinMs`. */
  async settled(transactionId: string, withinMs: number): Promise<boolean> {
    return (await this.#calls.resultWithin(settlementWorkflowId(transactionId), withinMs)) !== null;
  }
}

/** Throws `ActorUnavailable` if this is not the service's own response to this very update. */
export function answerIn<R>(opened: Opened<R>): R {
  if (opened.ok) return opened.value;
  throw new ActorUnavailable(`the actor's response is not this service's: ${opened.refused}`);
}

interface Update {
  readonly workflowId: string;
  readonly update: string;
  readonly args: readonly [unknown, ...unknown[]];
}

export interface LedgerStatus {
  readonly name: string;
  readonly endedAt: Date | null;
}

const ledgerOptions = (organizationId: string, projectId: string): StartOptions => ({
  typedSearchAttributes: ledgerSearchAttributes(organizationId, projectId),
  staticSummary: "A project's ledger: the money of all its agents, under all limits",
  workflowTaskTimeout: `${LEDGER_TASK_TIMEOUT_SECONDS} seconds`,
});

const ledgerLost = (projectId: string, cause: unknown): LedgerLost =>
  new LedgerLost(`the ledger of project ${projectId} is lost: restore it (npm run admin -- restore-ledger)`, {
    cause,
  });

function approvalInput(profile: AgentProfile, payment: Payment): ApprovalInput | null {
  const { approval, request } = payment;
  if (approval === null) return null;
  return {
    profile,
    approvalId: approval.id,
    transactionId: request.transactionId,
    amountCents: usedCents(request.amountMc),
    texts: textsIn(request),
    flaggedByRuleTypes: approval.flaggedByRuleTypes,
    expiresAt: approval.expiresAt,
  };
}

const approvalOptions = (profile: AgentProfile, payment: Payment) => ({
  typedSearchAttributes: paymentSearchAttributes(profile, payment.request.transactionId, "pending"),
  staticSummary: `Waits for a person's decision on ${payment.request.transactionId}`,
});
