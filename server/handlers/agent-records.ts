import type { AgentDocument } from "../../activities/documents.ts";
import type { Collections } from "../collections.ts";

/** An agent's record as it is by now; the pipeline has found it, and records of agents are never removed. */
export const agentsIn =
  ({ agents }: Collections) =>
  async (id: string): Promise<AgentDocument> => {
    const agent = await agents.findOne({ _id: id });
    if (agent === null) throw new Error(`agent ${id} has lost its record`);
    return agent;
  };
