import { expect } from "chai";
import {
  type AgentDocument,
  COLLECTIONS,
  type EventDocument,
  type KeyDeliveryDocument,
} from "../../../src/store/documents.ts";
import type { CreateDocument } from "../../../src/store/collections.ts";
import { firstKeyId } from "../../../src/domain/api-key.ts";
import type { DailyCreatesDocument } from "../../../src/store/organization-key-documents.ts";
import { agentWorkflowId } from "../../../src/messages/agent.ts";
import { until } from "../../support/process.ts";
import type { Creator, LifeStage } from "./life-stage.ts";

const VISIBLE_MS = 120_000;

/** Everything that a creator's team holds, seen from outside of the service. */
export interface Team {
  readonly agents: readonly AgentDocument[];
  readonly created: readonly EventDocument[];
  /** The actors that run in it, by their workflows' ids. */
  readonly running: readonly string[];
  /** Places under the creator's daily limit: the creates that are committed, and the others. */
  readonly committed: readonly string[];
  readonly uncommitted: readonly string[];
}

export async function teamOf({ db, temporal }: LifeStage, { lineageId, teamId }: Creator): Promise<Team> {
  const agents = await db.collection<AgentDocument>(COLLECTIONS.agents).find({ teamId }).toArray();
  const events = db.collection<EventDocument>(COLLECTIONS.events);
  const created = await events.find({ teamId, type: "agent.created" }).toArray();
  const query = `TeamId = "${teamId}" AND WorkflowType = "agent" AND ExecutionStatus = "Running"`;
  const running: string[] = [];
  for await (const { workflowId } of temporal.workflow.list({ query })) running.push(workflowId);
  const days = db
    .collection<DailyCreatesDocument>("daily_creates")
    .find({ _id: { $regex: `^${lineageId}/` } });
  const slots = lineageId === null ? [] : (await days.toArray()).flatMap((day) => day.slots);
  const idsOf = (isCommitted: boolean) =>
    slots.filter(({ committed }) => committed === isCommitted).map(({ id }) => id);
  return { agents, created, running, committed: idsOf(true), uncommitted: idsOf(false) };
}

/** The guarantee of a create that died somewhere: there is one of everything, of this agent. */
export async function expectOneAgent(
  stage: LifeStage,
  creator: Creator,
  agentId: string,
): Promise<AgentDocument> {
  // Lists of workflows follow a little behind.
  const team = await until("one actor runs", VISIBLE_MS, async () => {
    const found = await teamOf(stage, creator);
    expect(found.running).to.deep.equal([agentWorkflowId(agentId)]);
    return found;
  });
  const [agent] = team.agents;
  expect(team.agents.map(({ _id }) => _id)).to.deep.equal([agentId]);
  if (agent === undefined) throw new Error("there is no agent");
  expect(team.created.map((event) => event.agentId)).to.deep.equal([agentId]);
  expect(team.uncommitted).to.deep.equal([]);
  expect(team.committed).to.deep.equal(creator.lineageId === null ? [] : [agentId]);
  expect(agent.wallet?.address).to.match(/^0x/);
  expect(agent.key?.id).to.equal(firstKeyId(agentId));
  expect(agent.candidateKeys ?? []).to.deep.equal([]);
  expect(agent.lifecycle).to.equal("active");
  return agent;
}

export const deliveryOf = ({ db }: LifeStage, agentId: string): Promise<KeyDeliveryDocument | null> =>
  db.collection<KeyDeliveryDocument>(COLLECTIONS.keyDeliveries).findOne({ _id: agentId });

/** The ids that are reserved for creates. */
export async function reservedIds({ db }: LifeStage): Promise<readonly string[]> {
  const creates = await db.collection<CreateDocument>(COLLECTIONS.creates).find().toArray();
  return creates.map(({ createdId }) => createdId);
}
