import { expect } from "chai";
import { z } from "zod";
import { McpCaller } from "../mcp/support.ts";
import { oauthRecordsOf } from "../../src/store/oauth-documents.ts";
import {
  ask,
  Browser,
  connect,
  connecting,
  consent,
  mcpStatus,
  newPkce,
  OAuthCaller,
  oauthError,
  tokensOf,
} from "../support/oauth.ts";
import { cardPayment, elevate, newWorld, type World } from "../support/world.ts";

const refusalOf = async (response: Response): Promise<[number, string]> => [
  response.status,
  oauthError.parse(await response.json()).error,
];

describe("the authorization of a client", () => {
  let world: World;
  let baseUrl: string;
  before(async () => {
    world = await newWorld();
    ({ baseUrl } = world.service);
  });

  it("a stranger to /mcp is told where to find out, and both forms of metadata agree", async () => {
    const metadata = `${baseUrl}/.well-known/oauth-protected-resource/mcp`;
    const challenge = `Bearer resource_metadata="${metadata}", scope="agent"`;
    const asked = (headers: Record<string, string>) => fetch(`${baseUrl}/mcp`, { method: "POST", headers });
    expect((await asked({})).headers.get("www-authenticate")).to.equal(challenge);
    const refused = await asked({ authorization: "Bearer made-up" });
    expect(refused.headers.get("www-authenticate")).to.include(`${challenge}, error="invalid_token"`);
    const described: unknown = await (await fetch(metadata)).json();
    expect(described).to.deep.include({ resource: `${baseUrl}/mcp`, authorization_servers: [baseUrl] });
    const root = await fetch(`${baseUrl}/.well-known/oauth-protected-resource`);
    expect(await root.json()).to.deep.equal(described);
    const server: unknown = await (await fetch(`${baseUrl}/.well-known/oauth-authorization-server`)).json();
    expect(server).to.deep.include({
      issuer: baseUrl,
      code_challenge_methods_supported: ["S256"],
      client_id_metadata_document_supported: true,
    });
  });

  it("a token works on /mcp alone; paused is 403, revoked 401, archived 401", async () => {
    const agent = await world.agent();
    const { token } = world;
    const { accessToken } = await connect(world, agent);
    expect(await mcpStatus(baseUrl, accessToken)).to.equal(200);
    for (const operation of ["listPayments", "getMe", "listAgents"] as const)
      await world.api.refused(operation, 401, "UNAUTHORIZED", { token: accessToken });
    await world.api.refused("createPayment", 401, "UNAUTHORIZED", {
      token: accessToken,
      body: cardPayment(),
    });
    await world.api.ok("pauseAgent", 200, { token, id: agent.id });
    expect(await mcpStatus(baseUrl, accessToken)).to.equal(403);
    await world.api.ok("resumeAgent", 200, { token, id: agent.id });
    expect(await mcpStatus(baseUrl, accessToken)).to.equal(200);
    await world.api.ok("archiveAgent", 200, { token, id: agent.id });
    expect(await mcpStatus(baseUrl, accessToken)).to.equal(401);
  });

  it("a revoked connection is refused at once, cannot be refreshed, and leaves nothing behind", async () => {
    const agent = await world.agent();
    const { accessToken, client, keyId, refreshToken } = await connect(world, agent);
    const records = oauthRecordsOf(world.service.db);
    expect(await records.countDocuments({ keyId })).to.be.greaterThan(2);
    await world.api.ok("revokeAgentKey", 200, { token: world.token, id: agent.id });
    expect(await mcpStatus(baseUrl, accessToken)).to.equal(401);
    expect(await records.countDocuments({ keyId })).to.equal(0);
    expect(await refusalOf(await client.refresh(refreshToken))).to.deep.equal([400, "invalid_grant"]);
  });

  it("of payments during a revocation each is made and answered, or refused and not made", async () => {
    const agent = await world.agent();
    const { accessToken } = await connect(world, agent);
    const caller = await McpCaller.connect(baseUrl, accessToken);
    const pay = async (): Promise<string | null> => {
      const { rail: _rail, ...payment } = cardPayment();
      const paid = await caller.call("create_card_payment", payment).catch(() => null);
      return (
        z.object({ transaction: z.object({ id: z.string() }) }).safeParse(paid?.body).data?.transaction.id ??
        null
      );
    };
    const first = await pay();
    const racing = [1, 2, 3, 4, 5, 6].map(pay);
    await world.api.ok("revokeAgentKey", 200, { token: world.token, id: agent.id });
    const made = [first, ...(await Promise.all(racing))].filter((id) => id !== null);
    expect(await pay()).to.equal(null);
    await caller.close();
    const query = { agentId: agent.id };
    const { transactions } = await world.api.ok("listTransactions", 200, { token: world.token, query });
    expect(transactions.map(({ id }) => id).toSorted()).to.deep.equal(made.toSorted());
  });

  /** The agent has no key any more, and its log says which connection ended. */
  async function expectEnded(agentId: string, keyId: string): Promise<void> {
    const { agent } = await world.api.ok("getAgent", 200, { token: world.token, id: agentId });
    expect(agent.key).to.equal(null);
    expect(await oauthRecordsOf(world.service.db).countDocuments({ keyId })).to.equal(0);
    const query = { resource: agentId, action: "revokeAgentKey" };
    const { entries } = await world.api.ok("listAuditLog", 200, { token: world.token, query });
    const [entry] = entries.filter(({ before }) => JSON.stringify(before).includes(keyId));
    expect(entry?.actor).to.deep.include({ type: "system", id: "connections" });
  }

  for (const which of ["accessToken", "refreshToken"] as const) {
    it(`a client that revokes its ${which} is out, and its agent is free for another`, async () => {
      const agent = await world.agent();
      const connection = await connect(world, agent);
      const { accessToken, client, keyId, refreshToken } = connection;
      expect((await client.post("/revoke", { token: connection[which] })).status).to.equal(200);
      expect(await mcpStatus(baseUrl, accessToken)).to.equal(401);
      expect(await refusalOf(await client.refresh(refreshToken))).to.deep.equal([400, "invalid_grant"]);
      await expectEnded(agent.id, keyId);
      await world.api.ok("mintAgentKey", 201, { token: world.token, id: agent.id });
    });
  }

  it("another client can't revoke a connection", async () => {
    const { accessToken, refreshToken } = await connect(world, await world.agent());
    const stranger = await OAuthCaller.register(baseUrl);
    for (const token of [accessToken, refreshToken]) await stranger.post("/revoke", { token });
    expect(await mcpStatus(baseUrl, accessToken)).to.equal(200);
  });

  it("an agent with a key keeps it, unless the person names that very key", async () => {
    const agent = await world.agent();
    await elevate(world);
    const client = await OAuthCaller.register(baseUrl);
    const browser = new Browser();
    const connectionId = await ask(browser, client.authorizationUrl(newPkce()));
    for (const revokeKeyId of [undefined, `akey_${"0".repeat(26)}`]) {
      const body = { connectionId, ...(revokeKeyId === undefined ? {} : { revokeKeyId }) };
      const request = connecting(world, browser, agent.id, body);
      await world.api.refused("connectClient", 409, "KEY_ALREADY_EXISTS", request);
    }
    await world.api.ok("listPayments", 200, { token: agent.key });
    await world.api.ok("revokeAgentKey", 200, { token: world.token, id: agent.id });
    // A refused payment was not decided.
    await world.api.ok("connectClient", 201, connecting(world, browser, agent.id, { connectionId }));
    await world.api.refused("mintAgentKey", 409, "KEY_ALREADY_EXISTS", { token: world.token, id: agent.id });
  });

  it("of two who decide at once, one does: about one agent, and about one request", async () => {
    const [agent, other] = [await world.agent(), await world.agent()];
    await elevate(world);
    for (const { id } of [agent, other])
      await world.api.ok("revokeAgentKey", 200, { token: world.token, id });
    const client = await OAuthCaller.register(baseUrl);
    const asking = async () => {
      const browser = new Browser();
      return { browser, connectionId: await ask(browser, client.authorizationUrl(newPkce())) };
    };
    const [one, two] = [await asking(), await asking()];
    const statuses = async (...requests: ReturnType<typeof connecting>[]) =>
      (await Promise.all(requests.map((request) => world.api.call("connectClient", request))))
        .map(({ status }) => status)
        .toSorted((a, b) => a - b);
    const about = ({ browser, connectionId }: typeof one, { id }: typeof agent) =>
      connecting(world, browser, id, { connectionId });
    expect(await statuses(about(one, agent), about(two, agent))).to.deep.equal([201, 409]);
    const third = await asking();
    await world.api.ok("revokeAgentKey", 200, { token: world.token, id: agent.id });
    expect(await statuses(about(third, agent), about(third, other))).to.deep.equal([201, 404]);
  });

  it("nobody consents to what another browser has begun, nor takes what was consented to", async () => {
    const agent = await world.agent();
    await elevate(world);
    await world.api.ok("revokeAgentKey", 200, { token: world.token, id: agent.id });
    const client = await OAuthCaller.register(baseUrl);
    const [thief, person] = [new Browser(), new Browser()];
    const connectionId = await ask(thief, client.authorizationUrl(newPkce()));
    await ask(person, client.authorizationUrl(newPkce()));
    const request = connecting(world, person, agent.id, { connectionId });
    await world.api.refused("connectClient", 404, "NOT_FOUND", request);
    const forged = connecting(world, person, agent.id, { connectionId, browserToken: "a.b" });
    await world.api.refused("connectClient", 404, "NOT_FOUND", forged);
    const { redirectTo } = await world.api.ok(
      "connectClient",
      201,
      connecting(world, thief, agent.id, { connectionId }),
    );
    const elsewhere = await person.get(redirectTo);
    expect(elsewhere.headers.get("location") ?? "").not.to.include("code=");
  });

  it("a client with a secret is refused without it", async () => {
    const client = await OAuthCaller.register(baseUrl, { token_endpoint_auth_method: "client_secret_post" });
    const pkce = newPkce();
    const { callback } = await consent(world, client.authorizationUrl(pkce), await world.agent());
    const code = callback.searchParams.get("code") ?? "";
    for (const client_secret of [undefined, "wrong"]) {
      const sent = client_secret === undefined ? {} : { client_secret };
      const [status, error] = await refusalOf(await client.exchange(code, pkce, sent));
      expect([400, 401]).to.include(status);
      expect(error).to.be.oneOf(["invalid_client", "invalid_request"]);
    }
    expect((await client.exchange(code, pkce, { client_secret: client.secret })).status).to.equal(200);
  });

  it("access lasts an hour, a refresh token 30 days, a connection a year", async () => {
    const { client, keyId, refreshToken } = await connect(world, await world.agent());
    await client.refresh(refreshToken);
    const found = await oauthRecordsOf(world.service.db).find({ keyId }).toArray();
    const hours = found.map(({ expiresAt }) => Math.round((expiresAt.getTime() - Date.now()) / 3_600_000));
    expect([...new Set(hours)].toSorted((a, b) => a - b)).to.deep.equal([0, 1, 30 * 24, 365 * 24]);
  });

  it("two refreshes at once keep the connection, as does one whose answer was lost", async () => {
    const { client, refreshToken } = await connect(world, await world.agent());
    const atOnce = await Promise.all([client.refresh(refreshToken), client.refresh(refreshToken)]);
    const answers = [...atOnce, await client.refresh(refreshToken)];
    const tokens = await Promise.all(answers.map(async (answer) => tokensOf.parse(await answer.json())));
    expect(new Set(tokens.flatMap(Object.values)).size).to.be.greaterThan(4);
    for (const { access_token, refresh_token } of tokens) {
      expect(await mcpStatus(baseUrl, access_token)).to.equal(200);
      expect((await client.refresh(refresh_token)).status).to.equal(200);
    }
  });

  it("a refresh token that comes back later than that ends the connection", async () => {
    const agent = await world.agent();
    const { client, keyId, refreshToken } = await connect(world, agent);
    const { access_token } = tokensOf.parse(await (await client.refresh(refreshToken)).json());
    const records = oauthRecordsOf(world.service.db);
    const used = { keyId, consumedAt: { $ne: null } };
    await records.updateMany(used, { $set: { consumedAt: new Date(Date.now() - 30_000) } });
    expect(await refusalOf(await client.refresh(refreshToken))).to.deep.equal([400, "invalid_grant"]);
    expect(await mcpStatus(baseUrl, access_token)).to.equal(401);
    await expectEnded(agent.id, keyId);
  });

  it("a code is good once: its second use ends what the first one was given", async () => {
    const client = await OAuthCaller.register(baseUrl);
    const pkce = newPkce();
    const agent = await world.agent();
    const { callback, key } = await consent(world, client.authorizationUrl(pkce), agent);
    const code = callback.searchParams.get("code") ?? "";
    const [first, second] = [await client.exchange(code, pkce), await client.exchange(code, pkce)];
    const { access_token } = tokensOf.parse(await first.json());
    expect(await refusalOf(second)).to.deep.equal([400, "invalid_grant"]);
    expect(await mcpStatus(baseUrl, access_token)).to.equal(401);
    await expectEnded(agent.id, key.id);
  });

  it("of two exchanges of one code at once, at most one is answered with tokens", async () => {
    const client = await OAuthCaller.register(baseUrl);
    const pkce = newPkce();
    const { callback } = await consent(world, client.authorizationUrl(pkce), await world.agent());
    const code = callback.searchParams.get("code") ?? "";
    const answers = await Promise.all([1, 2, 3, 4].map(() => client.exchange(code, pkce)));
    expect(answers.filter(({ status }) => status === 200)).to.have.length.at.most(1);
    expect(answers.filter(({ status }) => status === 400)).to.have.length.at.least(3);
  });

  it("a code is for its client, its redirect and its verifier", async () => {
    const client = await OAuthCaller.register(baseUrl);
    const stranger = await OAuthCaller.register(baseUrl);
    const pkce = newPkce();
    const agent = await world.agent();
    const { callback } = await consent(world, client.authorizationUrl(pkce), agent);
    const code = callback.searchParams.get("code") ?? "";
    const tries = [
      stranger.exchange(code, pkce),
      client.exchange(code, newPkce()),
      client.exchange(code, pkce, { redirect_uri: "http://localhost:4712/callback" }),
      client.post("/token", { grant_type: "authorization_code", code, redirect_uri: client.redirectUri }),
    ];
    for (const answer of await Promise.all(tries))
      expect(await refusalOf(answer)).to.deep.equal([400, "invalid_grant"]);
    expect((await client.exchange(code, pkce)).status).to.equal(200);
  });

  it("a refresh token is for its client, and for nothing but tokens of /mcp", async () => {
    const { accessToken, client, refreshToken } = await connect(world, await world.agent());
    const stranger = await OAuthCaller.register(baseUrl);
    expect(await refusalOf(await stranger.refresh(refreshToken))).to.deep.equal([400, "invalid_grant"]);
    const elsewhere = await client.refresh(refreshToken, { resource: "https://other.example/mcp" });
    expect(await refusalOf(elsewhere)).to.deep.equal([400, "invalid_target"]);
    expect(await mcpStatus(baseUrl, refreshToken)).to.equal(401);
    expect(await mcpStatus(baseUrl, accessToken)).to.equal(200);
  });

  const WRONG: readonly (readonly [string, Readonly<Record<string, string | null>>, string])[] = [
    ["no PKCE", { code_challenge: null, code_challenge_method: null }, "invalid_request"],
    ["plain PKCE", { code_challenge_method: "plain" }, "invalid_request"],
    ["PKCE without its method", { code_challenge_method: null }, "invalid_request"],
    ["tokens in the address", { response_type: "token" }, "unsupported_response_type"],
    ["another audience", { resource: "https://other.example/mcp" }, "invalid_target"],
    ["no question to a person", { prompt: "none" }, "login_required"],
  ];
  for (const [what, parameters, error] of WRONG) {
    it(`an authorization with ${what} is refused at the client's own redirect`, async () => {
      const client = await OAuthCaller.register(baseUrl);
      const response = await new Browser().get(client.authorizationUrl(newPkce(), parameters));
      const { hash, origin, pathname, searchParams } = new URL(response.headers.get("location") ?? "");
      expect(`${origin}${pathname}`).to.equal(client.redirectUri);
      const told = hash === "" ? searchParams : new URLSearchParams(hash.slice(1));
      expect(told.get("error")).to.equal(error);
      expect(told.get("iss")).to.equal(baseUrl);
    });
  }

  it("the resource may be left out, or named by the origin", async () => {
    const client = await OAuthCaller.register(baseUrl);
    for (const resource of [null, baseUrl, `${baseUrl}/`, `${baseUrl}/mcp`, `${baseUrl}/mcp/`])
      await ask(
        new Browser(),
        client.authorizationUrl(newPkce(), { resource, scope: "openid offline_access x" }),
      );
  });

  it("a foreign redirect, or an unknown client, is shown to the person and sent nowhere", async () => {
    const client = await OAuthCaller.register(baseUrl);
    for (const wrong of [
      { redirect_uri: "https://evil.example/" },
      { redirect_uri: "http://localhost:4711/callback/../x" },
      { client_id: "<script>alert(1)</script>" },
    ]) {
      const response = await new Browser().get(client.authorizationUrl(newPkce(), wrong));
      expect(response.status).to.equal(400);
      expect(response.headers.get("location")).to.equal(null);
      expect(await response.text())
        .to.include("was not connected")
        .and.not.include("<script>");
    }
  });

  it("an error that nobody consented to sends no browser to a registered page by itself", async () => {
    const elsewhere = "https://shop.example/callback";
    const client = await OAuthCaller.register(baseUrl, { redirect_uris: [elsewhere] });
    for (const wrong of [{ prompt: "none" }, { code_challenge: null, code_challenge_method: null }]) {
      const response = await new Browser().get(client.authorizationUrl(newPkce(), wrong));
      expect([response.status, response.headers.get("location")]).to.deep.equal([400, null]);
      expect(await response.text())
        .to.include("Return to shop.example")
        .and.match(/href="https:\/\/shop\.example\/callback\?error=/);
    }
    // One that a person is asked about is not kept from it.
    await ask(new Browser(), client.authorizationUrl(newPkce()));
  });

  it("the audit log names who connected what; `tools` narrows what a payment may use", async () => {
    const agent = await world.agent();
    const { accessToken } = await connect(world, agent, { tools: ["get_budget"] });
    const caller = await McpCaller.connect(baseUrl, accessToken);
    expect((await caller.client.listTools()).tools.map(({ name }) => name)).to.deep.equal(["get_budget"]);
    const { rail: _rail, ...payment } = cardPayment();
    const { body } = await caller.call("create_card_payment", payment);
    expect(body["error"]).to.equal("TOOL_NOT_ALLOWED");
    await caller.close();
    const query = { resource: agent.id, action: "connectClient" };
    const { entries } = await world.api.ok("listAuditLog", 200, { token: world.token, query });
    const entry = z.looseObject({ after: z.unknown() }).parse(entries[0]);
    expect(entry.after).to.include({ clientName: "Test client" });
  });

  it("the database holds no token, no code and no client's id in the clear", async () => {
    const { accessToken, client, refreshToken } = await connect(world, await world.agent());
    const stored = JSON.stringify(await oauthRecordsOf(world.service.db).find().toArray());
    for (const secret of [accessToken, refreshToken, client.clientId]) expect(stored).not.to.include(secret);
  });
});
