import type { WorkflowHandle } from "@temporalio/client";
import { z } from "zod";
import type { AgentCommand } from "../../../src/domain/agent/commands.ts";
import type { AgentSettings } from "../../../src/messages/agent.ts";
import { FIRST_KEY, StagedAgent } from "./agent.ts";
import type { TimedStage } from "./timed.ts";

/** An agent's life in a test's words. */
export const WINDOW_MS = 30 * 60_000;
export const LINEAGE = "0199aa00-0000-7000-8000-000000000006";

export interface Begun {
  readonly agent: StagedAgent;
  /** The end of its first key's window. */
  readonly until: number;
}

/** An agent that an organization's key has just created. */
export async function begin(stage: TimedStage, settings: Partial<AgentSettings> = {}): Promise<Begun> {
  const until = (await stage.now()) + WINDOW_MS;
  const firstKey = { keyId: FIRST_KEY, lineageId: LINEAGE, deliverableUntil: until };
  const agent = await StagedAgent.start(stage, { firstKey, settings });
  // Its first task is done.
  await agent.state();
  return { agent, until };
}

export const replayOfCreate: AgentCommand = { kind: "prove_non_delivery", lineageId: LINEAGE };

export const machineArchive: AgentCommand = {
  kind: "archive",
  by: { type: "organization_key", lineageId: LINEAGE, balance: "zero" },
};

export const byPerson: AgentCommand = { kind: "archive", by: { type: "user" } };

const metadata = z.looseObject({ currentDetails: z.string() });

/** What an operator reads in the Temporal UI: the query that it asks. */
export async function detailsOf(handle: WorkflowHandle): Promise<string> {
  return metadata.parse(await handle.query("__temporal_workflow_metadata")).currentDetails;
}

/** Says what changes nothing until the actor goes on in another run. */
export async function rollOver(agent: StagedAgent): Promise<void> {
  const runId = async () => (await agent.handle.describe()).runId;
  const before = await runId();
  while ((await runId()) === before) await agent.submit({ kind: "confirm_record", revision: 1 });
}

/** Lets time go by until the actor has ended. Awaiting its result, the engine's time would go on for ten years where nothing else is due. */
export async function ended(stage: TimedStage, agent: StagedAgent, stepMs = 5_000): Promise<void> {
  while ((await agent.handle.describe()).status.name === "RUNNING") await stage.skip(stepMs);
}
