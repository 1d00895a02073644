import type { WorkflowHandle } from "@temporalio/client";
import { z } from "zod";
import { ActorUnavailable } from "../../../server/actors/mailbox.ts";
import type { AgentCommand, AgentReply } from "../../../src/domain/agent/commands.ts";
import type { BundledKey } from "../../../src/domain/agent/access.ts";
import type { AgentSettings } from "../../../src/messages/agent.ts";
import { StagedAgent } from "./agent.ts";
import type { TimedStage } from "./timed.ts";

/** An agent's life in a test's words. */
export const WINDOW_MS = 30 * 60_000;
export const LINEAGE = "0199aa00-0000-7000-8000-000000000006";
export const FIRST_KEY = "akey_first";

export interface Begun {
  readonly agent: StagedAgent;
  /** The end of its first key's window. */
  readonly until: number;
}

/** An agent that an organization's key has just created. */
export async function begin(stage: TimedStage, settings: Partial<AgentSettings> = {}): Promise<Begun> {
  const until = (await stage.now()) + WINDOW_MS;
  const firstKey = { keyId: FIRST_KEY, lineageId: LINEAGE, deliverableUntil: until };
  const agent = await StagedAgent.start(stage, settings, {}, firstKey);
  // Its first task is done.
  await agent.state();
  return { agent, until };
}

export const replayOfCreate: AgentCommand = { kind: "prove_non_delivery", lineageId: LINEAGE };

export const machineArchive: AgentCommand = {
  kind: "archive",
  by: { type: "organization_key", lineageId: LINEAGE, balance: "zero" },
};

export async function bundledOf(agent: StagedAgent): Promise<BundledKey> {
  const bundled = (await agent.state()).access?.bundled ?? null;
  if (bundled === null) throw new Error("the actor knows of no first key");
  return bundled;
}

const metadata = z.looseObject({ currentDetails: z.string() });

/** What an operator reads in the Temporal UI: the query that it asks. */
export async function detailsOf(handle: WorkflowHandle): Promise<string> {
  return metadata.parse(await handle.query("__temporal_workflow_metadata")).currentDetails;
}

const ASKS_MAX = 5;

/** Asks as a server's client does: what was caught between two runs is asked again. */
export async function insist(agent: StagedAgent, command: AgentCommand): Promise<AgentReply | undefined> {
  for (let asks = 1; ; asks += 1) {
    try {
      return (await agent.submit(command))[0];
    } catch (error) {
      if (!(error instanceof ActorUnavailable) || asks >= ASKS_MAX) throw error;
    }
  }
}

/** Pauses and resumes, which leaves keys and money alone, until the actor goes on in another run. */
export async function rollOver(agent: StagedAgent): Promise<void> {
  const runId = async () => (await agent.handle.describe()).runId;
  const before = await runId();
  while ((await runId()) === before) {
    await insist(agent, { kind: "pause" });
    await insist(agent, { kind: "resume" });
  }
}
