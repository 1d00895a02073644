import type { WorkflowHandle } from "@temporalio/client";
import type { FirstKey } from "../../../src/domain/agent/access.ts";
import type { AgentCommand, AgentReply } from "../../../src/domain/agent/commands.ts";
import type { AgentProfile } from "../../../src/domain/agent/state.ts";
import type { AgentInput, AgentSettings, AgentStateView, SubmitResult } from "../../../src/messages/agent.ts";
import { AGENT_SETTINGS, AGENT_WORKFLOW, agentWorkflowId, STATE_QUERY } from "../../../src/messages/agent.ts";
import { agentSearchAttributes } from "../../../src/messages/search-attributes.ts";
import { containers } from "./ledger.ts";
import { agentIdOf, projectIdOf, type Stage } from "./stage.ts";

export const FIRST_KEY = "akey_first";

/** A person's create: its window is over at once. */
const BY_PERSON: FirstKey = { keyId: FIRST_KEY, lineageId: null, deliverableUntil: 0 };

export interface AgentPart {
  readonly firstKey?: FirstKey;
  readonly settings?: Partial<AgentSettings>;
  /** Which agent of the scene it is, from 1. */
  readonly number?: number;
}

/** An agent's actor. */
export class StagedAgent {
  readonly #stage: Stage;
  readonly profile: AgentProfile;
  readonly handle: WorkflowHandle;

  private constructor(stage: Stage, number: number) {
    this.#stage = stage;
    this.profile = {
      ...containers,
      projectId: projectIdOf(stage.scene),
      agentId: agentIdOf(stage.scene, number),
      name: "Agent",
    };
    this.handle = stage.client.workflow.getHandle(agentWorkflowId(this.profile.agentId));
  }

  static async start(
    stage: Stage,
    { firstKey = BY_PERSON, number = 1, settings = {} }: AgentPart = {},
  ): Promise<StagedAgent> {
    const agent = new StagedAgent(stage, number);
    const { handle, profile } = agent;
    const input: AgentInput = {
      start: { kind: "create", profile, firstKey },
      settings: { ...AGENT_SETTINGS, ...settings },
    };
    await stage.client.workflow.start(AGENT_WORKFLOW, {
      taskQueue: stage.taskQueue,
      workflowId: handle.workflowId,
      args: [input],
      typedSearchAttributes: agentSearchAttributes(profile, "active"),
    });
    return agent;
  }

  update(...commands: readonly AgentCommand[]): Promise<SubmitResult> {
    return this.#stage.actors.submit(this.profile.agentId, commands);
  }

  async submit(...commands: readonly AgentCommand[]): Promise<readonly AgentReply[]> {
    return (await this.update(...commands)).replies;
  }

  state(): Promise<AgentStateView> {
    return this.handle.query<AgentStateView>(STATE_QUERY);
  }
}
