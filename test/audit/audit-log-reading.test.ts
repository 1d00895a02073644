import { expect } from "chai";
import { ChainVerifier } from "../../src/domain/audit/verify.ts";
import { codeOf } from "../support/contract-api.ts";
import { join } from "../support/people.ts";
import {
  demote,
  elevate,
  newEndpoint,
  newWorld,
  organizationKey,
  times,
  until,
  type World,
} from "../support/world.ts";
import { type Entry, LogReader, type Query } from "./log-reader.ts";
import { testSeal } from "./support.ts";

const NOBODY = "018f0000-0000-7000-8000-000000000000";

const minute = (): number => Math.floor(Date.now() / 60_000);

describe("reading the audit log", () => {
  let world: World;
  let log: LogReader;
  const begin = async (): Promise<void> => {
    world = await newWorld();
    log = new LogReader(world);
  };
  before(begin);

  async function someHistory(): Promise<{ readonly agentId: string; readonly keyId: string }> {
    const agent = await world.agent();
    const key = await organizationKey(world);
    const asked = { token: key.token, id: agent.id };
    for (const _turn of times(3, () => 0)) {
      await world.api.ok("pauseAgent", 200, asked);
      await world.api.ok("resumeAgent", 200, { ...asked, token: world.token });
    }
    return { agentId: agent.id, keyId: key.id };
  }

  async function byPages(filters: Query): Promise<readonly Entry[]> {
    const pages: Entry[] = [];
    let cursor: string | null = null;
    do {
      const query: Query = { ...filters, limit: "4", ...(cursor === null ? {} : { cursor }) };
      const page = await log.list(query);
      pages.push(...page.entries);
      cursor = page.nextCursor;
    } while (cursor !== null);
    return pages;
  }

  it("is newest first, page by page, each entry once", async () => {
    await someHistory();
    const whole = (await log.list({ limit: "200" })).entries;
    expect(await byPages({})).to.deep.equal(whole);
    expect(whole.map(({ sequence }) => sequence)).to.deep.equal(
      times(whole.length, (index) => whole.length - index),
    );
  });

  it("is narrowed by actor, resource, action and time; a cursor is good for its filters alone", async () => {
    // Exports are limited by organization.
    await begin();
    const { agentId, keyId } = await someHistory();
    const whole = (await log.list({ limit: "200" })).entries;
    const middle = whole[4]?.at ?? "";
    const cases: readonly (readonly [Query, (entry: Entry) => boolean])[] = [
      [{ actor: keyId }, ({ actor }) => actor.id === keyId],
      [{ resource: agentId }, ({ resource }) => resource.id === agentId],
      [{ action: "pauseAgent" }, ({ action }) => action === "pauseAgent"],
      [{ from: middle }, ({ at }) => at >= middle],
      [{ to: middle }, ({ at }) => at < middle],
      [{ from: middle, to: middle }, () => false],
      [
        { actor: keyId, resource: agentId, action: "pauseAgent", from: middle },
        ({ action, actor, at }) => actor.id === keyId && action === "pauseAgent" && at >= middle,
      ],
      [{ actor: NOBODY }, () => false],
    ];
    for (const [query, isMeant] of cases) {
      const meant = whole.filter(isMeant);
      expect((await log.list({ limit: "200", ...query })).entries, JSON.stringify(query)).to.deep.equal(
        meant,
      );
      expect(await log.exported(query), JSON.stringify(query)).to.deep.equal(meant.toReversed());
    }
    const { nextCursor } = await log.list({ limit: "1", actor: keyId });
    const asked = { token: world.token, query: { limit: "1", cursor: nextCursor ?? "" } };
    await world.api.refused("listAuditLog", 400, "BAD_CURSOR", asked);
  });

  it("is narrowed by the kind of resource, together with anything else", async () => {
    await begin();
    const { keyId } = await someHistory();
    const whole = (await log.list({ limit: "200" })).entries;
    const middle = whole[4]?.at ?? "";
    const { userId } = world.organization;
    const cases: readonly (readonly [Query, (entry: Entry) => boolean])[] = [
      [{ resourceType: "agent" }, ({ resource }) => resource.type === "agent"],
      [{ resourceType: "agent", action: "pauseAgent" }, ({ action }) => action === "pauseAgent"],
      [
        { resourceType: "organization_key", actor: userId, to: middle },
        ({ actor, at, resource }) =>
          resource.type === "organization_key" && actor.id === userId && at < middle,
      ],
      [{ resourceType: "team", action: "pauseAgent" }, () => false],
      [{ resourceType: "nothing" }, () => false],
    ];
    for (const [query, isMeant] of cases) {
      const meant = whole.filter(isMeant);
      expect((await log.list({ limit: "200", ...query })).entries, JSON.stringify(query)).to.deep.equal(
        meant,
      );
      expect(await log.exported(query), JSON.stringify(query)).to.deep.equal(meant.toReversed());
    }
    expect(await byPages({ resourceType: "agent" })).to.deep.equal(
      whole.filter(({ resource }) => resource.type === "agent"),
    );
    expect((await log.list({ resourceType: "organization_key" })).entries[0]?.resource.id).to.equal(keyId);
  });

  it("comes with the names of all records that it names, of the organization's own alone", async () => {
    const { api, organization, token } = world;
    const agent = await world.agent({ name: "<b>Buyer</b>", autoApprovalThresholdCents: 0 });
    const held = await agent.hold({ amountCents: 700, merchant: "Shop" });
    const member = await join(world, "member");
    await elevate(world);
    await api.ok("pauseTeamAgents", 200, { token, id: organization.teamId });
    await api.ok("removeMember", 204, { token, id: member.id });
    const { id: webhook } = await newEndpoint(world);
    await api.ok("updateWebhook", 200, {
      token,
      id: webhook,
      body: { scopeType: "agent", scopeIds: [agent.id] },
    });
    const foreign = await (await newWorld(world.service)).agent({ name: "Foreign" });
    await api.refused("pauseAgent", 404, "NOT_FOUND", { token, id: foreign.id });
    const names = await until("the payment is in the log", async () => {
      const page = await log.list({ limit: "200" });
      return page.entries.some(({ action }) => action === "decidePayment") ? page.names : null;
    });
    const nameOf = (type: string, id: string) =>
      names
        .filter((each) => each.type === type && each.id === id)
        .map(({ amountCents, name }) => [name, amountCents]);
    const { team } = await api.ok("getTeam", 200, { token, id: organization.teamId });
    const { members } = await api.ok("listMembers", 200, { token });
    expect(nameOf("agent", agent.id)).to.deep.equal([["<b>Buyer</b>", null]]);
    expect(nameOf("transaction", held.transactionId)).to.deep.equal([["Shop", 700]]);
    expect(nameOf("approval", held.approvalId)).to.deep.equal([["Shop", 700]]);
    expect(nameOf("team", organization.teamId)).to.deep.equal([[team.name, null]]);
    expect(nameOf("user", organization.userId)).to.deep.equal([[members[0]?.name, null]]);
    expect(nameOf("webhook_endpoint", webhook)).to.deep.equal([["Endpoint", null]]);
    expect(nameOf("organization", organization.organizationId).map(([name]) => typeof name)).to.deep.equal([
      "string",
    ]);
    expect(nameOf("user", member.id), "removed").to.deep.equal([[null, null]]);
    expect(nameOf("agent", foreign.id), "another organization's").to.deep.equal([[null, null]]);
    // What only a change names has its name as well.
    const { names: ofStop } = await log.list({ action: "pauseTeamAgents" });
    expect(ofStop.find(({ id }) => id === agent.id)?.name).to.equal("<b>Buyer</b>");
  });

  it("refuses filters that are none", async () => {
    for (const query of [{ from: "yesterday" }, { to: "2026" }, { actor: "" }, { who: "me" }] as Query[]) {
      for (const id of ["listAuditLog", "exportAuditLog"] as const) {
        await world.api.refused(id, 400, "VALIDATION_FAILED", { token: world.token, query });
      }
    }
  });

  it("an export is a chain that a holder of the key can check, line by line", async () => {
    await someHistory();
    const lines = await log.exported();
    const verifier = new ChainVerifier(testSeal(String(world.service.env["MASTER_KEY"])));
    for (const fields of lines) verifier.take({ position: fields.sequence, fields });
    expect(verifier.end()).to.equal(null);
    expect(verifier.checkedEntries).to.equal(lines.length);
  });

  it("is for owners and admins, of their own organization alone", async () => {
    await begin();
    const other = await newWorld(world.service);
    await other.agent();
    const mine = await log.exported();
    expect(new Set(mine.map(({ organizationId }) => organizationId))).to.deep.equal(
      new Set([world.organization.organizationId]),
    );
    const { organizationId } = other.organization;
    expect((await log.list({ resource: organizationId })).entries).to.deep.equal([]);
    await demote(world, "admin");
    await log.list();
    await demote(world, "member");
    for (const id of ["listAuditLog", "exportAuditLog"] as const) {
      await world.api.refused(id, 403, "ROLE_REQUIRED", { token: world.token });
    }
  });

  it("an export ten times a minute", async () => {
    const answers = await until("eleven in one minute of the clock", async () => {
      const { api, token } = await newWorld(world.service);
      const began = minute();
      const all = await Promise.all(times(11, () => api.call("exportAuditLog", { token })));
      return minute() === began ? all : null;
    });
    expect(answers.map(codeOf).filter((code) => code !== null)).to.deep.equal(["RATE_LIMITED"]);
  });
});
