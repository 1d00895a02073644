import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { OAuthClientProvider } from "@modelcontextprotocol/sdk/client/auth.js";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { expect } from "chai";
import { consent, REDIRECT_URI } from "../support/oauth.ts";
import { noteSecretsGiven } from "../support/secrets.ts";
import { cardPayment, elevate, newWorld, type World } from "../support/world.ts";
import { asTransport } from "../mcp/support.ts";

type Registered = Parameters<NonNullable<OAuthClientProvider["saveClientInformation"]>>[0];
type Tokens = Parameters<OAuthClientProvider["saveTokens"]>[0];

/** State that an MCP client keeps between its person's visits to the browser. */
class Memory implements OAuthClientProvider {
  asked: URL | null = null;
  #client: Registered | undefined;
  #tokens: Tokens | undefined;
  #verifier = "";
  readonly redirectUrl = REDIRECT_URI;
  readonly clientMetadata = { client_name: "Official client", redirect_uris: [REDIRECT_URI] };

  clientInformation() {
    return this.#client;
  }
  saveClientInformation(client: Registered): void {
    this.#client = client;
  }
  tokens() {
    return this.#tokens;
  }
  saveTokens(tokens: Tokens): void {
    noteSecretsGiven(tokens);
    this.#tokens = tokens;
  }
  invalidateCredentials(): void {
    this.#tokens = undefined;
  }
  redirectToAuthorization(url: URL): void {
    this.asked = url;
  }
  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }
  codeVerifier() {
    return this.#verifier;
  }
}

describe("the official MCP client, given nothing but the address", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
  });

  it("is connected by a person, pays, refreshes its token, and is out once its key is revoked", async () => {
    const { baseUrl } = world.service;
    const agent = await world.agent();
    const memory = new Memory();
    const transport = () =>
      new StreamableHTTPClientTransport(new URL(`${baseUrl}/mcp`), { authProvider: memory });
    const first = transport();
    const stranger = await new Client({ name: "official", version: "1" })
      .connect(asTransport(first))
      .catch((error: unknown) => error);
    expect(stranger).to.be.instanceOf(UnauthorizedError);
    const { callback, key } = await consent(world, memory.asked ?? new URL(baseUrl), agent);
    expect(callback.searchParams.get("iss")).to.equal(baseUrl);
    await first.finishAuth(callback.searchParams.get("code") ?? "");

    const client = new Client({ name: "official", version: "1" });
    await client.connect(asTransport(transport()));
    const { rail: _rail, ...payment } = cardPayment();
    const paid = CallToolResultSchema.parse(
      await client.callTool({ name: "create_card_payment", arguments: payment }),
    );
    expect(paid.structuredContent).to.have.nested.property("transaction.status", "approved");

    const held = memory.tokens();
    if (held === undefined) throw new Error("the client has no tokens");
    // A token that is no longer good: the client refreshes it by itself.
    memory.saveTokens({ ...held, access_token: "x".repeat(43) });
    expect((await client.listTools()).tools).to.have.length.greaterThan(5);
    expect(memory.tokens()?.access_token).not.to.be.oneOf([held.access_token, "x".repeat(43)]);

    await elevate(world);
    const { key: revoked } = await world.api.ok("revokeAgentKey", 200, { token: world.token, id: agent.id });
    expect(revoked).to.include({ id: key.id, kind: "oauth", clientName: "Official client" });
    memory.asked = null;
    expect(await client.listTools().catch((error: unknown) => error)).to.be.instanceOf(UnauthorizedError);
    expect(memory.asked).not.to.equal(null);
    await client.close();
  });
});
