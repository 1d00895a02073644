import { expect } from "chai";
import type { AgentDocument, AgentKeyRecord } from "../../src/store/documents.ts";
import { operations } from "../../src/contract/registry.ts";
import { httpFailure, McpCaller } from "../mcp/support.ts";
import { atOnce, expectDoneOnce } from "../support/at-once.ts";
import { codeOf, successOf } from "../support/contract-api.ts";
import { expectDead, keyRequest, mintKey, readAgent, revokeKey } from "../support/life.ts";
import { secondService } from "../support/own-service.ts";
import {
  elevate,
  newWorld,
  tally,
  type TestAgent,
  times,
  until,
  type World,
  worldOf,
} from "../support/world.ts";

/** The last use of keys is written every 5 s. */
const USED_MS = 120_000;

describe("agents' keys over HTTP", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
  });
  beforeEach(() => elevate(world));

  const request = (agent: { readonly id: string }) => keyRequest(world, agent);
  const works = (key: string) => world.api.ok("listPayments", 200, { token: key });
  const agents = () => world.service.db.collection<AgentDocument>("agents");

  async function keyless(): Promise<TestAgent> {
    const agent = await world.agent();
    await revokeKey(world, agent);
    return agent;
  }

  it("revoking answers 200 with the revoked key; the record then has none; again it is 404", async () => {
    const agent = await world.agent();
    const before = (await readAgent(world, agent)).key;
    const revoked = await revokeKey(world, agent);
    expect(revoked).to.deep.equal({ ...before, status: "revoked" });
    expect((await readAgent(world, agent)).key).to.equal(null);
    for (const _ of times(2, () => null)) {
      await world.api.refused("revokeAgentKey", 404, "NOT_FOUND", request(agent));
    }
  });

  it("a record that MongoDB alone changed lets no key in: another's hash, or more scopes", async () => {
    const [own, victim] = [await world.agent(), await world.agent()];
    const record = await agents().findOne({ _id: own.id });
    await agents().updateOne({ _id: own.id }, { $set: { key: null } });
    await agents().updateOne({ _id: victim.id }, { $set: { "key.hash": record?.key?.hash ?? "" } });
    await expectDead(world, own.key);
    const scoped = await world.agent({ scopes: ["get_budget"] });
    await agents().updateOne({ _id: scoped.id }, { $set: { scopes: null } });
    await expectDead(world, scoped.key);
  });

  it("minting is 201 with value, block and record; the key is shown once and works at once", async () => {
    const agent = await keyless();
    const { apiKey, key, mcpConfigBlock } = await mintKey(world, agent);
    expect(apiKey).to.match(/^sk_svc_live_[0-9A-Za-z]{46}$/);
    expect(key).to.deep.include({ last4: apiKey.slice(-4), status: "active", lastUsedAt: null });
    expect(key.id).to.match(/^akey_[0-9A-Z]{26}$/);
    const entry = mcpConfigBlock.mcpServers["agent-spending-control"];
    expect(entry.headers).to.deep.equal({ Authorization: `Bearer ${apiKey}` });
    expect((await readAgent(world, agent)).key).to.deep.equal(key);
    await works(apiKey);
    await expectDead(world, agent.key);
    const listed = await world.api.call("listAgents", { token: world.token });
    expect(JSON.stringify(listed.body)).not.to.include(apiKey);
  });

  it("KEY_ALREADY_EXISTS while there is one, and that one stays good", async () => {
    const agent = await world.agent();
    await world.api.refused("mintAgentKey", 409, "KEY_ALREADY_EXISTS", request(agent));
    await works(agent.key);
    await revokeKey(world, agent);
    const { apiKey } = await mintKey(world, agent);
    await world.api.refused("mintAgentKey", 409, "KEY_ALREADY_EXISTS", request(agent));
    await works(apiKey);
  });

  it("mints at once, by two servers too: exactly one 201, whose key works and is on record", async () => {
    const second = await secondService(world.service);
    try {
      const there = worldOf(second, world.organization);
      const session = await second.api.signIn(world.organization.email, world.organization.password);
      const agent = await keyless();
      await elevate(world);
      const answers = await atOnce(6, (index) =>
        index % 2 === 0
          ? world.api.call("mintAgentKey", request(agent))
          : there.api.call("mintAgentKey", { token: session, id: agent.id }),
      );
      expectDoneOnce(answers, "KEY_ALREADY_EXISTS");
      const { key: active } = await readAgent(world, agent);
      expect(active).not.to.equal(null);
      // None where the caller who minted it was told to retry: the key is lost then.
      for (const minted of answers.filter(({ status }) => status === 201)) {
        const { apiKey, key } = successOf("mintAgentKey", minted.body);
        await works(apiKey);
        await there.api.ok("listPayments", 200, { token: apiKey });
        expect(active?.id).to.equal(key.id);
      }
      const record = await agents().findOne({ _id: agent.id });
      expect(record?.candidateKeys ?? [], "nothing of the others is left").to.deep.equal([]);
    } finally {
      await second.stop();
    }
  });

  it("revokes at once: one 200, the others 404", async () => {
    const agent = await world.agent();
    const answers = await Promise.all(times(5, () => world.api.call("revokeAgentKey", request(agent))));
    // On a busy machine one that has revoked, or comes after it, may be answered 503.
    const told = answers.filter(({ status }) => status !== 503);
    const { "200": revoked = 0, ...others } = tally(told.map((answer) => codeOf(answer) ?? answer.status));
    expect(revoked).to.be.within(told.length === answers.length ? 1 : 0, 1);
    expect(others).to.deep.equal({ NOT_FOUND: told.length - revoked });
    await expectDead(world, agent.key);
  });

  it("mints and revokes at once: never two keys that work, and the record's is the one that does", async () => {
    const agent = await world.agent();
    const keys = [agent.key];
    await Promise.all(
      times(8, async (index) => {
        const operation = index % 2 === 0 ? "revokeAgentKey" : "mintAgentKey";
        const answer = await world.api.call(operation, request(agent));
        if (operation === "mintAgentKey" && answer.status === 201) {
          keys.push(successOf("mintAgentKey", answer.body).apiKey);
        }
        expect([200, 201, 404, 409, 503]).to.include(answer.status);
      }),
    );
    const record = await readAgent(world, agent);
    const alive: string[] = [];
    for (const key of keys) {
      const { status } = await world.api.call("listPayments", { token: key });
      if (status === 200) alive.push(key.slice(-4));
    }
    expect(alive).to.have.lengthOf.at.most(1);
    if (alive.length === 1) expect(alive[0]).to.equal(record.key?.last4);
  });

  it("a revoked key is dead on the very next request, over REST and for a connected MCP client", async () => {
    const agent = await world.agent();
    const mcp = await McpCaller.connect(world.service.baseUrl, agent.key);
    await mcp.ok(operations.getBudget.output, "get_budget");
    await agent.pay();
    await revokeKey(world, agent);
    await world.api.refused("createPayment", 401, "UNAUTHORIZED", { token: agent.key, body: {} });
    const failure: unknown = await mcp.call("get_budget").catch((error: unknown) => error);
    expect(httpFailure.parse(failure).code).to.equal(401);
    const { apiKey } = await mintKey(world, agent);
    const again: unknown = await mcp.call("get_budget").catch((error: unknown) => error);
    expect(httpFailure.parse(again).code, "another key does not bring it back").to.equal(401);
    await mcp.close();
    const anew = await McpCaller.connect(world.service.baseUrl, apiKey);
    await anew.ok(operations.getBudget.output, "get_budget");
    await anew.close();
  });

  it("a new key has the agent's scopes, budget and payments: only the key is another", async () => {
    const agent = await world.agent({ scopes: ["list_payments", "create_card_payment"] });
    const { transaction } = await agent.pay();
    await revokeKey(world, agent);
    const { apiKey } = await mintKey(world, agent);
    const { payments } = await works(apiKey);
    expect(payments.map(({ id }) => id)).to.deep.equal([transaction.id]);
    await world.api.refused("getPayment", 403, "TOOL_NOT_ALLOWED", { token: apiKey, id: transaction.id });
  });

  it("lastUsedAt appears, and only rises, without a write per request", async () => {
    const agent = await world.agent();
    const used = () =>
      until(
        "the last use is shown",
        async () => (await readAgent(world, agent)).key?.lastUsedAt ?? null,
        USED_MS,
      );
    const sent = Date.now();
    await works(agent.key);
    const first = await used();
    expect(Date.parse(first)).to.be.within(sent - 5, Date.now());
    const revision = async () => (await agents().findOne({ _id: agent.id }))?.revision;
    const before = await revision();
    const burst = Date.now();
    await Promise.all(times(20, () => works(agent.key)));
    const later = await until(
      "a later use is shown",
      async () => {
        const at = (await readAgent(world, agent)).key?.lastUsedAt ?? "";
        return Date.parse(at) >= burst ? at : null;
      },
      USED_MS,
    );
    expect(later > first).to.equal(true);
    expect(await revision(), "the actor is not asked for it").to.equal(before);
  });

  it("a key of a mint that died before the actor was asked is useless and blocks no other mint", async () => {
    const agent = await keyless();
    const { apiKey } = await mintKey(world, agent);
    const key = (await agents().findOne({ _id: agent.id }))?.key ?? null;
    if (key === null) throw new Error("the record has no key");
    await revokeKey(world, agent);
    // What a server leaves that dies in between: a candidate with the hash of a value, which the actor never saw.
    const candidate: AgentKeyRecord = { ...key, id: `akey_${"0".repeat(26)}` };
    await agents().updateOne({ _id: agent.id }, { $set: { candidateKeys: [candidate] } });
    await expectDead(world, apiKey);
    expect((await readAgent(world, agent)).key).to.equal(null);
    await world.api.refused("revokeAgentKey", 404, "NOT_FOUND", request(agent));
    const next = await mintKey(world, agent);
    await works(next.apiKey);
    await expectDead(world, apiKey);
    expect((await readAgent(world, agent)).key?.id).to.equal(next.key.id);
  });
});
