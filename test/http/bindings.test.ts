import { randomUUID } from "node:crypto";
import { expect } from "chai";
import type { OperationId } from "../../src/contract/registry.ts";
import type { Answer } from "../support/api.ts";
import { McpCaller } from "../mcp/support.ts";
import { codeOf } from "./support/contract-api.ts";
import { type Fields, type KeyChoice, newWorld, organizationKey, type World } from "./support/world.ts";

type Ids = Readonly<Record<string, string>>;
type Bound = "organization" | "project" | "team";

/** What a key of each binding is answered: an outcome for each of the containers that a row is asked about. */
type Row = readonly [what: string, ask: (world: World, token: string, ids: Ids) => Promise<Answer>, Expected];
type Expected = Readonly<Record<Bound, string>>;

const on = (operation: OperationId, name: string) => (world: World, token: string, ids: Ids) =>
  world.api.call(operation, { token, id: ids[name] ?? "" });

const creating =
  (operation: OperationId, bodyOf: (ids: Ids) => Fields) => (world: World, token: string, ids: Ids) =>
    world.api.call(operation, { token, body: { name: "x", idempotencyKey: randomUUID(), ...bodyOf(ids) } });

const agentIn = (team: string) => creating("createAgent", (ids) => ({ teamId: ids[team], budgetCents: 1 }));
const teamIn = (project: string | null) =>
  creating("createTeam", (ids) => (project === null ? {} : { projectId: ids[project] }));

/**
 * The organization has two projects, `inside` with two teams (`inside` and `sibling`) and `outside` with one; the keys
 * are bound to the project `inside` or to the team `inside`. An agent has the name of its team.
 */
const ROWS: readonly Row[] = [
  ["reads its project", on("getProject", "insideProject"), bound("200", "200", "OUTSIDE_BINDING")],
  [
    "reads another project",
    on("getProject", "outsideProject"),
    bound("200", "OUTSIDE_BINDING", "OUTSIDE_BINDING"),
  ],
  [
    "reads a foreign project",
    on("getProject", "foreignProject"),
    bound("NOT_FOUND", "NOT_FOUND", "NOT_FOUND"),
  ],
  ["reads no project", on("getProject", "unknown"), bound("NOT_FOUND", "NOT_FOUND", "NOT_FOUND")],
  ["reads its team", on("getTeam", "insideTeam"), bound("200", "200", "200")],
  ["reads a sibling of its team", on("getTeam", "siblingTeam"), bound("200", "200", "OUTSIDE_BINDING")],
  [
    "reads a team elsewhere",
    on("getTeam", "outsideTeam"),
    bound("200", "OUTSIDE_BINDING", "OUTSIDE_BINDING"),
  ],
  ["reads a foreign team", on("getTeam", "foreignTeam"), bound("NOT_FOUND", "NOT_FOUND", "NOT_FOUND")],
  ["reads its agent", on("getAgent", "insideAgent"), bound("200", "200", "200")],
  ["reads a sibling's agent", on("getAgent", "siblingAgent"), bound("200", "200", "OUTSIDE_BINDING")],
  [
    "reads an agent elsewhere",
    on("getAgent", "outsideAgent"),
    bound("200", "OUTSIDE_BINDING", "OUTSIDE_BINDING"),
  ],
  ["reads a foreign agent", on("getAgent", "foreignAgent"), bound("NOT_FOUND", "NOT_FOUND", "NOT_FOUND")],
  [
    "pauses an agent elsewhere",
    on("pauseAgent", "outsideAgent"),
    bound("200", "OUTSIDE_BINDING", "OUTSIDE_BINDING"),
  ],
  [
    "creates a project",
    creating("createProject", () => ({})),
    bound("201", "OUTSIDE_BINDING", "OUTSIDE_BINDING"),
  ],
  ["creates a team where it falls", teamIn(null), bound("201", "201", "OUTSIDE_BINDING")],
  ["creates a team in its project", teamIn("insideProject"), bound("201", "201", "OUTSIDE_BINDING")],
  [
    "creates a team in another project",
    teamIn("outsideProject"),
    bound("201", "OUTSIDE_BINDING", "OUTSIDE_BINDING"),
  ],
  [
    "creates a team in a foreign project",
    teamIn("foreignProject"),
    bound("NOT_FOUND", "NOT_FOUND", "OUTSIDE_BINDING"),
  ],
  ["creates an agent in its team", agentIn("insideTeam"), bound("201", "201", "201")],
  ["creates an agent in a sibling", agentIn("siblingTeam"), bound("201", "201", "OUTSIDE_BINDING")],
  ["creates an agent elsewhere", agentIn("outsideTeam"), bound("201", "OUTSIDE_BINDING", "OUTSIDE_BINDING")],
  [
    "creates an agent in a foreign team",
    agentIn("foreignTeam"),
    bound("NOT_FOUND", "NOT_FOUND", "NOT_FOUND"),
  ],
];

function bound(organization: string, project: string, team: string): Expected {
  return { organization, project, team };
}

describe("what organization keys may act in", () => {
  let world: World;
  let ids: Ids;
  let keys: Readonly<Record<Bound, string>>;

  before(async () => {
    world = await newWorld();
    const foreign = await newWorld();
    const [inside, outside] = [await project(), await project()];
    const [insideTeam, siblingTeam, outsideTeam] = [
      await team(inside),
      await team(inside),
      await team(outside),
    ];
    ids = {
      unknown: randomUUID(),
      insideProject: inside,
      outsideProject: outside,
      insideTeam,
      siblingTeam,
      outsideTeam,
      foreignProject: foreign.organization.projectId,
      foreignTeam: foreign.organization.teamId,
      insideAgent: (await world.agent({ teamId: insideTeam })).id,
      siblingAgent: (await world.agent({ teamId: siblingTeam })).id,
      outsideAgent: (await world.agent({ teamId: outsideTeam })).id,
      foreignAgent: (await foreign.agent()).id,
    };
    keys = {
      organization: await keyOf({ type: "organization" }),
      project: await keyOf({ type: "project", id: inside }),
      team: await keyOf({ type: "team", id: insideTeam }),
    };
  });

  const keyOf = async (binding: NonNullable<KeyChoice["binding"]>) =>
    (await organizationKey(world, { binding })).token;

  async function project(): Promise<string> {
    const { token } = world;
    return (await world.api.ok("createProject", 201, { token, body: { name: "P" } })).project.id;
  }

  async function team(projectId: string): Promise<string> {
    const { token } = world;
    return (await world.api.ok("createTeam", 201, { token, body: { name: "T", projectId } })).team.id;
  }

  for (const [what, ask, expected] of ROWS) {
    for (const binding of ["organization", "project", "team"] as const) {
      it(`bound to its ${binding}, a key that ${what}: ${expected[binding]}`, async () => {
        const answer = await ask(world, keys[binding], ids);
        expect(codeOf(answer) ?? String(answer.status)).to.equal(expected[binding]);
      });
    }
  }

  async function listed(token: string, query: Readonly<Record<string, string>> = {}) {
    const { projects } = await world.api.ok("listProjects", 200, { token });
    const { teams } = await world.api.ok("listTeams", 200, { token, query });
    const { agents } = await world.api.ok("listAgents", 200, { token, query });
    const names = new Map(Object.entries(ids).map(([name, id]) => [id, name]));
    const named = [...projects, ...teams, ...agents].flatMap(({ id }) => names.get(id) ?? []);
    return named.toSorted();
  }

  it("lists are narrowed to the binding, and a filter for something outside finds nothing", async () => {
    const inside = ["insideAgent", "insideTeam"];
    const sibling = ["siblingAgent", "siblingTeam"];
    const outside = ["outsideAgent", "outsideProject", "outsideTeam"];
    expect(await listed(keys.organization)).to.deep.equal(
      [...inside, ...sibling, ...outside, "insideProject"].toSorted(),
    );
    expect(await listed(keys.project)).to.deep.equal([...inside, ...sibling, "insideProject"].toSorted());
    expect(await listed(keys.team)).to.deep.equal(inside);
    const projectId = ids["outsideProject"] ?? "";
    expect(await listed(keys.project, { projectId })).to.deep.equal(["insideProject"]);
    expect(await listed(keys.team, { projectId })).to.deep.equal([]);
  });

  it("a team that a project's key creates without naming a project lies in the key's own", async () => {
    const body = { name: "Mine", idempotencyKey: randomUUID() };
    const token = keys.project;
    const { team: made } = await world.api.ok("createTeam", 201, { token, body });
    expect(made.projectId).to.equal(ids["insideProject"]);
    // The project that the default stands for, spelt out, is the same payload.
    const spelt = { ...body, projectId: made.projectId };
    expect((await world.api.ok("createTeam", 200, { token, body: spelt })).team).to.deep.equal(made);
  });

  it("tools keep to the binding as REST does", async () => {
    const caller = await McpCaller.connect(world.service.baseUrl, keys.team);
    try {
      const call = async (name: string, args: Fields) =>
        (await caller.client.callTool({ name, arguments: { ...args } })).structuredContent;
      const named = { name: "x", idempotencyKey: randomUUID() };
      for (const name of ["create_project", "create_team"]) {
        expect(await call(name, named)).to.deep.include({ error: "OUTSIDE_BINDING" });
      }
      expect(await call("list_projects", {})).to.deep.equal({ projects: [], nextCursor: null });
      const elsewhere = { ...named, teamId: ids["siblingTeam"], budgetCents: 1 };
      expect(await call("create_agent", elsewhere)).to.deep.include({ error: "OUTSIDE_BINDING" });
      const foreign = { ...elsewhere, teamId: ids["foreignTeam"] };
      expect(await call("create_agent", foreign)).to.deep.include({ error: "NOT_FOUND" });
    } finally {
      await caller.close();
    }
  });

  const needed: readonly (readonly [OperationId, string])[] = [
    ["createProject", "projects:write"],
    ["listProjects", "projects:read"],
    ["getProject", "projects:read"],
    ["createTeam", "teams:write"],
    ["listTeams", "teams:read"],
    ["getTeam", "teams:read"],
  ];
  for (const [operation, scope] of needed) {
    it(`${operation} needs ${scope}, and says so before anything else`, async () => {
      const others = [
        "agents:read",
        "agents:write",
        "projects:read",
        "projects:write",
        "teams:read",
        "teams:write",
      ];
      const scopes = others.filter((each) => each !== scope) as NonNullable<KeyChoice["scopes"]>;
      const { token } = await organizationKey(world, { scopes });
      const request = { token, id: "general", ...(operation.startsWith("create") ? { body: {} } : {}) };
      const { requiredScope } = await world.api.refused(operation, 403, "INSUFFICIENT_SCOPE", request);
      expect(requiredScope).to.equal(scope);
    });
  }

  for (const operation of ["updateProject", "archiveProject", "updateTeam", "archiveTeam"] as const) {
    it(`${operation} is for people: SESSION_REQUIRED whatever a key's scopes`, async () => {
      const request = { token: keys.organization, id: ids["insideProject"] ?? "" };
      await world.api.refused(operation, 403, "SESSION_REQUIRED", request);
    });
  }
});
