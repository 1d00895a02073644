import { createHash, randomUUID } from "node:crypto";
import { expect } from "chai";
import type { Document } from "mongodb";
import { codeOf, type Request } from "../support/contract-api.ts";
import type { OperationId } from "../../src/contract/registry.ts";
import { Passwords } from "../../src/identity/passwords.ts";
import { ORGANIZATION_SCOPES } from "../../src/contract/types.ts";
import { requestOptions } from "../../src/contract/webauthn.ts";
import { authenticatorFor, enrolPasskey } from "../support/passkeys.ts";
import { send } from "../support/wire.ts";
import { restricting } from "../support/restrictions.ts";
import { invite, join, newEmail, newPassword, type Person } from "../support/people.ts";
import { sharedService } from "../support/service.ts";
import {
  newEndpoint,
  cardPayment,
  elevate,
  newWorld,
  organizationKey,
  type World,
} from "../support/world.ts";
import { run } from "../payments/reconcile-scenes.ts";
import { codeAt } from "./support.ts";

/** An attempt to use what was written into MongoDB, and its outcome: the status, or the code of the refusal. */
type Attempt = () => Promise<number | string>;

/** Compares the outcomes before and after the change. */
async function expectChange(attempt: Attempt, change: () => Promise<void>, outcomes: readonly unknown[]) {
  const before = await attempt();
  await change();
  expect([before, await attempt()]).to.deep.equal(outcomes);
}

const hashOf = (contents: object) =>
  createHash("sha256").update(JSON.stringify(contents)).digest("base64url");

/** Changes by an intruder who can write to MongoDB and has no key of the service. */
describe("a record that something else than the service has changed", () => {
  let world: World;
  beforeEach(async () => {
    world = await newWorld(sharedService());
  });

  const db = () => world.service.db;
  const records = (name: string) => db().collection<{ _id: string }>(name);

  async function alter(name: string, _id: string, $set: Document, $unset: Document = {}): Promise<void> {
    const update = { $set, ...(Object.keys($unset).length === 0 ? {} : { $unset }) };
    expect((await records(name).updateOne({ _id }, update)).matchedCount, `${name} ${_id}`).to.equal(1);
  }

  async function outcomeOf(id: OperationId, request: Request): Promise<number | string> {
    const answer = await world.api.call(id, request);
    return codeOf(answer) ?? answer.status;
  }

  const signIn =
    (email: string, password: string): Attempt =>
    () =>
      outcomeOf("signIn", { body: { email, password } });

  const stopped = async (id: OperationId, request: Request): Promise<unknown> => {
    const answer = await world.api.call(id, request);
    return codeOf(answer) ?? Object(answer.body).paused;
  };

  const rulesOf = async (name: string, id: string) =>
    Object(await records(name).findOne({ _id: id })).approvalRules;

  const sessionIdOf = async ({ id: userId }: Pick<Person, "id">): Promise<string> => {
    const session = await db().collection<{ _id: string; userId: string }>("sessions").findOne({ userId });
    return session?._id ?? "";
  };

  describe("lets nobody in", () => {
    it("a person's password hash", async () => {
      const { email, userId } = world.organization;
      const password = newPassword();
      const passwordHash = await (await Passwords.on(db())).hash(email, password);
      await expectChange(signIn(email, password), () => alter("users", userId, { passwordHash }), [
        "UNAUTHORIZED",
        "UNAUTHORIZED",
      ]);
    });

    it("a person's organization", async () => {
      const stranger = await newWorld(sharedService());
      const { organizationId } = world.organization;
      const { email, password, userId } = stranger.organization;
      await expectChange(signIn(email, password), () => alter("users", userId, { organizationId }), [
        200,
        "UNAUTHORIZED",
      ]);
    });

    it("second factors that were removed, or struck from the person's record", async () => {
      const { email, password, userId } = world.organization;
      await withTotp();
      const attempt = signIn(email, password);
      await expectChange(
        attempt,
        async () => void (await db().collection("factors").deleteMany({ userId })),
        ["SECOND_FACTOR_REQUIRED", "SECOND_FACTOR_REQUIRED"],
      );
      await alter("users", userId, { secondFactors: [] });
      expect(await attempt()).to.equal("UNAUTHORIZED");
    });

    it("a passkey given to another person, or with another's key", async () => {
      const { userId } = world.organization;
      const [mine, theirs] = [authenticatorFor(world), authenticatorFor(world)];
      const thief = await join(world, "member");
      const { id } = await enrolPasskey(world, mine, { token: thief.token });
      await elevate(world);
      const { id: ownersId } = await enrolPasskey(world, theirs);
      const userHandle = Buffer.from(userId.replaceAll("-", ""), "hex").toString("base64url");
      const attempt: Attempt = async () => {
        const options = requestOptions.parse(await world.api.ok("passkeySignInOptions", 200));
        const response = mine.get(options, { userHandle });
        return outcomeOf("signInWithPasskey", { body: { response } });
      };
      await expectChange(attempt, () => alter("factors", id, { userId }), [
        "SECOND_FACTOR_INVALID",
        "SECOND_FACTOR_INVALID",
      ]);
      const made = await db().collection<{ _id: string }>("factors").findOne({ _id: id });
      const { credentialId, publicKey } = Object(made);
      await db().collection<{ _id: string }>("factors").deleteOne({ _id: id });
      await alter("factors", ownersId, { credentialId, publicKey });
      expect(await attempt()).to.equal("SECOND_FACTOR_INVALID");
    });

    it("one's own session in another person's name", async () => {
      const stranger = await newWorld(sharedService());
      const { email, password } = stranger.organization;
      const { refreshToken } = await world.api.ok("signIn", 200, { body: { email, password } });
      const sessions = db().collection<{ _id: string }>("sessions");
      const of = { userId: stranger.organization.userId };
      const [newest] = await sessions.find(of).sort({ createdAt: -1 }).limit(1).toArray();
      const { organizationId, userId } = world.organization;
      await alter("sessions", newest?._id ?? "", { organizationId, userId });
      expect(await outcomeOf("refreshSession", { body: { refreshToken } })).to.equal("UNAUTHORIZED");
    });
  });

  it("has nobody decide under another name", async () => {
    const { email, password, userId } = world.organization;
    await expectChange(signIn(email, password), () => alter("users", userId, { name: "Another" }), [
      200,
      "UNAUTHORIZED",
    ]);
  });

  describe("gives a person no power", () => {
    it("an enrolment of TOTP in another session, for longer, or begun after a step-up", async () => {
      const { token } = world;
      const { userId } = world.organization;
      const begin = () => world.api.ok("enrollTotp", 201, { token });
      const confirm = async (secret: string) =>
        outcomeOf("confirmTotp", { token, body: { code: await codeAt(secret, new Date()) } });
      const changes: readonly Document[] = [
        { "pending.steppedUp": true },
        { "pending.expiresAt": new Date(Date.now() + 3_600_000) },
        { "pending.id": "another" },
      ];
      for (const change of changes) {
        const { secret } = await begin();
        await alter("factors", `totp:${userId}`, change);
        expect(await confirm(secret)).to.equal("SECOND_FACTOR_INVALID");
      }
      const { secret } = await begin();
      expect(await confirm(secret)).to.equal(200);
    });

    it("a member's role", async () => {
      const member = await join(world, "member");
      const attempt: Attempt = () => outcomeOf("listOrganizationKeys", { token: member.token });
      await expectChange(attempt, () => alter("users", member.id, { role: "owner" }), [
        "ROLE_REQUIRED",
        "UNAUTHORIZED",
      ]);
    });

    it("a session's step-up, and the age of its sign-in", async () => {
      const { email, password, userId } = world.organization;
      const { token } = await world.api.ok("signIn", 200, { body: { email, password } });
      const body = { name: "Key", scopes: ["agents:read"], binding: { type: "organization" } };
      const [own] = await records("sessions").find({ userId }).sort({ createdAt: -1 }).limit(1).toArray();
      const stepUpExpiresAt = new Date(Date.now() + 300_000);
      await expectChange(
        () => outcomeOf("mintOrganizationKey", { token: token ?? "", body }),
        () => alter("sessions", own?._id ?? "", { stepUpExpiresAt }),
        ["STEP_UP_REQUIRED", "UNAUTHORIZED"],
      );
      const old = await join(world, "member");
      const createdAt = new Date(Date.now() - 3_600_000);
      await expectChange(
        () => outcomeOf("enrollTotp", { token: old.token }),
        async () => alter("sessions", await sessionIdOf(old), { createdAt }),
        [201, "UNAUTHORIZED"],
      );
    });

    it("a required second factor that was struck from the person's record", async () => {
      const member = await join(world, "member");
      await withTotp();
      await elevate(world);
      const body = { requireSecondFactor: true };
      await world.api.ok("updateOrganization", 200, { token: world.token, body });
      await expectChange(
        () => outcomeOf("listAgents", { token: member.token }),
        () => alter("users", member.id, {}, { secondFactorRequired: "" }),
        ["SECOND_FACTOR_ENROLMENT_REQUIRED", "UNAUTHORIZED"],
      );
    });

    it("an invite's role, and its organization", async () => {
      const { invite: made, token } = await invite(world, "member");
      await alter("invites", made.id, { role: "owner" });
      const body = { token, name: "Guest", password: newPassword() };
      expect(await outcomeOf("checkInvite", { body: { token } })).to.equal("NOT_FOUND");
      expect(await outcomeOf("acceptInvite", { body })).to.equal("NOT_FOUND");
      const stranger = await newWorld(sharedService());
      const moved = await invite(stranger, "owner", newEmail());
      const { organizationId, userId: id } = world.organization;
      await alter("invites", moved.invite.id, { organizationId, createdBy: { type: "user", id } });
      expect(await outcomeOf("acceptInvite", { body: { ...body, token: moved.token } })).to.equal(
        "NOT_FOUND",
      );
    });
  });

  describe("widens no organization key", () => {
    it("its scopes, binding, organization, lineage or limit", async () => {
      const stranger = await newWorld(sharedService());
      const { teamId } = world.organization;
      const changes: readonly [Document, OperationId, string | number][] = [
        [{ scopes: ORGANIZATION_SCOPES }, "listProjects", "INSUFFICIENT_SCOPE"],
        [{ binding: { type: "organization" } }, "listAgents", 200],
        [{ organizationId: stranger.organization.organizationId }, "listAgents", 200],
        [{ lineageId: "okey_another" }, "listAgents", 200],
        [{ dailyCreateLimit: 1_000_000 }, "listAgents", 200],
        [{ createdBy: { type: "user", id: "another" } }, "listAgents", 200],
      ];
      for (const [change, operation, before] of changes) {
        const key = await organizationKey(world, {
          scopes: ["agents:read"],
          binding: { type: "team", id: teamId },
        });
        await expectChange(
          () => outcomeOf(operation, { token: key.token }),
          () => alter("organization_keys", key.id, change),
          [before, "UNAUTHORIZED"],
        );
      }
    });

    it("its hash: another key's value does not do what it may", async () => {
      const wide = await organizationKey(world);
      const narrow = await organizationKey(world, { scopes: ["agents:read"] });
      await expectChange(
        () => outcomeOf("listProjects", { token: narrow.token }),
        async () => {
          const known = await records("organization_keys").findOneAndDelete({ _id: narrow.id });
          await alter("organization_keys", wide.id, { hash: Object(known).hash });
        },
        ["INSUFFICIENT_SCOPE", "UNAUTHORIZED"],
      );
    });

    it("a changed one is not rotated into one that is good", async () => {
      const key = await organizationKey(world, { scopes: ["agents:read"] });
      await alter("organization_keys", key.id, { scopes: ORGANIZATION_SCOPES });
      await elevate(world);
      const { token } = world;
      expect(await outcomeOf("rotateOrganizationKey", { token, id: key.id })).to.equal("NOT_FOUND");
    });
  });

  describe("hides nobody from a stop, and moves nothing to another organization", () => {
    it("a team in another project: its stop says that it did nothing", async () => {
      await world.agent();
      const { teamId } = world.organization;
      const body = { name: "Elsewhere" };
      const { project } = await world.api.ok("createProject", 201, { token: world.token, body });
      await alter("teams", teamId, { projectId: project.id });
      const stop = { token: world.token, id: teamId, body: {} };
      expect(await stopped("stopTeam", stop)).to.equal("NOT_FOUND");
    });

    it("a project in another organization: that has no hold of it, and its own stops its agents", async () => {
      await world.agent();
      const stranger = await newWorld(sharedService());
      const { projectId } = world.organization;
      const { organizationId } = stranger.organization;
      const theirs = { token: stranger.token, id: projectId };
      await expectChange(
        () => outcomeOf("getProjectBudget", theirs),
        () => alter("projects", projectId, { organizationId }),
        ["NOT_FOUND", "NOT_FOUND"],
      );
      expect(await stopped("stopOrganization", { token: world.token, body: {} })).to.equal(1);
    });
  });

  describe("gives no one another's agent, and has no one approve what they do not see", () => {
    it("an agent in another organization, or with another wallet", async () => {
      const agent = await world.agent();
      const stranger = await newWorld(sharedService());
      const { organizationId } = stranger.organization;
      const theirs = () => outcomeOf("pauseAgent", { token: stranger.token, id: agent.id });
      await expectChange(theirs, () => alter("agents", agent.id, { organizationId }), [
        "NOT_FOUND",
        "NOT_FOUND",
      ]);
      const other = await world.agent();
      const own = () => outcomeOf("getAgent", { token: world.token, id: other.id });
      await expectChange(own, () => alter("agents", other.id, { "wallet.owner": "0x0" }), [200, "NOT_FOUND"]);
    });

    it("a held payment's amount: what a person approves for 6 is not paid for 900", async () => {
      const agent = await world.agent({ autoApprovalThresholdCents: 0 });
      const { approvalId, transactionId } = await agent.hold({ amountCents: 900 });
      await alter("approvals", approvalId, { amountCents: 6 });
      await outcomeOf("approveApproval", { token: world.token, id: approvalId });
      expect(await records("sandbox_card_ledger").countDocuments({ transactionId })).to.equal(0);
    });
  });

  describe("loosens no approval rule: no payment of the container is decided", () => {
    const RULES = [{ type: "amount_above", params: { amountCents: 1 } }];
    const strict = (set: "setProjectApprovalRules" | "setTeamApprovalRules", id: string) =>
      world.api.ok(set, 200, { token: world.token, id, body: { rules: RULES, version: 1 } });

    it("removed with their hash, removed alone, or another container's in their place", async () => {
      const { token } = world;
      const changes: readonly ((id: string) => Promise<Document>)[] = [
        async () => ({ "approvalRules.rules": [], "approvalRules.contentHash": hashOf([]) }),
        async () => ({ "approvalRules.rules": [] }),
        async () => {
          const name = { token, body: { name: "Lax" } };
          const lax = (await world.api.ok("createProject", 201, name)).project.id;
          const body = { rules: [], version: 1 };
          await world.api.ok("setProjectApprovalRules", 200, { token, id: lax, body });
          return { approvalRules: await rulesOf("projects", lax) };
        },
      ];
      for (const change of changes) {
        const project = { token, body: { name: randomUUID() } };
        const projectId = (await world.api.ok("createProject", 201, project)).project.id;
        const team = { token, body: { name: "Team", projectId } };
        const teamId = (await world.api.ok("createTeam", 201, team)).team.id;
        const agent = await world.agent({ teamId });
        await strict("setProjectApprovalRules", projectId);
        await alter("projects", projectId, await change(projectId));
        expect(await outcomeOf("createPayment", { token: agent.key, body: cardPayment() })).to.equal(
          "SERVICE_UNAVAILABLE",
        );
      }
    });

    it("a team's, until a person sets them again", async () => {
      const { teamId } = world.organization;
      const agent = await world.agent();
      await strict("setTeamApprovalRules", teamId);
      const loosened = { "approvalRules.rules": [], "approvalRules.contentHash": hashOf([]) };
      await alter("teams", teamId, loosened);
      const pay = () => outcomeOf("createPayment", { token: agent.key, body: cardPayment() });
      expect(await pay()).to.equal("SERVICE_UNAVAILABLE");
      const body = { rules: RULES, version: 2 };
      await world.api.ok("setTeamApprovalRules", 200, { token: world.token, id: teamId, body });
      await agent.hold();
    });
  });

  it("loosens no restriction: emptied, or deleted, no payment of the agent is allowed", async () => {
    await elevate(world);
    const loosened = restricting();
    const { version: _version, ...lists } = loosened;
    const changes: readonly ((id: string) => Promise<unknown>)[] = [
      (id) => alter("agent_restrictions", id, { "restrictions.lists": lists }),
      (id) => alter("agent_restrictions", id, { "restrictions.contentHash": hashOf(lists) }),
      (_id) => records("agent_restrictions").deleteOne({ _id }),
    ];
    for (const change of changes) {
      const agent = await world.agent();
      const body = restricting({ rails: { only: ["wallet"] } });
      await world.api.ok("setAgentRestrictions", 200, { token: world.token, id: agent.id, body });
      await change(agent.id);
      const answer = await world.api.call("createPayment", { token: agent.key, body: cardPayment() });
      // Restrictions that were read before the change still deny.
      const isDenied = JSON.stringify(answer.body).includes("RAIL_NOT_ALLOWED");
      expect([answer.status, isDenied], JSON.stringify(answer.body)).to.be.deep.oneOf([
        [503, false],
        [201, true],
      ]);
    }
  });

  it("is named by reconcile, each with what it is", async () => {
    const { projectId, teamId, userId } = world.organization;
    const key = await organizationKey(world);
    const { invite: invited } = await invite(world, "member");
    const body = { rules: [], version: 1 };
    await world.api.ok("setTeamApprovalRules", 200, { token: world.token, id: teamId, body });
    const restricted = { token: world.token, id: teamId, body: restricting() };
    await world.api.ok("setTeamRestrictions", 200, restricted);
    const sessionId = await sessionIdOf({ id: userId });
    const endpoint = await newEndpoint(world);
    await alter("teams", teamId, {
      "approvalRules.rules": [{}],
      "restrictions.lists.rails.only": [],
      projectId: "another",
    });
    await alter("projects", projectId, { proof: null });
    await alter("organization_keys", key.id, { scopes: [] });
    await alter("invites", invited.id, { role: "owner" });
    await alter("sessions", sessionId, { epoch: 9 });
    await alter("users", userId, { role: "member" });
    await alter("webhook_endpoints", endpoint.id, { url: "https://elsewhere.example" });
    const found = (await run(world, false, 1)).differences.filter(
      ({ kind }) => kind === "access_record_differs",
    );
    expect(found.map(({ id, of }) => `${of} ${id}`).toSorted()).to.deep.equal([
      `invite ${invited.id}`,
      `organization key ${key.id}`,
      `person ${userId}`,
      `project ${projectId}`,
      `session ${sessionId}`,
      `team ${teamId}`,
      `team ${teamId}`,
      `team ${teamId}`,
      `webhook endpoint ${endpoint.id}`,
    ]);
  });

  it("is counted", async () => {
    const member = await join(world, "member");
    await alter("users", member.id, { role: "owner" });
    await world.api.refused("getMe", 401, "UNAUTHORIZED", { token: member.token });
    const { body } = await send(world.service.baseUrl, "/metrics");
    expect(String(body)).to.match(/^spending_control_forged_total\{what="record"\} [1-9]/m);
  });

  /** Enrols TOTP for the owner. */
  async function withTotp(): Promise<void> {
    const { token } = world;
    const { secret } = await world.api.ok("enrollTotp", 201, { token });
    await world.api.ok("confirmTotp", 200, { token, body: { code: await codeAt(secret, new Date()) } });
  }
});
