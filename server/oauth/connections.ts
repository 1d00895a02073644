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
  /** Revokes the key of a connection that its client, or a replayed code or token, has ended. */
  readonly onEnded: (connected: Connected) => Promise<void>;
  /** Networks that client documents are fetched from; only tests reach more than the public internet. */
  readonly documents: GuardOptions | undefined;
}

/** A client that asks to be connected, as a person is shown it. */
export interface AskingClient {
  readonly clientName: string;
  /** Host of the document that the client is known by; null: it is known by its own word. */
  readonly clientHost: string | null;
  /** Address that it is told the outcome at: a host, or a scheme where it is an application. */
  readonly returnsTo: string;
  /** Whether that is on the machine of the browser, where any program could be listening. */
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
const UNUSED_CLIENT_MS = 86_400_000;

const PUBLIC_ONLY: GuardOptions = { allowCidrs: [], extraCa: null };

/** MCP clients that people connect by URL: what they ask for, what they were granted, and by which tokens. */
export class Connections {
  readonly baseUrl: string;
  /** Identifier of what tokens are for: the MCP endpoint. */
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

  /** Registers a client by its own word. It ends after a day unless it is granted something. */
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
    const until = new Date(this.#clock().getTime() + UNUSED_CLIENT_MS);
    await this.#records.put(
      "Client",
      client.client_id,
      { ...client, redirect_uris: [...client.redirect_uris] },
      until,
    );
    return { ...client, scope: SCOPE };
  }

  /** The client behind an authorization request; null: it is over, or there is none. */
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

  /** Whether a request was begun by the browser with this cookie: nobody consents to what somebody else has begun. */
  isOfBrowser(uid: string, token: string | undefined): boolean {
    return token !== undefined && this.#isBrowser(uid, token);
  }

  /** Takes the decision about a request, which one person has; false: it was taken. */
  claim(uid: string): Promise<boolean> {
    return this.#records.consume("Interaction", uid);
  }

  /** Gives the decision back, of which nothing came. */
  async release(uid: string): Promise<void> {
    await this.#records.release("Interaction", uid);
  }

  /** Grants a claimed request. Returns the address at which the browser goes on. */
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

  /** Refuses a claimed request. Returns the address at which the browser goes on. */
  async deny(uid: string): Promise<string> {
    const asked = await this.#claimed(uid);
    asked.result = { error: "access_denied", error_description: "the person denied the connection" };
    await asked.persist();
    return asked.returnTo;
  }

  async #claimed(uid: string) {
    const asked = await this.provider.Interaction.find(uid);
    if (asked === undefined) throw new Error("an authorization request ended while it was decided");
    return asked;
  }

  /** The connection that an access token is for; null: it is unknown, expired or revoked. */
  async connectionOf(token: string): Promise<Connected | null> {
    const found = await this.#records.find("AccessToken", token);
    const { accountId, aud, exp = 0 } = found?.payload ?? {};
    const isGood = aud === this.resource && exp * 1_000 > this.#clock().getTime();
    return isGood ? connectedOf(accountId) : null;
  }

  /** Takes a grant's access at once; its agent's key is revoked with it, as far as its actor can be reached. */
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

  /** Ends the grants and tokens of a key that was revoked. */
  async end(keyId: string): Promise<void> {
    await this.#records.removeOfKey(keyId);
  }
}

const randomToken = (): string => randomBytes(32).toString("base64url");

/** Whether OAuth can be served: clients look for it at the origin of MCP, and people consent at that of the dashboard. */
export const sharesOrigin = (baseUrl: string, mcpUrl: string): boolean =>
  new URL(baseUrl).origin === new URL(mcpUrl).origin;
