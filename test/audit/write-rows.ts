import { randomUUID } from "node:crypto";
import { z } from "zod";
import { McpCaller } from "../mcp/support.ts";
import type { Request } from "../support/contract-api.ts";
import { authenticatorFor, enrolPasskey } from "../support/passkeys.ts";
import { answerAt, startIdentityProvider } from "../support/identity-provider.ts";
import { ask, Browser, newPkce, OAuthCaller } from "../support/oauth.ts";
import type { Card } from "../../src/engines/card-network/shapes.ts";
import { testCardNetwork } from "../support/card-network.ts";
import { type TestService } from "../support/service.ts";
import { elevate, newEndpoint, newWorld, organizationKey, type World } from "../support/world.ts";
import { restricting } from "../support/restrictions.ts";

/** One call of an operation, and what its entry must say of it: exactly null, or an object that has at least these fields. */
export interface Prepared {
  /** Over REST; or else as a tool. */
  readonly request?: Request;
  readonly byTool?: () => Promise<unknown>;
  readonly before?: object;
  readonly after?: object;
}

export interface WritingRow {
  /** Whether its entry waits in the outbox in the write's own transaction, or from before it. */
  readonly kind: "committed" | "begun";
  readonly prepare: (service: TestService) => Promise<Prepared>;
}

/** Why an operation that is no GET needs no record in the outbox. */
export interface HarmlessRow {
  readonly kind: "harmless";
  readonly because: string;
}

/** An owner's sign-in costs more than most rows, so those that leave the owner's sessions and factors alone share one. */
const shared = new WeakMap<TestService, Promise<World>>();
function sharedWorld(service: TestService): Promise<World> {
  const world = shared.get(service) ?? newWorld(service);
  shared.set(service, world);
  return world;
}

export const rowOf =
  (kind: WritingRow["kind"], worldOn = sharedWorld) =>
  (prepare: (world: World) => Promise<Prepared>): WritingRow => ({
    kind,
    async prepare(service) {
      const world = await worldOn(service);
      await elevate(world);
      return prepare(world);
    },
  });
/** Sets an identity provider of the world's own, whose people become members. */
export async function withProvider(world: World) {
  const { callbackUrl } = await world.api.ok("getSso", 200, { token: world.token });
  const provider = await startIdentityProvider(callbackUrl);
  const { clientId, clientSecret, issuer } = provider;
  const domain = `${randomUUID()}.example.com`;
  const choice = {
    issuer,
    clientId,
    clientSecret,
    domains: [domain],
    required: false,
    jit: { role: "member" },
  } as const;
  await world.api.ok("setSso", 200, { token: world.token, body: choice });
  const email = `ada@${domain}`;
  async function comeBack(): Promise<Record<string, string>> {
    const begun = await world.api.call("startSso", { body: { email } });
    const flow = /svc_sso[^=]*=([^;]+)/.exec(begun.headers.getSetCookie().join())?.[1] ?? "";
    const { url } = z.object({ url: z.string() }).parse(begun.body);
    const returned = await provider.signIn(url, { sub: "subject", email, email_verified: true });
    return { flow, ...answerAt(returned) };
  }
  return { provider, issuer, choice, comeBack };
}

export const committed = rowOf("committed");
export const alone = rowOf("committed", newWorld);
export const begun = rowOf("begun");
export const CHALLENGE: HarmlessRow = {
  kind: "harmless",
  because: "a challenge is worth nothing without a device",
};

export const credentials = ({ organization: { email, password } }: World) => ({ email, password });

export async function secondSession(world: World) {
  const other = await world.api.ok("signIn", 200, { body: credentials(world) });
  const { token } = world;
  const { sessions } = await world.api.ok("listSessions", 200, { token });
  const id = sessions.find(({ current }) => !current)?.id ?? "";
  return { id, other };
}

export async function asking({ service: { baseUrl } }: World) {
  const browser = new Browser();
  const client = await OAuthCaller.register(baseUrl);
  return { browser, connectionId: await ask(browser, client.authorizationUrl(newPkce())) };
}

export const onAgent = (prepare: (world: World, id: string) => Promise<Prepared> | Prepared) =>
  begun(async (world) => prepare(world, (await world.agent()).id));

export const onHeld = (body?: object) =>
  begun(async (world) => {
    const agent = await world.agent({ autoApprovalThresholdCents: 0 });
    const { approvalId: id } = await agent.hold();
    return { request: { token: world.token, id, ...(body === undefined ? {} : { body }) } };
  });

const withCards = new WeakMap<TestService, Promise<World>>();
export function worldWithCards(service: TestService): Promise<World> {
  const world = withCards.get(service) ?? connectedWorld(service);
  withCards.set(service, world);
  return world;
}

export const ISSUER_KEY = "rk_test_1234";

/** An organization of its own, whose card issuer is connected. */
export async function connectedWorld(service: TestService): Promise<World> {
  const world = await newWorld(service);
  await elevate(world);
  const { api, token } = world;
  await api.ok("connectCardIssuer", 200, {
    token,
    body: { apiKey: ISSUER_KEY, publishableKey: "pk_test_1234" },
  });
  return world;
}

export const onCard = (body: object, after?: object) =>
  rowOf(
    "begun",
    worldWithCards,
  )(async (world) => {
    const { transaction } = await (await world.agent()).pay();
    const { network } = (await testCardNetwork()).accountOf(ISSUER_KEY);
    const card = network.store
      .all<Card>("issuing.card")
      .find(({ metadata }) => metadata["transaction"] === transaction.id);
    network.forceCapture(card?.id ?? "", 100, MERCHANT);
    return {
      request: { token: world.token, id: transaction.id, body },
      ...(after === undefined ? {} : { after }),
    };
  });

const MERCHANT = {
  name: "Shop",
  category: "book_stores",
  category_code: "5942",
  network_id: "1",
  country: "US",
};

export const create = (operation: "createProject" | "createTeam") =>
  committed(({ token }) =>
    Promise.resolve({
      request: { token, body: { name: operation, description: "said" } },
      after: { name: operation, description: "said" },
    }),
  );

export const createByTool = (tool: "create_project" | "create_team") =>
  committed(async (world) => {
    const { token } = await organizationKey(world);
    const caller = await McpCaller.connect(world.service.baseUrl, token);
    return {
      async byTool() {
        const answer = await caller.call(tool, { name: tool, idempotencyKey: "k" });
        await caller.client.close();
        return answer;
      },
      after: { name: tool },
    };
  });

export const containerOf = async ({ api, token }: World, kind: "project" | "team"): Promise<string> => {
  if (kind === "project")
    return (await api.ok("createProject", 201, { token, body: { name: "Old" } })).project.id;
  return (await api.ok("createTeam", 201, { token, body: { name: "Old" } })).team.id;
};

const onContainer = (kind: "project" | "team", rest: Omit<Prepared, "request">, body?: object) =>
  committed(async (world) => {
    const id = await containerOf(world, kind);
    return { request: { token: world.token, id, ...(body === undefined ? {} : { body }) }, ...rest };
  });
export const updates = (kind: "project" | "team") =>
  onContainer(kind, { before: { name: "Old" }, after: { name: "New" } }, { name: "New" });
export const archives = (kind: "project" | "team") =>
  onContainer(kind, { before: { state: "active" }, after: { state: "archived" } });
export const setsRules = (kind: "project" | "team") =>
  onContainer(
    kind,
    { before: { rules: [], version: 1 }, after: { version: 2 } },
    { rules: [{ type: "amount_above", params: { amountCents: 100 } }], version: 1 },
  );
export const setsRestrictions = (kind: "project" | "team") =>
  onContainer(
    kind,
    { before: restricting(), after: restricting({ rails: { only: ["card"] } }, 2) },
    restricting({ rails: { only: ["card"] } }),
  );

export const setsBudget = (kind: "project" | "team") =>
  begun(async (world) => {
    const id = await containerOf(world, kind);
    const children = kind === "project" ? { teams: [] } : { agents: [] };
    return {
      request: { token: world.token, id, body: { capCents: 500, version: 1, ...children } },
      before: { capCents: null, version: 1 },
      after: { capCents: 500, version: 2 },
    };
  });

export const stops = (kind: "project" | "team", said: (agentId: string) => Omit<Prepared, "request">) =>
  rowOf(
    "begun",
    newWorld,
  )(async (world) => {
    const agent = await world.agent();
    const { projectId, teamId } = world.organization;
    const request = { token: world.token, id: kind === "team" ? teamId : projectId };
    return { request, ...said(agent.id) };
  });

export const onKey = (rest: Omit<Prepared, "request">) =>
  committed(async (world) => {
    const { id } = await organizationKey(world);
    return { request: { token: world.token, id }, ...rest };
  });

export const onEndpoint = (kind: "committed" | "begun", rest: Omit<Prepared, "request">, body?: object) =>
  rowOf(kind)(async (world) => {
    const { id } = await newEndpoint(world);
    return { request: { token: world.token, id, ...(body === undefined ? {} : { body }) }, ...rest };
  });

export const onPasskey = (rest: Omit<Prepared, "request">, body?: object) =>
  committed(async (world) => {
    await enrolPasskey(world, authenticatorFor(world), { name: "Second" });
    const { id } = await enrolPasskey(world, authenticatorFor(world), { name: "Laptop" });
    return { request: { token: world.token, id, ...(body === undefined ? {} : { body }) }, ...rest };
  });
