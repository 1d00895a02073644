import type { Client, WorkflowHandle } from "@temporalio/client";
import { WorkflowIdConflictPolicy, WorkflowIdReusePolicy, WorkflowNotFoundError } from "@temporalio/client";
import { NoSuchActor } from "../../activities/no-such-actor.ts";
import type { BudgetPlace, PaymentWorkflows } from "../../activities/ports.ts";
import type { AgentCommand } from "../../src/domain/agent/commands.ts";
import type { Payment } from "../../src/domain/agent/payment.ts";
import type { FirstKey } from "../../src/domain/agent/access.ts";
import type { BudgetPolicy } from "../../src/domain/agent/policy.ts";
import type { AgentProfile } from "../../src/domain/agent/state.ts";
import type { AgentInput, BudgetQueryInput, BudgetView, SubmitResult } from "../../src/messages/agent.ts";
import {
  AGENT_SETTINGS,
  AGENT_WORKFLOW,
  agentWorkflowId,
  BUDGET_QUERY,
  SUBMIT_UPDATE,
} from "../../src/messages/agent.ts";
import type { BudgetCommand } from "../../src/domain/budget/commands.ts";
import type {
  BudgetInput,
  BudgetSubmitResult,
  CapsView,
  CapView,
  PreviewInput,
} from "../../src/messages/budget.ts";
import {
  BUDGET_SETTINGS,
  BUDGET_SUBMIT_UPDATE,
  BUDGET_WORKFLOW,
  budgetWorkflowId,
  CAPS_QUERY,
  PREVIEW_QUERY,
} from "../../src/messages/budget.ts";
import type { ApprovalInput, ApprovalResult } from "../../src/messages/approval.ts";
import { APPROVAL_WORKFLOW, approvalWorkflowId, RESOLVED_SIGNAL } from "../../src/messages/approval.ts";
import type { OrganizationInput } from "../../src/messages/organization.ts";
import { ORGANIZATION_WORKFLOW, organizationWorkflowId } from "../../src/messages/organization.ts";
import {
  agentSearchAttributes,
  budgetSearchAttributes,
  paymentSearchAttributes,
} from "../../src/messages/search-attributes.ts";
import type { SettlementInput } from "../../src/messages/settlement.ts";
import { SETTLEMENT_WORKFLOW, settlementWorkflowId } from "../../src/messages/settlement.ts";
import type { TemporalCalls } from "./calls.ts";
import { refusalIn } from "./commands-refused.ts";
import type { HadCaps } from "./had-caps.ts";
import { ActorUnavailable } from "./mailbox.ts";

/** What this service says to its actors, and to the workflows that wait with payments. */
export class TemporalActors implements PaymentWorkflows {
  readonly #calls: TemporalCalls;
  readonly #client: Client;
  readonly #hadCaps: HadCaps;

  constructor(calls: TemporalCalls, hadCaps: HadCaps) {
    this.#calls = calls;
    this.#client = calls.client;
    this.#hadCaps = hadCaps;
  }

  /** Throws `NoSuchActor` where there is none, `CommandsRefused` where it takes one of them not. */
  async submit(agentId: string, commands: readonly AgentCommand[]): Promise<SubmitResult> {
    const handle = this.#client.workflow.getHandle(agentWorkflowId(agentId));
    try {
      return await this.#calls.bounded(() =>
        handle.executeUpdate<SubmitResult, [readonly AgentCommand[]]>(SUBMIT_UPDATE, { args: [commands] }),
      );
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw refusalIn(error);
      // Said of an actor that is going on as new just now, too. Who has none is told nothing for good, so that must be sure.
      if (await this.#isRunning(handle))
        throw new ActorUnavailable("the actor goes on as new", { cause: error });
      throw new NoSuchActor(agentId, { cause: error });
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

  budget(agentId: string, query: BudgetQueryInput): Promise<BudgetView> {
    const handle = this.#client.workflow.getHandle(agentWorkflowId(agentId));
    return this.#calls.bounded(() => handle.query<BudgetView, [BudgetQueryInput]>(BUDGET_QUERY, query));
  }

  /** Starts an agent's actor; once, however often it is called with the same agent id. */
  startAgent(profile: AgentProfile, policy: BudgetPolicy, firstKey: FirstKey): Promise<void> {
    const start = { kind: "create", profile, policy, firstKey, asksForCaps: true } as const;
    const input: AgentInput = { start, settings: AGENT_SETTINGS };
    return this.#calls.startOnce(AGENT_WORKFLOW, agentWorkflowId(profile.agentId), [input], {
      typedSearchAttributes: agentSearchAttributes(profile, "active"),
      staticSummary: "An agent: its policy, its counters, its reservations",
    });
  }

  /**
   * One update of a project's budget, which begins with the first. Where there is none and the project had caps, it is not begun anew, as
   * one without caps: throws `ActorUnavailable`. Throws `CommandsRefused` as `submit`.
   */
  async submitToBudget(place: BudgetPlace, commands: readonly BudgetCommand[]): Promise<BudgetSubmitResult> {
    try {
      return await this.#updateBudget(place, commands);
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw refusalIn(error);
      // Said of an actor that is going on as new just now, too.
      const isGone =
        (await this.#hadCaps(place.projectId)) && !(await this.#isRunning(this.#budgetOf(place)));
      if (isGone) throw budgetIsGone(place.projectId, error);
      await this.startBudget(place);
      return this.#updateBudget(place, commands);
    }
  }

  #budgetOf({ projectId }: BudgetPlace): WorkflowHandle {
    return this.#client.workflow.getHandle(budgetWorkflowId(projectId));
  }

  #updateBudget(place: BudgetPlace, commands: readonly BudgetCommand[]): Promise<BudgetSubmitResult> {
    return this.#calls.bounded(() =>
      this.#budgetOf(place).executeUpdate<BudgetSubmitResult, [readonly BudgetCommand[]]>(
        BUDGET_SUBMIT_UPDATE,
        {
          args: [commands],
        },
      ),
    );
  }

  /** Starts a project's budget; once, however often it is called. */
  startBudget({ organizationId, projectId }: BudgetPlace): Promise<void> {
    const input: BudgetInput = {
      start: { kind: "create", organizationId, projectId },
      settings: BUDGET_SETTINGS,
    };
    return this.#calls.startOnce(BUDGET_WORKFLOW, budgetWorkflowId(projectId), [input], {
      typedSearchAttributes: budgetSearchAttributes(organizationId, projectId),
      staticSummary: "A project's budget: the caps over its agents, and what they have used of them",
    });
  }

  /** A project's caps; null while none was ever set, nor any agent has asked. Throws `ActorUnavailable` where they are lost. */
  async caps(projectId: string): Promise<CapsView | null> {
    const handle = this.#client.workflow.getHandle(budgetWorkflowId(projectId));
    try {
      return await this.#calls.bounded(() => handle.query<CapsView>(CAPS_QUERY));
    } catch (error) {
      return await this.#nullWithoutCaps(error, projectId);
    }
  }

  /** What a project's caps leave to an agent; null, and throws, as `caps`. */
  async previewCaps(projectId: string, input: PreviewInput): Promise<CapView | null> {
    const handle = this.#client.workflow.getHandle(budgetWorkflowId(projectId));
    try {
      return await this.#calls.bounded(() => handle.query<CapView, [PreviewInput]>(PREVIEW_QUERY, input));
    } catch (error) {
      return await this.#nullWithoutCaps(error, projectId);
    }
  }

  async #nullWithoutCaps(error: unknown, projectId: string): Promise<null> {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
    if (await this.#hadCaps(projectId)) throw budgetIsGone(projectId, error);
    return null;
  }

  startApproval(profile: AgentProfile, payment: Payment): Promise<void> {
    const input = approvalInput(profile, payment);
    if (input === null) return Promise.resolve();
    const id = approvalWorkflowId(input.approvalId);
    return this.#calls.startOnce(APPROVAL_WORKFLOW, id, [input], approvalOptions(profile, payment));
  }

  /** Tells the approval's workflow; one that never came to run is started with it, one that has ended knows. */
  async tellApproval(profile: AgentProfile, payment: Payment): Promise<void> {
    const input = approvalInput(profile, payment);
    if (input === null) return;
    await this.#calls.ignoringStarted(() =>
      this.#client.workflow.signalWithStart(APPROVAL_WORKFLOW, {
        ...this.#calls.once,
        ...approvalOptions(profile, payment),
        workflowId: approvalWorkflowId(input.approvalId),
        args: [input],
        signal: RESOLVED_SIGNAL,
        signalArgs: [payment],
      }),
    );
  }

  startSettlement(profile: AgentProfile, payment: Payment): Promise<void> {
    const { transactionId } = payment.request;
    const input: SettlementInput = { profile, payment, asked: 0 };
    return this.#calls.startOnce(SETTLEMENT_WORKFLOW, settlementWorkflowId(transactionId), [input], {
      typedSearchAttributes: paymentSearchAttributes(profile, transactionId, null),
      staticSummary: `Follows ${transactionId} on the ${payment.request.rail} rail`,
    });
  }

  /**
   * Has an organization provisioned: starts its workflow, unless it runs, and waits for its end. False when that takes
   * longer than the bound; it goes on all the same. Its steps may be repeated, so an ended one may run again.
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

  /** Waits so long for a payment's end on its rail, which a workflow follows; whether it came. */
  async settled(transactionId: string, withinMs: number): Promise<boolean> {
    const handle = this.#client.workflow.getHandle(settlementWorkflowId(transactionId));
    try {
      await this.#client.withDeadline(Date.now() + withinMs, () => handle.result());
      return true;
    } catch {
      return false;
    }
  }

  /** The payment once its approval is carried out; null when that takes longer than the bound. */
  approvalResult(approvalId: string, withinMs: number): Promise<ApprovalResult | null> {
    return this.#calls.resultWithin(approvalWorkflowId(approvalId), withinMs);
  }
}

const budgetIsGone = (projectId: string, cause: unknown): ActorUnavailable =>
  new ActorUnavailable(`the budget of project ${projectId} is gone, and its caps with it`, { cause });

function approvalInput(profile: AgentProfile, payment: Payment): ApprovalInput | null {
  const { approval, request } = payment;
  if (approval === null) return null;
  return {
    profile,
    approvalId: approval.id,
    transactionId: request.transactionId,
    amountCents: request.amountCents,
    flaggedByRuleTypes: approval.flaggedByRuleTypes,
    expiresAt: approval.expiresAt,
  };
}

const approvalOptions = (profile: AgentProfile, payment: Payment) => ({
  typedSearchAttributes: paymentSearchAttributes(profile, payment.request.transactionId, "pending"),
  staticSummary: `Waits for a person's decision on ${payment.request.transactionId}`,
});
