import { expect } from "chai";
import { parse } from "csv-parse/sync";
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { type OperationId, operationList, operations } from "../../src/contract/registry.ts";
import type { Output } from "../../src/client/types.ts";
import { ORGANIZATION_SCOPES, type ResourceKind } from "../../src/contract/types.ts";
import type { ErrorCode } from "../../src/domain/errors.ts";
import { McpCaller } from "../mcp/support.ts";
import { Random } from "../../lab/random.ts";
import { codeOf } from "../support/contract-api.ts";
import { askRaise } from "../support/raises.ts";
import { seed } from "../support/seed.ts";
import { someOrAll } from "../support/soak.ts";
import { elevate, newWorld, type World } from "../support/world.ts";
import { EventReader } from "../support/event-stream.ts";
import { outranks } from "../../src/domain/roles.ts";
import type { Bound } from "../../src/domain/binding.ts";
import { mintKey, sessionOf } from "./scene.ts";
import { SIMULATED } from "../support/simulations.ts";
import { restricting } from "../support/restrictions.ts";

/**
 * What a binding lets its caller reach: an organization with two projects, a key and a member for each binding, and everything that
 * an operation can act on, once inside and once outside each of them, and once of another organization.
 */
interface Place {
  readonly projectId: string;
  readonly teamId: string;
  readonly agentId: string;
  /** Of a payment of that agent's, on hold. */
  readonly transactionId: string;
  readonly approvalId: string;
  readonly raiseRequestId: string;
}

const withId = z.object({ id: z.string() });
const placed = z.object({ projectId: z.string(), teamId: z.string() });

const idOf = (item: unknown): string => withId.parse(item).id;

async function newProject(world: World): Promise<string> {
  const body = { name: "Project" };
  return (await world.api.ok("createProject", 201, { token: world.token, body })).project.id;
}

async function newPlace(world: World, projectId: string): Promise<Place> {
  const body = { name: "Team", projectId };
  const { team } = await world.api.ok("createTeam", 201, { token: world.token, body });
  const agent = await world.agent({ teamId: team.id, autoApprovalThresholdCents: 0 });
  const raiseRequestId = await askRaise(world, agent);
  const refused = { token: world.token, id: raiseRequestId, body: { feedback: "no" } };
  await world.api.ok("refuseRaiseRequest", 200, refused);
  return { projectId, teamId: team.id, agentId: agent.id, raiseRequestId, ...(await agent.hold()) };
}

/** What lies in a container. */
type Acted = Exclude<ResourceKind, "none" | "organization" | "list" | "newProject">;

interface Key extends Reach {
  readonly name: string;
  /** Whether a person has it, with the role of a member. */
  readonly isMember: boolean;
  readonly token: string;
}

interface Reach {
  /** Whether the binding covers an agent's or team's place. */
  readonly covers: (place: Pick<Place, "projectId" | "teamId">) => boolean;
  readonly coversProject: (projectId: string) => boolean;
}

const create = () => ({ body: { name: "New", idempotencyKey: randomUUID() } });

const live = ({ counts }: Output<"summarizeAgents">): number => counts.active + counts.paused;

/** Decisions by people, which can be made once. */
const DECISIONS: readonly OperationId[] = ["approveApproval", "denyApproval"];

const OF_TRANSACTIONS: readonly OperationId[] = [
  "listTransactions",
  "exportTransactions",
  "summarizeTransactions",
];

/** How all of a list is asked for, where that is no large page. */
const PAGING: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  exportTransactions: {},
  summarizeTransactions: { groupBy: "agent" },
};

describe(`keys and members act only inside their binding (TEST_SEED=${seed})`, () => {
  const random = new Random(seed);
  let world: World;
  let stranger: World;
  /** Two teams of one project, and one of another. */
  let here: Place;
  let beside: Place;
  let elsewhere: Place;
  let foreign: Place;
  let keys: readonly Key[];

  before(async () => {
    world = await newWorld();
    stranger = await newWorld();
    const [first, second] = [await newProject(world), await newProject(world)];
    here = await newPlace(world, first);
    beside = await newPlace(world, first);
    elsewhere = await newPlace(world, second);
    foreign = await newPlace(stranger, await newProject(stranger));
    const all = ORGANIZATION_SCOPES;
    const member = (binding: Bound) => sessionOf(world, "member", false, { binding });
    const ofAll = { covers: () => true, coversProject: () => true };
    const ofProject: Reach = {
      covers: ({ projectId }) => projectId === first,
      coversProject: (projectId) => projectId === first,
    };
    const ofTeam: Reach = { covers: ({ teamId }) => teamId === here.teamId, coversProject: () => false };
    const [teamHere, teamElsewhere] = [here.teamId, elsewhere.teamId];
    keys = [
      { name: "the organization's key", token: await mintKey(world, all), isMember: false, ...ofAll },
      {
        name: "a project's key",
        token: await mintKey(world, all, { type: "project", id: first }),
        isMember: false,
        ...ofProject,
      },
      {
        name: "a team's key",
        token: await mintKey(world, all, { type: "team", id: teamHere }),
        isMember: false,
        ...ofTeam,
      },
      {
        name: "a project's member",
        token: await member({ type: "project", ids: [first] }),
        isMember: true,
        ...ofProject,
      },
      {
        name: "two teams' member",
        token: await member({ type: "team", ids: [teamHere, teamElsewhere] }),
        isMember: true,
        covers: ({ teamId }) => teamId === teamHere || teamId === teamElsewhere,
        coversProject: () => false,
      },
    ];
  });

  interface Case {
    readonly id: OperationId;
    /** The path's id or the body that names the place. */
    readonly request: (place: Place) => { id?: string; body?: object };
    readonly success: readonly [number, ErrorCode | null];
    readonly acts: "in a team" | "on a project" | "in a project";
    /** Whether the caller may do it somewhere. */
    readonly may: (key: Key) => boolean;
  }

  /** By what an operation acts on: a path's id is that of the place, and nothing else is sent. */
  const BY_SUBJECT: Readonly<Record<Acted, Pick<Case, "request" | "acts">>> = {
    agent: { request: ({ agentId: id }) => ({ id }), acts: "in a team" },
    transaction: { request: ({ transactionId: id }) => ({ id }), acts: "in a team" },
    approval: { request: ({ approvalId: id }) => ({ id }), acts: "in a team" },
    raiseRequest: { request: ({ raiseRequestId: id }) => ({ id }), acts: "in a team" },
    team: { request: ({ teamId: id }) => ({ id }), acts: "in a team" },
    project: { request: ({ projectId: id }) => ({ id }), acts: "on a project" },
    newAgent: {
      request: ({ teamId }) => ({
        body: { name: "New", teamId, budgetCents: 1, idempotencyKey: randomUUID() },
      }),
      acts: "in a team",
    },
    newTeam: {
      request: ({ projectId }) => ({ body: { name: "New", projectId, idempotencyKey: randomUUID() } }),
      acts: "in a project",
    },
  };

  /** Operations that need a body, or are refused for another reason inside the binding. */
  const BODIES: Readonly<Partial<Record<OperationId, { body?: object; success: Case["success"] }>>> = {
    updateAgentBudgetPolicy: { body: { version: 999 }, success: [409, "VERSION_CONFLICT"] },
    // A person created it.
    archiveAgent: { success: [403, "MACHINE_ARCHIVE_DENIED"] },
    setTeamApprovalRules: { body: { rules: [], version: 999 }, success: [409, "STALE_APPROVAL_RULES"] },
    setProjectApprovalRules: { body: { rules: [], version: 999 }, success: [409, "STALE_APPROVAL_RULES"] },
    setTeamRestrictions: { body: restricting({}, 999), success: [409, "STALE_RESTRICTIONS"] },
    setProjectRestrictions: { body: restricting({}, 999), success: [409, "STALE_RESTRICTIONS"] },
    setAgentRestrictions: { body: restricting({}, 999), success: [409, "STALE_RESTRICTIONS"] },
    ...Object.fromEntries(
      Object.entries(SIMULATED).map(([id, body]) => [id, { body, success: [200, null] as const }]),
    ),
    setProjectCalendar: {
      body: {
        timezone: "UTC",
        resetTime: "00:00",
        weekStartsOn: "mon",
        monthStartsOn: 1,
        yearStartsIn: 1,
        version: 999,
      },
      success: [409, "STALE_CALENDAR"],
    },
    setTeamBudget: { body: { capCents: 1, agents: [], version: 999 }, success: [409, "STALE_BUDGET"] },
    setProjectBudget: { body: { capCents: 1, teams: [], version: 999 }, success: [409, "STALE_BUDGET"] },
    refuseRaiseRequest: { body: { feedback: "no" }, success: [409, "RAISE_ALREADY_RESOLVED"] },
    createAgent: { success: [201, null] },
    createTeam: { success: [201, null] },
  };

  /** Every operation of a key that acts on something in a container; what pauses agents comes before what resumes them. */
  const cases = operationList.flatMap(([id, { access, http }]): Case[] => {
    if (http === null || access.kind !== "management" || DECISIONS.includes(id)) return [];
    const { organizationKey, role, subject: kind } = access;
    if (kind === "none" || kind === "organization" || kind === "list" || kind === "newProject") return [];
    const isForMembers = !outranks(role, "member");
    if (organizationKey === "never" && !isForMembers) return [];
    const may = ({ isMember }: Key) => (isMember ? isForMembers : organizationKey !== "never");
    const subject = BY_SUBJECT[kind];
    const { body, success = [200, null] as const } = BODIES[id] ?? {};
    const request = (place: Place) => ({
      ...subject.request(place),
      ...(body === undefined ? {} : { body }),
    });
    return [{ id, request, success, may, acts: subject.acts }];
  });

  it("what a caller can act on is all there, and each exception is one of it", () => {
    const ids = cases.map(({ id }) => id);
    expect(ids.length).to.be.greaterThan(20);
    expect(ids).to.include.members(Object.keys(BODIES));
  });

  for (const { id, request, success, acts, may } of cases) {
    it(`${id}: done inside, OUTSIDE_BINDING outside, NOT_FOUND elsewhere`, async () => {
      const callers = keys.filter(may);
      const cells = callers.flatMap((key) =>
        Object.entries({ here, beside, elsewhere }).map(([where, place]) => {
          const inside = acts === "in a team" ? key.covers(place) : key.coversProject(place.projectId);
          return { inside, key, where, place };
        }),
      );
      for (const side of [true, false]) {
        const alike = random.shuffled(cells.filter(({ inside }) => inside === side));
        for (const { inside, key, place, where } of someOrAll(alike, 1)) {
          const answer = await world.api.call(id, { token: key.token, ...request(place) });
          const expected = inside ? success : [403, "OUTSIDE_BINDING"];
          expect([answer.status, codeOf(answer)], `${key.name}, ${where}`).to.deep.equal(expected);
        }
      }
      for (const key of someOrAll(random.shuffled(callers), 1)) {
        const teamMakesTeam = id === "createTeam" && key.name === "a team's key";
        const answer = await world.api.call(id, { token: key.token, ...request(foreign) });
        expect([answer.status, codeOf(answer)], `${key.name}, another organization's`).to.deep.equal(
          teamMakesTeam ? [403, "OUTSIDE_BINDING"] : [404, "NOT_FOUND"],
        );
      }
    });
  }

  it("only a key of the organization creates projects; a project's key its teams; a team's none", async () => {
    const [ofOrganization, ofProject, ofTeam] = keys.map(({ token }) => token);
    await world.api.ok("createProject", 201, { token: ofOrganization, ...create() });
    for (const token of [ofProject, ofTeam]) {
      await world.api.refused("createProject", 403, "OUTSIDE_BINDING", { token, ...create() });
    }
    const byOrganization = await world.api.ok("createTeam", 201, { token: ofOrganization, ...create() });
    expect(byOrganization.team.projectId).to.equal(world.organization.projectId);
    const { body } = create();
    const byProject = await world.api.ok("createTeam", 201, { token: ofProject, body });
    expect(byProject.team.projectId).to.equal(here.projectId);
    // The project that the default stands for, spelt out, is the same payload.
    const spelt = { ...body, projectId: here.projectId };
    expect(await world.api.ok("createTeam", 200, { token: ofProject, body: spelt })).to.deep.equal(byProject);
    await world.api.refused("createTeam", 403, "OUTSIDE_BINDING", { token: ofTeam, ...create() });
  });

  it("a bound member decides only inside, one by one and many at once, and stops no organization", async () => {
    const caller = keys.find(({ name }) => name === "two teams' member");
    const token = caller?.token ?? "";
    const body = { feedback: "no" };
    const outside = { token, id: beside.approvalId };
    await world.api.refused("approveApproval", 403, "OUTSIDE_BINDING", outside);
    await world.api.refused("denyApproval", 403, "OUTSIDE_BINDING", { ...outside, body });
    await world.api.refused("approveApproval", 404, "NOT_FOUND", { token, id: foreign.approvalId });
    const decisions = [here, beside, foreign].map(({ approvalId: id }) => ({
      id,
      decision: "deny",
      ...body,
    }));
    const { results } = await world.api.ok("decideApprovals", 200, { token, body: { decisions } });
    expect(results.map(({ error }) => error?.error ?? null)).to.deep.equal([
      null,
      "OUTSIDE_BINDING",
      "NOT_FOUND",
    ]);
    const { approval } = await world.api.ok("getApproval", 200, {
      token: world.token,
      id: beside.approvalId,
    });
    expect(approval.resolution).to.equal(undefined);
    await world.api.ok("denyApproval", 200, { token, id: elsewhere.approvalId, body });
    await world.api.refused("stopOrganization", 403, "OUTSIDE_BINDING", { token, body: {} });
    for (const id of ["listMembers", "listInvites"] as const)
      await world.api.refused(id, 403, "OUTSIDE_BINDING", { token });
  });

  it("a bound member is told of changes inside alone", async () => {
    const token = keys.find(({ name }) => name === "two teams' member")?.token ?? "";
    const reader = await EventReader.open(world.service.baseUrl, { token });
    try {
      await reader.until("ready", () => reader.named("ready")[0]);
      for (const { agentId: id } of [beside, elsewhere]) {
        const body = { description: randomUUID() };
        await world.api.ok("updateAgent", 200, { token: world.token, id, body });
      }
      const told = () => reader.told("agents").flatMap(({ agents }) => agents.map(({ id }) => id));
      await reader.until("the agent inside", () => told().includes(elsewhere.agentId) || undefined);
      expect(told()).not.to.include(beside.agentId);
    } finally {
      reader.close();
    }
  });

  it("tools keep to the binding as REST does", async () => {
    const caller = await McpCaller.connect(world.service.baseUrl, keys[2]?.token ?? "");
    try {
      const named = { name: "x", idempotencyKey: randomUUID() };
      await caller.refused("create_project", "OUTSIDE_BINDING", named);
      await caller.refused("create_team", "OUTSIDE_BINDING", named);
      const none = await caller.call("list_projects");
      expect(none.body).to.deep.equal({ projects: [], nextCursor: null });
      const outside = { ...named, teamId: beside.teamId, budgetCents: 1 };
      await caller.refused("create_agent", "OUTSIDE_BINDING", outside);
      await caller.refused("create_agent", "NOT_FOUND", { ...outside, teamId: foreign.teamId });
      await caller.refused("pause_agent", "OUTSIDE_BINDING", { agentId: beside.agentId });
    } finally {
      await caller.close();
    }
  });

  const lists = operationList.flatMap(([id, { access }]) =>
    access.kind === "management" && access.subject === "list" && id !== "summarizeAgents" ? [id] : [],
  );

  /** Payments in every place, each with a held and a settled one, so that every list has something to narrow. */
  async function payEverywhere(): Promise<void> {
    await elevate(world);
    for (const { teamId } of [here, beside, elsewhere]) {
      const agent = await world.agent({ teamId, autoApprovalThresholdCents: 100 });
      await agent.pay({ amountCents: 100 });
      const { approvalId } = await agent.hold({ amountCents: 200 });
      await agent.hold({ amountCents: 201 });
      const body = { feedback: "no" };
      await world.api.ok("denyApproval", 200, { token: world.token, id: approvalId, body });
    }
  }

  it("every list shows exactly what lies in the binding; a filter for the outside finds nothing", async () => {
    await payEverywhere();
    const agents = await world.api.ok("listAgents", 200, { token: world.token, query: { limit: "200" } });
    placeOfAgent = new Map(agents.agents.map((agent) => [agent.id, agent]));
    expect(lists).to.have.lengthOf(9);
    for (const id of lists) {
      const everything = await listed(id, world.token);
      expect(everything.length, id).to.be.greaterThan(2);
      for (const key of someOrAll(keys, 3)) {
        const expected = everything.filter((item) => isInside(id, item, key));
        expect((await listed(id, key.token)).map(idOf), `${id} by ${key.name}`).to.deep.equal(
          expected.map(idOf),
        );
        if (!("teamId" in operations[id].query.shape)) continue;
        for (const place of someOrAll([here, beside, elsewhere, foreign], 2)) {
          const found = await listed(id, key.token, { teamId: place.teamId });
          expect(found.length > 0, `${id} by ${key.name}`).to.equal(place !== foreign && key.covers(place));
        }
      }
    }
  });

  it("counts and totals of agents are of what lies in the binding, and of a filter inside it", async () => {
    const all = await world.api.ok("listAgents", 200, { token: world.token, query: { limit: "200" } });
    const countIn = (fits: (agent: (typeof all.agents)[number]) => boolean): number =>
      all.agents.filter((agent) => agent.state !== "archived" && fits(agent)).length;
    for (const key of keys) {
      const { token } = key;
      expect(live(await world.api.ok("summarizeAgents", 200, { token })), key.name).to.equal(
        countIn(key.covers),
      );
      for (const place of someOrAll([here, beside, elsewhere, foreign], 2)) {
        const query = { teamId: place.teamId };
        const expected = key.covers(place) ? countIn(({ teamId }) => teamId === place.teamId) : 0;
        expect(live(await world.api.ok("summarizeAgents", 200, { token, query })), key.name).to.equal(
          expected,
        );
      }
    }
  });

  function isInside(id: OperationId, item: unknown, key: Key): boolean {
    if (id === "listProjects") return key.coversProject(idOf(item));
    if (id === "listTeams") {
      const { projectId } = z.object({ projectId: z.string() }).parse(item);
      return key.covers({ projectId, teamId: idOf(item) });
    }
    if (!OF_TRANSACTIONS.includes(id)) return key.covers(placed.parse(item));
    const { agentId } = z.object({ agentId: z.string() }).parse(item);
    const place = placeOfAgent.get(agentId);
    return place !== undefined && key.covers(place);
  }

  /** A transaction names its agent only. */
  let placeOfAgent: ReadonlyMap<string, Pick<Place, "projectId" | "teamId">> = new Map();

  async function listed(id: OperationId, token: string, query: Readonly<Record<string, string>> = {}) {
    const paging = PAGING[id] ?? { limit: "200" };
    const answer = await world.api.call(id, { token, query: { ...paging, ...query } });
    expect(answer.status, id).to.equal(200);
    if (id === "summarizeTransactions") {
      const { days } = operations[id].output.parse(answer.body);
      return days.flatMap(({ groups }) => groups.map(({ group }) => ({ id: group, agentId: group })));
    }
    if (id === "exportTransactions") return parse(z.string().parse(answer.body), { columns: true });
    const body = z.record(z.string(), z.unknown()).parse(answer.body);
    return z.array(z.unknown()).parse(Object.values(body).find((value) => Array.isArray(value)));
  }
});
