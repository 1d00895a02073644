import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { z } from "zod";
import { COLLECTIONS, type EventDocument, type KeyDeliveryDocument } from "../../src/store/documents.ts";
import { TemporalCalls } from "../../src/actors/calls.ts";
import { TemporalDeliveryKeys } from "../../src/actors/delivery-keys.ts";
import { McpCaller } from "../mcp/support.ts";
import { isForNow } from "./api.ts";
import type { TestService } from "./service.ts";
import { successOf, type Success } from "./contract-api.ts";
import {
  elevate,
  type Fields,
  organizationKey,
  tally,
  type TestOrganizationKey,
  times,
  until,
  type World,
} from "./world.ts";

export type Created = Success<"createAgent">;

/** Agents that are made at the most until one is in time for a short window. */
const TRIES_MAX = 6;

/** What an organization's key sends to create an agent. */
export interface CreateBody extends Fields {
  readonly idempotencyKey: string;
}

export const createBody = ({ organization: { teamId } }: World, fields: Fields = {}): CreateBody => ({
  name: "Made",
  teamId,
  budgetCents: 10_000,
  idempotencyKey: randomUUID(),
  ...fields,
});

/** An agent that an organization's key created, and what its create is replayed with. */
export interface MadeAgent {
  readonly id: string;
  /** Null where every create that was tried took longer than the window. */
  readonly key: string | null;
  readonly by: TestOrganizationKey;
  readonly body: CreateBody;
}

export async function made(world: World, by: TestOrganizationKey, fields: Fields = {}): Promise<MadeAgent> {
  for (let tries = 1; ; tries += 1) {
    const body = createBody(world, fields);
    const { agent, apiKey } = await world.api.made("createAgent", { token: by.token, body });
    if (apiKey !== null || tries === TRIES_MAX) return { id: agent.id, key: apiKey, by, body };
  }
}

/**
 * What is done with an agent of one's own while its window is open. On a busy machine that may close first: whatever came of
 * it then, it is tried again with another.
 */
export async function whileOpen<A extends { readonly id: string }>(
  world: World,
  make: () => Promise<A>,
  steps: (agent: A) => Promise<unknown>,
): Promise<A> {
  for (let tries = 1; ; tries += 1) {
    const agent = await make();
    try {
      await steps(agent);
      return agent;
    } catch (error) {
      const isOpen = (await deliveries(world).findOne({ _id: agent.id }))?.state === "open";
      if (isOpen || tries === TRIES_MAX) throw error;
    }
  }
}

/** The key of an agent whose create was not late. */
export function keyOf({ key }: Pick<MadeAgent, "key">): string {
  if (key === null) throw new Error("the create took longer than the window");
  return key;
}

export const replay = (world: World, { body }: Pick<MadeAgent, "body">, token: string): Promise<Created> =>
  world.api.ok("createAgent", 200, { token, body });

/** An answer to a create that carries no key, and says or does not say that it will not come any more. */
export function expectNoKey(answer: Created, keyDelivery: "expired" | undefined): void {
  const { apiKey, keyDelivery: said, mcpConfigBlock } = answer;
  const told = `${apiKey === null ? "no key" : "a key"}, ${said ?? "as delivered"}`;
  expect([apiKey, mcpConfigBlock, said], told).to.deep.equal([null, null, keyDelivery]);
}

export const deliveries = ({ service }: World) =>
  service.db.collection<KeyDeliveryDocument>(COLLECTIONS.keyDeliveries);

/** Whether the key that seals the agent's first key is there. */
export const hasDeliveryKey = async ({ service }: World, id: string): Promise<boolean> =>
  (await deliveryKeysOf(service).read(id)) !== null;

export const deliveryKeysOf = ({ connections }: Pick<TestService, "connections">): TemporalDeliveryKeys =>
  new TemporalDeliveryKeys(new TemporalCalls(connections.temporal, connections.addresses.taskQueue));

/** A window may be some seconds long, and the machine busy. */
const WINDOW_MS = 120_000;

/** The window's timer has erased what was to be delivered again. */
export const windowClosed = (world: World, id: string): Promise<KeyDeliveryDocument> =>
  until(
    `the window of ${id} is closed`,
    () => deliveries(world).findOne({ _id: id, state: "closed" }),
    WINDOW_MS,
  );

/** Agents of one key whose windows are closed; the proof that their keys were not delivered is stamped, or not. */
export async function expiredAgents(
  world: World,
  by: TestOrganizationKey,
  count: number,
  proof: "proven" | "unproven" = "proven",
): Promise<MadeAgent[]> {
  const agents = await Promise.all(times(count, () => made(world, by)));
  await Promise.all(
    agents.map(async (agent) => {
      await windowClosed(world, agent.id);
      if (proof === "proven") expectNoKey(await replay(world, agent, by.token), "expired");
    }),
  );
  return agents;
}

/** By the owner, who has stepped up, unless another credential is given. */
export async function archive(
  world: World,
  { id }: { readonly id: string },
  token?: string,
): Promise<Success<"archiveAgent">> {
  if (token === undefined) await elevate(world);
  return world.api.ok("archiveAgent", 200, { token: token ?? world.token, id });
}

export const readAgent = async (world: World, { id }: { readonly id: string }) =>
  (await world.api.ok("getAgent", 200, { token: world.token, id })).agent;

export const keyRequest = (world: World, { id }: { readonly id: string }) => ({ token: world.token, id });

export async function revokeKey(world: World, agent: { readonly id: string }) {
  await elevate(world);
  return (await world.api.ok("revokeAgentKey", 200, keyRequest(world, agent))).key;
}

export async function mintKey(world: World, agent: { readonly id: string }) {
  await elevate(world);
  return world.api.ok("mintAgentKey", 201, keyRequest(world, agent));
}

/** What the key is good for on both surfaces: neither lets it in. */
export async function expectDead(world: World, key: string): Promise<void> {
  await world.api.refused("listPayments", 401, "UNAUTHORIZED", { token: key });
  await expectDeadOverMcp(world, key);
}

const httpAnswer = z.looseObject({ code: z.int() });

export async function expectDeadOverMcp({ service }: World, key: string): Promise<void> {
  const failure: unknown = await McpCaller.connect(service.baseUrl, key).catch((error: unknown) => error);
  expect(httpAnswer.parse(failure).code).to.equal(401);
}

export const journal = ({ service }: World) => service.db.collection<EventDocument>(COLLECTIONS.events);

export const eventsOf = (world: World, { id }: { readonly id: string }): Promise<EventDocument[]> =>
  journal(world).find({ agentId: id }).toArray();

/** How often each type of event is in the journal for an agent. */
export const eventCounts = async (
  world: World,
  agent: { readonly id: string },
): Promise<Record<string, number>> => tally((await eventsOf(world, agent)).map(({ type }) => type));

/** Waits until the journal has exactly these events of the agent. */
export async function expectEvents(
  world: World,
  agent: { readonly id: string },
  expected: Readonly<Record<string, number>>,
): Promise<void> {
  const total = Object.values(expected).reduce((sum, count) => sum + count, 0);
  await until("the journal has its events", async () =>
    (await eventsOf(world, agent)).length >= total ? true : null,
  ).catch(() => undefined);
  expect(await eventCounts(world, agent)).to.deep.equal(expected);
}

/** A key that creates and reads agents. */
export const orchestrator = (world: World): Promise<TestOrganizationKey> =>
  organizationKey(world, { dailyCreateLimit: 1_000 });

/** A create that was begun and cannot be committed. */
export interface HeldCommits {
  /** A create has been begun since: its id is reserved. */
  isWaitedFor(): Promise<void>;
  /** Whether it still holds them: MongoDB ends a transaction after 10 s, of which a busy machine may take more. */
  isHeld(): Promise<boolean>;
  /** May be repeated. */
  release(): Promise<void>;
}

/**
 * Keeps every create inside the organization's team from being committed: a transaction of the test's own has written to
 * the team, so theirs conflict with it and are repeated until it ends.
 */
export async function holdCommits({ organization: { teamId }, service }: World): Promise<HeldCommits> {
  const { db } = service;
  const creates = db.collection(COLLECTIONS.creates);
  const before = await creates.countDocuments();
  const session = db.client.startSession();
  session.startTransaction();
  const change = { $inc: { childrenCreated: 1 } };
  const teams = db.collection<{ _id: string }>(COLLECTIONS.teams);
  await teams.updateOne({ _id: teamId }, change, { session });
  return {
    isHeld: () =>
      teams.findOne({ _id: teamId }, { session }).then(
        () => true,
        () => false,
      ),
    async isWaitedFor() {
      await until("a create was begun", async () =>
        (await creates.countDocuments()) > before ? true : null,
      );
    },
    async release() {
      if (session.inTransaction()) await session.abortTransaction();
      await session.endSession();
    },
  };
}

/**
 * A create whose commit is held up while the clock goes past the end of its window, and its first answer. Where that was to
 * come again, on a busy machine, there is no such answer, and it is tried again with another.
 */
export async function lateCreate(
  world: World,
  token: string,
  setLate: (isLate: boolean) => void,
): Promise<{ readonly body: CreateBody; readonly first: Created }> {
  for (let tries = 1; ; tries += 1) {
    const body = createBody(world);
    const held = await holdCommits(world);
    try {
      const creating = world.api.call("createAgent", { token, body });
      await held.isWaitedFor();
      setLate(true);
      await held.release();
      const answer = await creating;
      if (isForNow(answer) && tries < TRIES_MAX) continue;
      expect(answer.status, JSON.stringify(answer.body)).to.equal(201);
      return { body, first: successOf("createAgent", answer.body) };
    } finally {
      setLate(false);
      await held.release();
    }
  }
}
