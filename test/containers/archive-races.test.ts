import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { collectionsOf } from "../../src/store/collections.ts";
import { provenContainer } from "../../src/store/level-records.ts";
import type { TeamDocument } from "../../src/store/documents.ts";
import { type Answer, onceReachable } from "../support/api.ts";
import { atOnce } from "../support/at-once.ts";
import { codeOf } from "../support/contract-api.ts";
import { secondService } from "../support/own-service.ts";
import type { TestService } from "../support/service.ts";
import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import { shortOrSoak } from "../support/soak.ts";
import { elevate, type Fields, newWorld, tally, times, worldOf, type World } from "../support/world.ts";
import { projects, teams } from "./kinds.ts";

const ROUNDS = shortOrSoak(4, 15);

const teamRecord = (
  { organization: { organizationId } }: World,
  projectId: string,
  archivedAt: Date | null,
): TeamDocument =>
  provenContainer(TEST_ACCESS_PROOFS, "team", {
    _id: randomUUID(),
    organizationId,
    projectId,
    name: "T",
    description: null,
    color: null,
    logoHash: null,
    createdAt: new Date(),
    archivedAt,
    state: archivedAt === null ? "active" : "archived",
  });

const outcomeOf = (answer: Answer): string => codeOf(answer) ?? String(answer.status);
/** Of a create under a key of its own; 200: of one that was told to come again, on a busy machine, and was made. */
const createdBy = (answer: Answer): string => (answer.status === 200 ? "201" : outcomeOf(answer));
const keyed = (fields: Fields) => ({ ...fields, idempotencyKey: randomUUID() });

describe("an archive and a create in it at once, on two servers", () => {
  let world: World;
  let second: TestService;
  /** The same owner, signed in at another server: sessions are good for the address that they were made at. */
  let there: World;
  before(async () => {
    world = await newWorld();
    second = await secondService(world.service);
    const { email, password } = world.organization;
    const token = await second.api.signIn(email, password);
    there = worldOf(second, { ...world.organization, token });
    await elevate(world);
  });
  after(() => second?.stop());

  it("never leave a live agent in an archived team", async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { id } = await teams.create(world);
      const outcomes: string[] = [];
      const create = async (at: World) => {
        const body = keyed({ name: "Racer", teamId: id, budgetCents: 1 });
        const answer = await onceReachable(() => at.api.call("createAgent", { token: at.token, body }));
        outcomes.push(`create ${createdBy(answer)}`);
      };
      // The record is what commits a create; the actor before it takes a while.
      const archive = async () => {
        await new Promise((resolve) => setTimeout(resolve, (round * 30) / ROUNDS));
        const answer = await onceReachable(() => there.api.call("archiveTeam", { token: there.token, id }));
        outcomes.push(`archive ${outcomeOf(answer)}`);
      };
      await Promise.all([archive(), ...times(3, (index) => create(index % 2 === 0 ? world : there))]);
      const live = await world.service.db.collection("agents").countDocuments({ teamId: id });
      const { archivedAt } = await teams.read(world, id);
      expect(archivedAt === null || live === 0, `${outcomes.join(", ")}: ${live} live`).to.equal(true);
      expect(outcomes.filter((outcome) => outcome === "create 201")).to.have.lengthOf(live);
      expect(outcomes).to.include(archivedAt === null ? "archive CONTAINER_NOT_EMPTY" : "archive 200");
    }
  });

  it("never make more than 1,000 live teams in a project; archiving one makes room", async () => {
    const { id: projectId } = await projects.create(world);
    const records = collectionsOf(world.service.db).teams;
    const teamIn = (index: number) => teamRecord(world, projectId, index < 995 ? null : new Date());
    await records.insertMany(times(1_100, teamIn));
    const bodies = times(12, () => keyed({ name: "T", projectId }));
    const answers = await atOnce(12, (index) => {
      const { api, token } = index % 2 === 0 ? world : there;
      return api.call("createTeam", { token, body: bodies[index] });
    });
    expect(tally(answers.map(createdBy))).to.deep.equal({ "201": 5, TOO_MANY_TEAMS: 7 });
    expect(await records.countDocuments({ projectId, archivedAt: null })).to.equal(1_000);
    const live = await records.findOne({ projectId, archivedAt: null });
    const body = { name: "Later", projectId, idempotencyKey: randomUUID() };
    const later = { token: world.token, body };
    await world.api.refused("createTeam", 409, "TOO_MANY_TEAMS", later);
    await teams.archive(world, live?._id ?? "");
    const { team } = await world.api.ok("createTeam", 201, later);
    await teams.archive(world, team.id);
    await teams.create(world, { projectId });
  });

  it("never leave a live team in an archived project", async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { id: projectId } = await projects.create(world);
      const body = keyed({ name: "Racer", projectId });
      const [archived, created] = await Promise.all([
        onceReachable(() => there.api.call("archiveProject", { token: there.token, id: projectId })),
        onceReachable(() => world.api.call("createTeam", { token: world.token, body })),
      ]);
      const pair = `archive ${outcomeOf(archived)}, create ${createdBy(created)}`;
      expect(pair).to.be.oneOf([
        "archive 200, create CONTAINER_ARCHIVED",
        "archive CONTAINER_NOT_EMPTY, create 201",
      ]);
    }
  });
});
