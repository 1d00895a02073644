import { createHash, randomBytes } from "node:crypto";
import { expect } from "chai";
import { z } from "zod";
import { freshAddress } from "./api.ts";
import type { Request as ContractRequest, Success } from "./contract-api.ts";
import { noteSecretsGiven } from "./secrets.ts";
import { elevate, type TestAgent, type World } from "./world.ts";

export const REDIRECT_URI = "http://localhost:4711/callback";

const registered = z.looseObject({ client_id: z.string(), client_secret: z.string().optional() });
export const tokensOf = z.looseObject({ access_token: z.string(), refresh_token: z.string() });
export const oauthError = z.looseObject({ error: z.string() });

export interface Pkce {
  readonly verifier: string;
  readonly challenge: string;
}

export function newPkce(): Pkce {
  const verifier = randomBytes(32).toString("base64url");
  return { verifier, challenge: createHash("sha256").update(verifier).digest("base64url") };
}

/** A person's browser, as far as an authorization needs one: it keeps cookies by their paths, and follows nothing by itself. */
export class Browser {
  readonly #cookies = new Map<string, { readonly value: string; readonly path: string }>();
  readonly #address = freshAddress();

  async get(url: string | URL): Promise<Response> {
    const headers = { "x-forwarded-for": this.#address, cookie: this.cookiesFor(new URL(url).pathname) };
    const response = await fetch(url, { redirect: "manual", headers });
    for (const header of response.headers.getSetCookie()) {
      const [pair = "", ...attributes] = header.split("; ");
      const [name = "", value = ""] = pair.split("=", 2);
      const path = attributes.find((each) => each.toLowerCase().startsWith("path="))?.slice(5) ?? "/";
      this.#cookies.set(name, { value, path });
    }
    return response;
  }

  cookiesFor(path: string): string {
    const fitting = [...this.#cookies].filter(([, cookie]) => path.startsWith(cookie.path));
    return fitting.map(([name, { value }]) => `${name}=${value}`).join("; ");
  }
}

/** An OAuth client by hand, for what an honest one does not send. */
export class OAuthCaller {
  readonly #baseUrl: string;
  readonly #headers = { "x-forwarded-for": freshAddress() };
  readonly clientId: string;
  readonly redirectUri: string;
  readonly secret: string;

  constructor(baseUrl: string, clientId: string, redirectUri: string, secret = "") {
    this.#baseUrl = baseUrl;
    this.clientId = clientId;
    this.redirectUri = redirectUri;
    this.secret = secret;
  }

  static async register(baseUrl: string, metadata: object = {}): Promise<OAuthCaller> {
    const given = { client_name: "Test client", redirect_uris: [REDIRECT_URI], ...metadata };
    const response = await register(baseUrl, given);
    expect(response.status).to.equal(201);
    const { client_id, client_secret } = registered.parse(await response.json());
    return new OAuthCaller(baseUrl, client_id, given.redirect_uris[0] ?? "", client_secret);
  }

  authorizationUrl({ challenge }: Pkce, parameters: Readonly<Record<string, string | null>> = {}): URL {
    const url = new URL("/authorize", this.#baseUrl);
    const all = {
      client_id: this.clientId,
      redirect_uri: this.redirectUri,
      response_type: "code",
      state: "state",
      code_challenge: challenge,
      code_challenge_method: "S256",
      ...parameters,
    };
    for (const [name, value] of Object.entries(all)) if (value !== null) url.searchParams.set(name, value);
    return url;
  }

  exchange(code: string, { verifier }: Pkce, parameters: Readonly<Record<string, string>> = {}) {
    const { redirectUri: redirect_uri } = this;
    const all = { grant_type: "authorization_code", code, redirect_uri, code_verifier: verifier };
    return this.post("/token", { ...all, ...parameters });
  }

  refresh(refresh_token: string, parameters: Readonly<Record<string, string>> = {}): Promise<Response> {
    return this.post("/token", { grant_type: "refresh_token", refresh_token, ...parameters });
  }

  async post(path: string, parameters: Readonly<Record<string, string>>): Promise<Response> {
    const body = new URLSearchParams({ client_id: this.clientId, ...parameters });
    return fetch(new URL(path, this.#baseUrl), { method: "POST", headers: this.#headers, body });
  }
}

/** Registers a client, from an address that no other test has. */
export const register = (baseUrl: string, metadata: unknown, address = freshAddress()): Promise<Response> =>
  fetch(new URL("/register", baseUrl), {
    method: "POST",
    headers: { "content-type": "application/json", "x-forwarded-for": address },
    body: typeof metadata === "string" ? metadata : JSON.stringify(metadata),
  });

/** Opens an authorization request in a browser. Returns its id, as the address of its page has it. */
export async function ask(browser: Browser, url: URL): Promise<string> {
  const asked = await browser.get(url);
  const location = asked.headers.get("location") ?? "";
  expect(location, `${asked.status} ${await asked.text()}`).to.match(/^\/connect\//);
  return location.slice("/connect/".length);
}

export type ConnectBody = Readonly<Record<string, unknown>>;

/** The call by which a person connects a client in their browser. */
export const connecting = (
  { token }: Pick<World, "token">,
  browser: Browser,
  agentId: string,
  body: ConnectBody,
): ContractRequest => ({
  token,
  id: agentId,
  body,
  headers: { cookie: browser.cookiesFor("/v1/agents") },
});

/** Consents as a stepped-up owner, in place of the agent's key. Returns the address that the client is called back at. */
export async function consent(
  world: World,
  authorizationUrl: URL,
  agent: Pick<TestAgent, "id">,
  more: ConnectBody = {},
) {
  await elevate(world);
  const browser = new Browser();
  const connectionId = await ask(browser, authorizationUrl);
  const { key } = (await world.api.ok("getAgent", 200, { token: world.token, id: agent.id })).agent;
  const body = { connectionId, ...(key === null ? {} : { revokeKeyId: key.id }), ...more };
  const connected: Success<"connectClient"> = await world.api.ok(
    "connectClient",
    201,
    connecting(world, browser, agent.id, body),
  );
  const callback = await browser.get(connected.redirectTo);
  const location = callback.headers.get("location") ?? "";
  expect(location, `${callback.status} ${await callback.text()}`).to.match(/^[\w-]+:\/\//);
  return { callback: new URL(location), key: connected.key, browser };
}

export interface Connection {
  readonly client: OAuthCaller;
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly keyId: string;
}

/** A client that is connected to an agent. */
export async function connect(
  world: World,
  agent: Pick<TestAgent, "id">,
  more: ConnectBody = {},
): Promise<Connection> {
  const { baseUrl } = world.service;
  const client = await OAuthCaller.register(baseUrl);
  const pkce = newPkce();
  const { callback, key } = await consent(world, client.authorizationUrl(pkce), agent, more);
  const response = await client.exchange(callback.searchParams.get("code") ?? "", pkce);
  const answered: unknown = await response.json();
  expect(response.status, JSON.stringify(answered)).to.equal(200);
  noteSecretsGiven(answered);
  const { access_token, refresh_token } = tokensOf.parse(answered);
  return { client, accessToken: access_token, refreshToken: refresh_token, keyId: key.id };
}

/** The status of a request to MCP with a token. */
export async function mcpStatus(baseUrl: string, token: string): Promise<number> {
  const headers = {
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "x-forwarded-for": freshAddress(),
  };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  return (await fetch(new URL("/mcp", baseUrl), { method: "POST", headers, body })).status;
}
