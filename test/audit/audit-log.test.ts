import { expect } from "chai";
import { z } from "zod";
import { AUDIT_LOG } from "../../src/store/audit-documents.ts";
import { LogReader } from "./log-reader.ts";
import { entriesOf, testSeal, breakIn } from "./support.ts";
import { McpCaller } from "../mcp/support.ts";
import { notedSecrets } from "../support/secrets.ts";
import { codeOf } from "../support/contract-api.ts";
import { elevate, newWorld, organizationKey, times, until, type World } from "../support/world.ts";
import { invite, join } from "../support/people.ts";

const NOBODY = "018f0000-0000-7000-8000-000000000000";
const ADDRESS = "198.51.100.7";

describe("the audit log", () => {
  let world: World;
  let log: LogReader;
  const fromAddress = { headers: { "x-forwarded-for": ADDRESS } };

  before(async () => {
    world = await newWorld();
    log = new LogReader(world);
  });

  const byOwner = () => {
    const { userId } = world.organization;
    return { type: "user", id: userId };
  };

  describe("what leaves an entry", () => {
    it("the organization itself, before anything else can be done in it", async () => {
      const [first] = await log.exported();
      expect(first).to.deep.include({
        sequence: 1,
        action: "createOrganization",
        actor: { type: "system", id: "command" },
        resource: { type: "organization", id: world.organization.organizationId },
        from: { address: null, surface: "admin", via: "create-organization" },
      });
    });

    it("a write: who in which session, what, on what, from where, with what result", async () => {
      const { teamId } = world.organization;
      const body = { name: "Buyer", teamId, budgetCents: 500 };
      const { agent } = await world.api.ok("createAgent", 201, { token: world.token, body, ...fromAddress });
      const { actor, after, ...entry } = await log.newest({ action: "createAgent" });
      expect(entry).to.deep.include({
        organizationId: world.organization.organizationId,
        action: "createAgent",
        resource: { type: "agent", id: agent.id },
        from: { address: ADDRESS, surface: "rest", via: "POST /v1/agents" },
        result: { status: 201, code: null },
        before: null,
        decision: null,
      });
      expect(actor).to.include(byOwner());
      expect(actor.sessionId).to.match(/^[0-9a-f-]{36}$/);
      expect(after).to.include({ budgetCents: 500, version: 1, scopes: null });
      expect(Math.abs(Date.parse(entry.at) - Date.now())).to.be.below(60_000);
    });

    it("a change of a budget policy: as it was and as it is, exactly", async () => {
      await elevate(world);
      const { id } = await world.agent({ autoApprovalThresholdCents: 100 });
      const change = async (version: number, fields: object) =>
        world.api.ok("updateAgentBudgetPolicy", 200, {
          token: world.token,
          id,
          body: { version, ...fields },
        });
      await change(1, { budgetCents: 700 });
      await change(2, { autoApprovalThresholdCents: null, hourlyVelocityLimit: 3 });
      const entries = (await log.list({ action: "updateAgentBudgetPolicy", resource: id })).entries;
      expect(entries.map(({ before }) => before)).to.deep.equal([
        policy({ budgetCents: 700, autoApprovalThresholdCents: 100, version: 2 }),
        policy({ budgetCents: 10_000, autoApprovalThresholdCents: 100, version: 1 }),
      ]);
      expect(entries.map(({ after }) => after)).to.deep.equal([
        policy({ budgetCents: 700, hourlyVelocityLimit: 3, version: 3 }),
        policy({ budgetCents: 700, autoApprovalThresholdCents: 100, version: 2 }),
      ]);
    });

    it("role, removal, invite, scopes and owner of wallets, each as it was and as it is", async () => {
      const person = await join(world, "member");
      await elevate(world);
      const { token } = world;
      await world.api.ok("updateMember", 200, { token, id: person.id, body: { role: "admin" } });
      expect(await log.newest({ action: "updateMember" })).to.deep.include({
        resource: { type: "user", id: person.id },
        before: { role: "member" },
        after: { role: "admin" },
      });
      await world.api.ok("removeMember", 204, { token, id: person.id });
      expect(await log.newest({ action: "removeMember" })).to.deep.include({
        before: { role: "admin", email: person.email },
        after: null,
      });
      const { invite: made } = await invite(world, "admin");
      expect(await log.newest({ resource: made.id })).to.deep.include({
        action: "createInvite",
        after: { email: made.email, role: "admin" },
      });
      const key = await organizationKey(world, { scopes: ["teams:read"] });
      expect((await log.newest({ resource: key.id })).after).to.deep.include({
        keyId: key.id,
        scopes: ["teams:read"],
      });
      const walletOwner = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
      await world.api.ok("updateOrganization", 200, { token, body: { walletOwner } });
      expect(await log.newest({ action: "updateOrganization" })).to.deep.include({
        resource: { type: "organization", id: world.organization.organizationId },
        before: { walletOwner: null },
        after: { walletOwner },
      });
    });

    it("a refused write of who is known, with its code, whatever it was refused for", async () => {
      const agent = await world.agent();
      const member = await join(world, "member");
      const key = await organizationKey(world, { scopes: ["agents:read"] });
      const { token } = world;
      const policyBody = { version: 9, budgetCents: 1 };
      const attempts = [
        [token, 400, "VALIDATION_FAILED", { version: "1" }],
        [token, 409, "VERSION_CONFLICT", policyBody],
        [member.token, 403, "ROLE_REQUIRED", policyBody],
        [key.token, 403, "INSUFFICIENT_SCOPE", policyBody],
        [agent.key, 403, "WRONG_CREDENTIAL", policyBody],
      ] as const;
      await elevate(world);
      for (const [bearer, status, code, body] of attempts) {
        const asked = { token: bearer, id: agent.id, body };
        await world.api.refused("updateAgentBudgetPolicy", status, code, asked);
        expect((await log.newest({ action: "updateAgentBudgetPolicy" })).result, code).to.deep.equal({
          status,
          code,
        });
      }
      await world.api.refused("pauseAgent", 404, "NOT_FOUND", { token, id: NOBODY });
      expect(await log.newest({ resource: NOBODY })).to.deep.include({
        action: "pauseAgent",
        result: { status: 404, code: "NOT_FOUND" },
      });
      const asked = { action: "updateAgentBudgetPolicy", resource: agent.id };
      const actors = (await log.list(asked)).entries.map(({ actor }) => actor);
      expect(actors.map(({ type }) => type)).to.deep.equal([
        "agent",
        "organization_key",
        "user",
        "user",
        "user",
      ]);
      expect(actors.slice(0, 2)).to.deep.equal([
        { type: "agent", id: agent.id, keyId: actors[0]?.keyId, name: "Agent" },
        { type: "organization_key", id: key.id, lineageId: key.lineageId },
      ]);
    });

    it("a body that can't be read, too", async () => {
      const body = "{".repeat(300_000);
      await world.api.refused("createTeam", 413, "PAYLOAD_TOO_LARGE", { token: world.token, body });
      expect((await log.newest()).result).to.deep.equal({ status: 413, code: "PAYLOAD_TOO_LARGE" });
    });

    it("what a machine does by a tool, and what it may not", async () => {
      const key = await organizationKey(world);
      const agent = await world.agent();
      const machine = await McpCaller.connect(world.service.baseUrl, key.token);
      const buyer = await McpCaller.connect(world.service.baseUrl, agent.key);
      try {
        await machine.call("pause_agent", { agentId: agent.id });
        await machine.call("list_agents");
        await machine.call("create_project", { name: "By a tool", idempotencyKey: "k" });
        await machine.call("resume_agent", { agentId: agent.id });
        await buyer.refused("pause_agent", "WRONG_CREDENTIAL", { agentId: agent.id });
      } finally {
        await Promise.all([machine.close(), buyer.close()]);
      }
      const entries = (await log.list({ limit: "4" })).entries;
      expect(
        entries.map(({ action, from, result }) => [action, from?.surface, from?.via, result.code]),
      ).to.deep.equal([
        ["pauseAgent", "mcp", "pause_agent", "WRONG_CREDENTIAL"],
        ["resumeAgent", "mcp", "resume_agent", null],
        ["createProject", "mcp", "create_project", null],
        ["pauseAgent", "mcp", "pause_agent", null],
      ]);
      expect(entries[3]).to.deep.include({ before: { state: "active" }, after: { state: "paused" } });
      expect(entries[2]?.resource.id).to.match(/^[0-9a-f-]{36}$/);
    });

    it("a sign-in, good or refused, of a known account, and what a thief does with a used token", async () => {
      const { email, password } = world.organization;
      const session = await world.api.ok("signIn", 200, { body: { email, password }, ...fromAddress });
      expect(await log.newest({ action: "signIn" })).to.deep.include({
        resource: { type: "user", id: world.organization.userId },
        from: { address: ADDRESS, surface: "rest", via: "POST /v1/auth/sign-in" },
        result: { status: 200, code: null },
      });
      await world.api.refused("signIn", 401, "UNAUTHORIZED", { body: { email, password: "wrong" } });
      // The one answer that does not wait for its entry.
      const refused = await until("the entry of a wrong password", async () => {
        const entry = await log.newest({ action: "signIn" });
        return entry.result.status === 200 ? null : entry;
      });
      expect(refused.result).to.deep.equal({ status: 401, code: "UNAUTHORIZED" });
      expect(refused.actor).to.deep.equal({ ...byOwner(), name: refused.actor.name });
      const body = { refreshToken: session.refreshToken ?? "" };
      const { refreshToken } = await world.api.ok("refreshSession", 200, { body });
      await world.api.ok("refreshSession", 200, { body: { refreshToken } });
      await world.api.refused("refreshSession", 401, "UNAUTHORIZED", { body });
      const refreshes = (await log.list({ action: "refreshSession" })).entries;
      expect(refreshes.map(({ result }) => result.status)).to.deep.equal([401, 200, 200]);
    });

    it("but not what only reads, what is anonymous, nor what was only too much", async () => {
      const before = await log.newest();
      const { token } = world;
      await world.api.ok("listAgents", 200, { token });
      await world.api.ok("getMe", 200, { token });
      await log.exported();
      await world.api.refused("signIn", 401, "UNAUTHORIZED", {
        body: { email: "nobody@example.com", password: "wrong" },
      });
      await world.api.refused("createTeam", 401, "UNAUTHORIZED", { token: "nonsense", body: {} });
      // Ten a minute are judged; a minute may end meanwhile, and then it takes more to be too much.
      const codes: unknown[] = [];
      while (!codes.includes("RATE_LIMITED")) {
        const steps = times(12, () =>
          world.api.call("stepUp", { token, body: { method: "totp", code: "000000" } }),
        );
        codes.push(...(await Promise.all(steps)).map(codeOf));
      }
      const judged = codes.filter((code) => code !== "RATE_LIMITED").length;
      const { entries } = await log.list();
      expect(entries.slice(0, judged + 1).map(({ action }) => action)).to.deep.equal([
        ...times(judged, () => "stepUp"),
        before.action,
      ]);
    });
  });

  describe("what is answered is in it", () => {
    it("a write whose entry can't be written is answered 503, never as done; later ones go on", async () => {
      const { db } = world.service;
      const closed = { collMod: AUDIT_LOG, validationLevel: "strict" };
      await db.command({ ...closed, validator: { action: "nothing" } });
      const asked = { token: world.token, body: { name: "Unknown" } };
      try {
        await world.api.refused("createProject", 503, "SERVICE_UNAVAILABLE", asked);
        await world.api.refused("pauseAgent", 503, "SERVICE_UNAVAILABLE", { ...asked, id: NOBODY });
      } finally {
        await db.command({ ...closed, validator: {} });
      }
      await world.api.ok("createProject", 201, asked);
      expect((await log.newest()).result.status).to.equal(201);
      const { organizationId } = world.organization;
      const entries = await entriesOf(db, organizationId);
      expect(breakIn(entries, testSeal(String(world.service.env["MASTER_KEY"])))).to.equal(null);
    });

    it("many writes by people and machines make one unbroken chain with every answered one", async () => {
      const own = await newWorld();
      const key = await organizationKey(own);
      const tokens = [own.token, key.token];
      /** What a busy machine does not answer in time is asked again, under the same key. */
      const create = (index: number): Promise<string> =>
        until(`project ${index}`, async () => {
          const body = { name: `Project ${index}`, idempotencyKey: `k${index}` };
          const answer = await own.api.call("createProject", { token: tokens[index % 2], body });
          if (answer.status > 201) return null;
          return z.object({ project: z.object({ id: z.string() }) }).parse(answer.body).project.id;
        });
      const ids = await Promise.all(times(24, create));
      const done = (await new LogReader(own).exported({ action: "createProject" })).filter(
        ({ result }) => result.code === null,
      );
      expect(new Set(done.map(({ resource }) => resource.id))).to.deep.equal(new Set(ids));
      const whole = await entriesOf(own.service.db, own.organization.organizationId);
      expect(breakIn(whole, testSeal(String(own.service.env["MASTER_KEY"])))).to.equal(null);
    });
  });

  it("no secret is ever in it: keys, passwords, codes, tokens, or what is in a wrong field", async () => {
    const own = await newWorld();
    const agent = await own.agent();
    const key = await organizationKey(own);
    await join(own, "admin");
    await own.api.call("enrollTotp", { token: own.token });
    await own.api.call("confirmTotp", { token: own.token, body: { code: "123456" } });
    await elevate(own);
    await own.api.ok("revokeAgentKey", 200, { token: own.token, id: agent.id });
    await own.api.ok("mintAgentKey", 201, { token: own.token, id: agent.id });
    await own.api.call("pauseAgent", { token: own.token, id: agent.key });
    await own.api.call("pauseAgent", { token: own.token, id: key.token, query: { key: key.token } });
    await own.api.call("denyApproval", { token: own.token, id: "apr_01HZZZZZZZZZZZZZZZZZZZZZZZ" });
    const text = JSON.stringify(await entriesOf(own.service.db, own.organization.organizationId));
    expect(text).to.include("mintAgentKey");
    const secrets = [...notedSecrets(), agent.key, key.token, "123456"];
    expect(secrets.length).to.be.at.least(8);
    expect(secrets.filter((secret) => text.includes(secret)).length).to.equal(0);
  });
});

const policy = (fields: object) => ({
  budgetCents: 10_000,
  autoApprovalThresholdCents: null,
  perTransactionLimitCents: null,
  dailySpendLimitCents: null,
  hourlyVelocityLimit: null,
  dailyVelocityLimit: null,
  ...fields,
});
