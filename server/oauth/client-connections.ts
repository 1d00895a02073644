import { randomBytes } from "node:crypto";
import type { Collection, Db } from "mongodb";
import type Provider from "oidc-provider";
import { connectCookieName } from "../../src/contract/cookies.ts";
import type { Connected } from "../../src/identity/authenticator.ts";
import { GuardedFetch, type GuardOptions } from "../../src/lib/guarded-fetch/guarded-fetch.ts";
import type { Logger } from "../../src/lib/logger.ts";
import type { MasterKey } from "../../src/secrets/master-key.ts";
import { Sealer } from "../../src/secrets/sealer.ts";
import type { AgentDocument } from "../../src/store/documents.ts";
import { accountOf, connectedOf } from "./account.ts";
import { clientDocuments } from "./client-documents.ts";
import {
  checkedMetadata,
  type ClientMetadata,
  isLoopback,
  isRefusal,
  type MetadataRefusal,
} from "./client-metadata.ts";
import { CONNECTION_LIFETIME_MS, openProvider, SCOPE } from "./provider.ts";
import { OAuthRecords } from "./records.ts";

export interface ConnectionsDependencies {
  readonly db: Db;
  readonly agents: Collection<AgentDocument>;
  readonly masterKey: MasterKey;
  readonly baseUrl: string;
  readonly mcpUrl: string;
  readonly clock: () => Date;
  readonly logger: Logger;
  readonly onForged: (id: string) => void;
  /** Revokes the key of a connection that its client ended, or that ended because a code or token was replayed. */
  readonly onEnded: (connected: Connected) => Promise<void>;
  /** Networks from which client documents are fetched. Only tests reach beyond the public internet. */
  readonly documents: GuardOptions | undefined;
}

/** A client that asks for a connection, as shown to a person. */
export interface AskingClient {
  readonly clientName: string;
  /** Host of the client's metadata document; null for a client that registered itself. */
  readonly clientHost: string | null;
  /** Address that receives the outcome: a host, or a scheme for an application. */
  readonly returnsTo: string;
  /** Whether that address is on the browser's machine, where any program could be listening. */
  readonly isLoopback: boolean;
  readonly expiresAt: Date;
}

interface RegisteredClient extends ClientMetadata {
  readonly client_id: string;
  readonly client_id_issued_at: number;
  readonly scope: string;
  readonly client_secret?: string;
  readonly client_secret_expires_at?: number;
}

/** Lifetime of a registered client without a grant. */
const UNUSED_CLIENT_LIFETIME_MS = 86_400_000;

const PUBLIC_ONLY: GuardOptions = { allowCidrs: [], extraCa: null };

/** MCP clients that people connect by URL: their requests, grants and tokens. */
export class ClientConnections {
  readonly baseUrl: string;
  /** Identifier of the resource that tokens are for: the MCP endpoint. */
  readonly resource: string;
  readonly provider: Provider;
  readonly #records: OAuthRecords;
  readonly #clock: () => Date;
  readonly #isBrowser: (uid: string, token: string) => boolean;
  readonly #onEnded: (connected: Connected) => Promise<void>;
  readonly #logger: Logger;

  constructor({
    agents,
    baseUrl,
    clock,
    db,
    documents,
    logger,
    masterKey,
    mcpUrl,
    onEnded,
    onForged,
  }: ConnectionsDependencies) {
    this.#onEnded = onEnded;
    this.#logger = logger;
    this.baseUrl = baseUrl;
    this.resource = `${mcpUrl}/mcp`;
    this.#clock = clock;
    const macs = masterKey.macs("oauth-records");
    this.#records = new OAuthRecords({ db, macs, sealer: new Sealer(masterKey), clock, onForged });
    const browsers = masterKey.macs("oauth-cookies");
    this.#isBrowser = (uid, token) => browsers.isMac(uid, token);
    this.provider = openProvider({
      baseUrl,
      resource: this.resource,
      masterKey,
      records: this.#records,
      clock,
      fetchDocument: clientDocuments(new GuardedFetch(documents ?? PUBLIC_ONLY)),
      isConnected: async ({ agentId: _id, keyId }) => {
        const alive = { _id, "key.id": keyId, lifecycle: { $ne: "archived" as const } };
        return (await agents.countDocuments(alive, { limit: 1, readPreference: "primary" })) > 0;
      },
      endGrant: (grantId) => this.#endGrant(grantId),
      browserCookie: (uid) => ({ name: connectCookieName(uid), value: browsers.make(uid) }),
    });
    const onError = (_ctx: unknown, err: unknown) => logger.error({ err }, "OAuth failed unexpectedly");
    this.provider.on("server_error", onError);
  }

  /** Registers a client that describes itself. The registration ends after a day unless it gets a grant. */
  async register(given: unknown): Promise<RegisteredClient | MetadataRefusal> {
    const metadata = checkedMetadata(given);
    if (isRefusal(metadata)) return metadata;
    const hasSecret = metadata.token_endpoint_auth_method !== "none";
    const client = {
      client_id: randomToken(),
      client_id_issued_at: Math.floor(this.#clock().getTime() / 1_000),
      ...(hasSecret ? { client_secret: randomToken(), client_secret_expires_at: 0 } : {}),
      ...metadata,
    };
    const until = new Date(this.#clock().getTime() + UNUSED_CLIENT_LIFETIME_MS);
    await this.#records.put(
      "Client",
      client.client_id,
      { ...client, redirect_uris: [...client.redirect_uris] },
      until,
    );
    return { ...client, scope: SCOPE };
  }

  /** Returns the client of an authorization request; null if the request is unknown or over. */
  async askingClient(uid: string): Promise<AskingClient | null> {
    const asked = await this.provider.Interaction.find(uid);
    const clientId = asked?.params["client_id"];
    const redirectUri = asked?.params["redirect_uri"];
    if (asked === undefined || typeof clientId !== "string" || typeof redirectUri !== "string") return null;
    const client = await this.provider.Client.find(clientId);
    if (client === undefined) return null;
    const { host, protocol } = new URL(redirectUri);
    return {
      clientName: client.clientName ?? clientId,
      clientHost: clientId.startsWith("https:") ? new URL(clientId).host : null,
      returnsTo: protocol === "https:" || protocol === "http:" ? host : `${protocol}//${host}`,
      isLoopback: isLoopback(redirectUri),
      expiresAt: new Date(asked.exp * 1_000),
    };
  }

  /** Whether the browser with this cookie began the request. Nobody can consent to a request begun elsewhere. */
  isOfBrowser(uid: string, token: string | undefined): boolean {
    return token !== undefined && this.#isBrowser(uid, token);
  }

  /** Claims the decision about a request for one person. Returns false if it was claimed before. */
  claim(uid: string): Promise<boolean> {
    return this.#records.consume("Interaction", uid);
  }

  /** Releases a claim that led to no decision. */
  async release(uid: string): Promise<void> {
    await this.#records.release("Interaction", uid);
  }

  /** Grants a claimed request. Returns the address at which the browser continues. */
  async grant(uid: string, connected: Connected): Promise<string> {
    const asked = await this.#claimed(uid);
    const clientId = String(asked.params["client_id"]);
    const accountId = accountOf(connected);
    const grant = new this.provider.Grant({ accountId, clientId });
    grant.addResourceScope(this.resource, SCOPE);
    const grantId = await grant.save();
    await this.#records.keep("Client", clientId, new Date(this.#clock().getTime() + CONNECTION_LIFETIME_MS));
    asked.result = { login: { accountId, remember: false }, consent: { grantId } };
    await asked.persist();
    return asked.returnTo;
  }

  /** Denies a claimed request. Returns the address at which the browser continues. */
  async deny(uid: string): Promise<string> {
    const asked = await this.#claimed(uid);
    asked.result = { error: "access_denied", error_description: "the person denied the connection" };
    await asked.persist();
    return asked.returnTo;
  }

  async #claimed(uid: string) {
    const asked = await this.provider.Interaction.find(uid);
    if (asked === undefined)
      throw new Error("an authorization request expired before its decision was recorded");
    return asked;
  }

  /** Returns the connection of an access token; null if the token is unknown, expired or revoked. */
  async connectionOf(token: string): Promise<Connected | null> {
    const found = await this.#records.find("AccessToken", token);
    const { accountId, aud, exp = 0 } = found?.payload ?? {};
    const isGood = aud === this.resource && exp * 1_000 > this.#clock().getTime();
    return isGood ? connectedOf(accountId) : null;
  }

  /** Removes a grant's access at once. Also revokes its agent's key if the agent's actor can be reached. */
  async #endGrant(grantId: string): Promise<void> {
    const grant = await this.#records.find("Grant", grantId);
    await this.#records.removeOfGrant(grantId);
    const connected = connectedOf(grant?.payload.accountId);
    if (connected === null) return;
    await this.#records.removeOfKey(connected.keyId);
    try {
      await this.#onEnded(connected);
    } catch (err) {
      this.#logger.warn({ err, ...connected }, "a connection ended, and its key is still shown as active");
    }
  }

  /** Ends the grants and tokens of a revoked key. */
  async end(keyId: string): Promise<void> {
    await this.#records.removeOfKey(keyId);
  }
}

const randomToken = (): string => randomBytes(32).toString("base64url");

/** Whether OAuth can be served: clients look for it at MCP's origin, and people consent at the dashboard's. */
export const sharesOrigin = (baseUrl: string, mcpUrl: string): boolean =>
  new URL(baseUrl).origin === new URL(mcpUrl).origin;
