import { expect } from "chai";
import { elevate, type Fields, newWorld, type World } from "../support/world.ts";
import { seed } from "../support/seed.ts";
import { someOrAll } from "../support/soak.ts";
import { type Container, type Kind, projects, type Query, teams } from "./kinds.ts";

const UNKNOWN_ID = "01890a5d-ac96-774b-bcce-b302099a8057";

const list = async (kind: Kind, world: World, query: Query = {}): Promise<readonly Container[]> =>
  (await kind.page(world, query)).items;

const idsOf = (containers: readonly Container[]): string[] => containers.map(({ id }) => id);

describe(`projects and teams over HTTP (TEST_SEED=${seed})`, () => {
  let world: World;
  before(async () => {
    world = await newWorld();
    await elevate(world);
  });

  for (const kind of someOrAll([projects, teams], 1)) {
    const { names, noun } = kind;
    describe(noun, () => {
      it("201 with the record, and the same when it is read alone or in a list, newest first", async () => {
        const plain = await kind.create(world);
        expect(plain).to.deep.include({ description: null, color: null, logo: null, archivedAt: null });
        const full = await kind.create(world, { name: "Full", description: "d", color: "#A1b2c3" });
        expect(full).to.deep.include({ name: "Full", description: "d", color: "#A1b2c3", logo: null });
        expect(await kind.read(world, full.id)).to.deep.equal(full);
        expect((await list(kind, world)).slice(0, 2)).to.deep.equal([full, plain]);
      });

      const wrong: readonly (readonly [string, Fields])[] = [
        ["name", { name: "" }],
        ["name", { name: "  " }],
        ["name", { name: "x".repeat(101) }],
        ["name", { name: null }],
        ["description", { description: "x".repeat(501) }],
        ["color", { color: "red" }],
        ["color", { color: "#12345" }],
        ["colour", { colour: "#123456" }],
      ];
      it("400 names the wrong field, on create and change", async () => {
        const { token } = world;
        const { id } = await kind.create(world);
        for (const [path, fields] of wrong) {
          const body = { name: "x", ...fields };
          for (const request of [
            [names.create, { token, body }],
            [names.update, { token, id, body }],
          ] as const) {
            const { issues } = await world.api.refused(request[0], 400, "VALIDATION_FAILED", request[1]);
            expect(issues?.map((issue) => issue.path)).to.deep.equal([path]);
          }
        }
      });

      it("a change keeps what it does not name, null clears, an empty one is 200 without effect", async () => {
        const made = await kind.create(world, { description: "d", color: "#000000" });
        const renamed = await kind.update(world, made.id, { name: "New" });
        expect(renamed).to.deep.equal({ ...made, name: "New" });
        expect(await kind.update(world, made.id, {})).to.deep.equal(renamed);
        const cleared = await kind.update(world, made.id, { description: null, color: null });
        expect(cleared).to.deep.equal({ ...renamed, description: null, color: null });
        expect(await kind.read(world, made.id)).to.deep.equal(cleared);
      });

      it("archived when empty, again 200 with the same record; then even an empty change is 409", async () => {
        const made = await kind.create(world);
        const archived = await kind.archive(world, made.id);
        expect(archived.archivedAt).to.be.a("string");
        expect(archived).to.deep.equal({ ...made, archivedAt: archived.archivedAt });
        expect(await kind.archive(world, made.id)).to.deep.equal(archived);
        expect(await kind.read(world, made.id)).to.deep.equal(archived);
        const { token } = world;
        for (const body of [{ name: "x" }, {}]) {
          await world.api.refused(names.update, 409, "CONTAINER_ARCHIVED", { token, id: made.id, body });
        }
        expect(idsOf(await list(kind, world))).to.include(made.id);
        expect(idsOf(await list(kind, world, { state: "archived" }))).to.include(made.id);
        expect(idsOf(await list(kind, world, { state: "active" }))).not.to.include(made.id);
        await world.api.refused(names.list, 400, "VALIDATION_FAILED", { token, query: { state: "paused" } });
      });

      it("pages by cursor, bound to its filters", async () => {
        const own = await newWorld();
        const made = [];
        for (let index = 0; index < 3; index += 1) made.unshift((await kind.create(own)).id);
        const { token } = own;
        const first = await kind.page(own, { limit: "2" });
        const nextCursor = first.nextCursor ?? "";
        const last = await kind.page(own, { limit: "2", cursor: nextCursor });
        // The last is the default one, which was there before.
        const met = idsOf([...first.items, ...last.items]);
        expect([met.slice(0, 3), met.length, last.nextCursor]).to.deep.equal([made, 4, null]);
        for (const request of [
          { token, query: { cursor: nextCursor, state: "active" } },
          { token: world.token, query: { cursor: nextCursor } },
        ]) {
          await world.api.refused(names.list, 400, "BAD_CURSOR", request);
        }
      });
    });
  }

  describe("a team's project", () => {
    it("is the named one, by default the default one; the list narrows by it", async () => {
      const own = await newWorld();
      const { api, token } = own;
      const { projectId, teamId } = own.organization;
      const { id } = await projects.create(own);
      const { team: inDefault } = await api.ok("createTeam", 201, { token, body: { name: "T" } });
      const { team: named } = await api.ok("createTeam", 201, { token, body: { name: "T", projectId: id } });
      expect([inDefault.projectId, named.projectId]).to.deep.equal([projectId, id]);
      const listed = async (query: Readonly<Record<string, string>>) => idsOf(await list(teams, own, query));
      expect(await listed({ projectId: id })).to.deep.equal([named.id]);
      expect(await listed({ projectId })).to.deep.equal([inDefault.id, teamId]);
      expect(await listed({ projectId, state: "archived" })).to.deep.equal([]);
      for (const nothing of [UNKNOWN_ID, world.organization.projectId, teamId]) {
        expect(await listed({ projectId: nothing })).to.deep.equal([]);
      }
      await api.refused("listTeams", 400, "VALIDATION_FAILED", { token, query: { projectId: "general" } });
    });

    it("that is unknown or another organization's is 404, that is archived is 409", async () => {
      const { token } = world;
      const { id: archivedId } = await projects.create(world);
      await projects.archive(world, archivedId);
      const other = await newWorld();
      for (const projectId of [UNKNOWN_ID, other.organization.projectId, world.organization.teamId]) {
        await world.api.refused("createTeam", 404, "NOT_FOUND", { token, body: { name: "T", projectId } });
      }
      const body = { name: "T", projectId: archivedId };
      await world.api.refused("createTeam", 409, "CONTAINER_ARCHIVED", { token, body });
    });
  });

  describe("what is not empty", () => {
    it("a team with an active or paused agent is 409 CONTAINER_NOT_EMPTY, else it is archived", async () => {
      const { token } = world;
      const team = await teams.create(world);
      const agent = await world.agent({ teamId: team.id });
      const refuse = () =>
        world.api.refused("archiveTeam", 409, "CONTAINER_NOT_EMPTY", { token, id: team.id });
      await refuse();
      await world.api.ok("pauseAgent", 200, { token, id: agent.id });
      await refuse();
      expect((await teams.read(world, team.id)).archivedAt).to.equal(null);
      await world.service.db
        .collection<{ _id: string }>("agents")
        .updateOne({ _id: agent.id }, { $set: { lifecycle: "archived", archivedAt: new Date() } });
      expect((await teams.archive(world, team.id)).archivedAt).to.be.a("string");
    });

    it("a project with a live team is 409 CONTAINER_NOT_EMPTY, else it is archived", async () => {
      const { token } = world;
      const { id: projectId } = await projects.create(world);
      const team = await teams.create(world, { projectId });
      await world.api.refused("archiveProject", 409, "CONTAINER_NOT_EMPTY", { token, id: projectId });
      await teams.archive(world, team.id);
      expect((await projects.archive(world, projectId)).archivedAt).to.be.a("string");
    });

    it("defaults may be archived too; creates that rely on the default project are then 409", async () => {
      const own = await newWorld();
      await elevate(own);
      const { api, organization, token } = own;
      await api.refused("archiveProject", 409, "CONTAINER_NOT_EMPTY", { token, id: organization.projectId });
      await teams.archive(own, organization.teamId);
      await projects.archive(own, organization.projectId);
      await api.refused("createTeam", 409, "CONTAINER_ARCHIVED", { token, body: { name: "T" } });
      const { id: projectId } = await projects.create(own);
      expect((await teams.create(own, { projectId })).archivedAt).to.equal(null);
    });
  });
});
