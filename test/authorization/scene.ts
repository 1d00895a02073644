import { prove, TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { authCollections, type UserDocument } from "../../src/store/identity-documents.ts";
import { AGENT_TOOLS } from "../../src/contract/tool-names.ts";
import { ORGANIZATION_SCOPES, type OrganizationScope, type Role } from "../../src/contract/types.ts";
import { PASSWORD, startTestService, testPasswords, type TestService } from "../support/service.ts";
import { someOrAll } from "../support/soak.ts";
import { connect } from "../support/oauth.ts";
import { organizationKey, type TestAgent, type World } from "../support/world.ts";
import type { Credential } from "./oracle.ts";

/** A bearer of a credential, and the name that a failure shows. */
export interface Bearer {
  readonly name: string;
  readonly token: string | undefined;
  readonly credential: Credential;
}

export type BindingChoice =
  { readonly type: "organization" } | { readonly type: "project" | "team"; readonly id: string };

const signedIn = z.object({ token: z.string() });

/** Mints an organization's key as its stepped-up owner does. */
export const mintKey = async (
  world: World,
  scopes: readonly OrganizationScope[],
  binding: BindingChoice = { type: "organization" },
): Promise<string> => (await organizationKey(world, { scopes: [...scopes], binding })).token;

/** A session of a new person with that role. Of two sessions of one role only one has stepped up. */
export async function sessionOf(
  world: World,
  role: Role,
  steppedUp: boolean,
  more: Pick<UserDocument, "binding" | "secondFactorRequired"> = {},
): Promise<string> {
  const { organizationId } = world.organization;
  const { users } = authCollections(world.service.db);
  const owner = await users.findOne({
    organizationId,
    emailNormalized: world.organization.email.toLowerCase(),
  });
  if (owner === null) throw new Error("an organization has its owner");
  const email = `${role}-${randomUUID()}@example.com`;
  const passwordHash = await (await testPasswords(world.service.db)).hash(email, PASSWORD);
  const user = {
    ...owner,
    _id: randomUUID(),
    email,
    emailNormalized: email,
    passwordHash,
    role,
    ...more,
  };
  await users.insertOne(TEST_ACCESS_PROOFS.proven("user", user));
  const body = { email, password: PASSWORD };
  const answer = await world.service.api.call("POST", "/v1/auth/sign-in", { body });
  const stepUpExpiresAt = steppedUp ? new Date(Date.now() + 300_000) : null;
  await prove(world.service.db, "session", { userId: user._id }, { stepUpExpiresAt });
  return signedIn.parse(answer.body).token;
}

const ROLES: readonly Role[] = ["owner", "admin", "member", "auditor"];

const SESSIONS = ROLES.flatMap((role) =>
  [true, false].map((steppedUp) => ({ kind: "session", role, steppedUp }) as const),
);

/** Every kind of credential that is let in anywhere, with each single scope and tool and with all of them, and those that are not. */
export const CREDENTIALS: readonly Credential[] = [
  { kind: "none" },
  { kind: "made up" },
  { kind: "connection" },
  { kind: "agent", tools: null },
  ...AGENT_TOOLS.map((tool) => ({ kind: "agent", tools: [tool] }) as const),
  ...ORGANIZATION_SCOPES.map((scope) => ({ kind: "organization key", scopes: [scope] }) as const),
  { kind: "organization key", scopes: ORGANIZATION_SCOPES },
  ...SESSIONS,
  { kind: "session", role: "owner", steppedUp: true, mustEnrol: true },
];

/** Of the scopes and tools so many have a key of theirs alone in each run. */
const ALONE = 3;

/** A service whose clock the test moves on, so that limits of a minute do not get in the matrix's way. */
export async function serviceWithClock(): Promise<{ service: TestService; passAMinute: () => void }> {
  let aheadMs = 0;
  const service = await startTestService({ clock: () => new Date(Date.now() + aheadMs) });
  return { service, passAMinute: () => void (aheadMs += 60_000) };
}

/** Everybody who can be let in, and an owner who has to enrol a second factor first. */
export async function peopleOf(world: World): Promise<Bearer[]> {
  const mustEnrol = {
    name: "owner without the second factor that is required",
    token: await sessionOf(world, "owner", true, { secondFactorRequired: true }),
    credential: { kind: "session", role: "owner", steppedUp: true, mustEnrol: true },
  } as const;
  const others = await Promise.all(
    SESSIONS.map(async ({ role, steppedUp }) => ({
      name: `${role}, ${steppedUp ? "stepped up" : "not stepped up"}`,
      token: await sessionOf(world, role, steppedUp),
      credential: { kind: "session", role, steppedUp } as const,
    })),
  );
  return [...others, mustEnrol];
}

/** Keys for single scopes, and one with all of them. */
export async function organizationKeysOf(world: World): Promise<Bearer[]> {
  const choices = [
    ...someOrAll(ORGANIZATION_SCOPES, ALONE).map((scope) => [scope]),
    [...ORGANIZATION_SCOPES],
  ];
  return Promise.all(
    choices.map(async (scopes) => ({
      name: `organization key with ${scopes.join(" ")}`,
      token: await mintKey(world, scopes),
      credential: { kind: "organization key", scopes } as const,
    })),
  );
}

/** Keys for single tools, one with the full set, and that of a paused agent. */
export async function agentKeysOf(world: World): Promise<Bearer[]> {
  const scoped = someOrAll(AGENT_TOOLS, ALONE).map(async (tool): Promise<Bearer> => {
    const { key } = await world.agent({ scopes: [tool] });
    return { name: `agent with ${tool}`, token: key, credential: { kind: "agent", tools: [tool] } };
  });
  const full = await world.agent();
  const paused = await pausedAgent(world);
  return [
    { name: "agent", token: full.key, credential: { kind: "agent", tools: null } },
    { name: "paused agent", token: paused.key, credential: { kind: "paused agent" } },
    ...(await Promise.all(scoped)),
  ];
}

/** Tools of the client that is connected in these tests. */
const CONNECTED_TOOLS = ["get_budget", "create_card_payment"] as const;

/** A client that is connected to an agent, as REST is to see it and as MCP is. Steps up the organization's sessions. */
export async function connectedClientOf(
  world: World,
): Promise<{ readonly overRest: Bearer; readonly overMcp: Bearer }> {
  const { accessToken: token } = await connect(world, await world.agent(), { tools: CONNECTED_TOOLS });
  const name = "connected client";
  return {
    overRest: { name, token, credential: { kind: "connection" } },
    overMcp: { name, token, credential: { kind: "agent", tools: CONNECTED_TOOLS } },
  };
}

async function pausedAgent(world: World): Promise<TestAgent> {
  const agent = await world.agent();
  await world.api.ok("pauseAgent", 200, { token: world.token, id: agent.id });
  return agent;
}

export const strangers: readonly Bearer[] = [
  { name: "anonymous", token: undefined, credential: { kind: "none" } },
  { name: "a made-up key", token: "sk_svc_live_nobody", credential: { kind: "made up" } },
];
