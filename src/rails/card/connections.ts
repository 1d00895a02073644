import type { Collection, Db, Document } from "mongodb";
import { LRUCache } from "lru-cache";
import { z } from "zod";
import { isDuplicateKey } from "../../lib/duplicate-key.ts";
import { newId, newUuid } from "../../lib/ids.ts";
import type {
  CardElements,
  CardIssuer,
  CardIssuerKind,
  IssuerAccount,
  IssuerObjects,
} from "../../payments/card-issuer.ts";
import type { Clock } from "../../payments/ports.ts";
import type { Sealer } from "../../secrets/sealer.ts";
import { COLLECTIONS } from "../../store/documents.ts";
import type { Unavailable } from "../../lib/unavailable.ts";
import type { Indexes } from "../../store/indexes.ts";

/** An organization's account at a card issuer. */
export interface CardConnectionDocument extends Document {
  _id: string;
  organizationId: string;
  issuer: string;
  /** Key, secrets and the issuer's ids, sealed to organization and connection. */
  sealed: string;
  /** Last characters of the key, by which people tell keys apart. */
  keyHint: string;
  publishableKey: string | null;
  isTest: boolean;
  /** Whether the network's requests can be verified, and so answered. */
  hasAuthorizationSecret: boolean;
  createdAt: Date;
  /** Time up to which the issuer's books have been read. */
  readThrough: Date;
  lastEventAt: Date | null;
  lastRequestAt: Date | null;
  /** The network's own decision when a check last left it without an answer; null if no check has told. */
  timeoutCheck: TimeoutCheck | null;
  /** Why the issuer's books could not be read last time; null if they could. */
  fault: string | null;
  /** Mark of the newest disconnect under way, during which no card is made; null if there is none. */
  ending: string | null;
}

interface TimeoutCheck {
  readonly isApproved: boolean;
  readonly checkedAt: Date;
}

export interface CardConnection {
  readonly id: string;
  readonly organizationId: string;
  readonly issuer: CardIssuer;
  readonly account: IssuerAccount;
  readonly record: CardConnectionDocument;
}

export interface CardConnectionsDependencies {
  readonly db: Db;
  readonly sealer: Sealer;
  readonly kinds: readonly CardIssuerKind[];
  readonly clock: Clock;
}

/** One account per organization, so that its cards are of one issuer. */
export const CARD_CONNECTION_INDEXES: Indexes = {
  [COLLECTIONS.cardConnections]: [
    { key: { organizationId: 1 }, unique: true, reader: "an organization's connection to its issuer" },
  ],
};

/** Maximum delay until other processes see a change. Before a card is ordered, its connection is read again. */
const CACHE_TTL_MS = 5_000;
const CACHED_MAX = 10_000;

const PURPOSE = "card-issuer";
const HINT_CHARACTERS = 4;

const sealedAccount = z.object({
  apiKey: z.string(),
  publishableKey: z.string().nullable(),
  authorizationSecret: z.string().nullable(),
  made: z
    .object({
      accountId: z.string(),
      isTest: z.boolean(),
      cardholderId: z.string(),
      eventEndpointId: z.string(),
      eventSecret: z.string(),
    })
    .nullable(),
});

/** The card's connection or its issuer is unknown here, or the issuer refuses a call that must be repeated. */
export class IssuerUnusable extends Error implements Unavailable {
  override readonly name = "IssuerUnusable";
  readonly isUnavailable = true;
}

/** Connection that an account is stored in. */
export interface ConnectionPlace extends Pick<CardConnection, "id" | "organizationId"> {
  readonly issuer: string;
  /** The connection's mark of a disconnect when it was read; missing where this call has made the id. */
  readonly ending?: string | null;
}

export type SetUpAccount = IssuerAccount & { readonly made: IssuerObjects };

export class CardConnections {
  readonly #connections: Collection<CardConnectionDocument>;
  readonly #dependencies: CardConnectionsDependencies;
  /** Keyed by organization, and by id. A null connection means that there is none. */
  readonly #cached = new LRUCache<string, { readonly connection: CardConnection | null }>({
    max: CACHED_MAX,
    ttl: CACHE_TTL_MS,
  });

  constructor(dependencies: CardConnectionsDependencies) {
    this.#dependencies = dependencies;
    this.#connections = dependencies.db.collection(COLLECTIONS.cardConnections, {
      readPreference: "primary",
    });
  }

  /** Names of the connectable issuers. */
  get issuers(): readonly string[] {
    return this.#dependencies.kinds.map(({ name }) => name);
  }

  /** Scripts with which the issuers show cards. */
  get elements(): readonly CardElements[] {
    return this.#dependencies.kinds.map(({ elements }) => elements);
  }

  kindOf(issuer: string): CardIssuerKind | null {
    return this.#dependencies.kinds.find(({ name }) => name === issuer) ?? null;
  }

  /** Returns an organization's connection as recorded, even in a process that can't use it. */
  recordOf(organizationId: string): Promise<CardConnectionDocument | null> {
    return this.#connections.findOne({ organizationId });
  }

  /** Returns an organization's connection, at most `CACHE_TTL_MS` old. */
  async of(organizationId: string): Promise<CardConnection | null> {
    const known = this.#cached.get(organizationId);
    return known === undefined ? this.fresh(organizationId) : known.connection;
  }

  async fresh(organizationId: string): Promise<CardConnection | null> {
    const connection = this.#opened(await this.#connections.findOne({ organizationId }));
    this.#cached.set(organizationId, { connection });
    return connection;
  }

  /** Returns the connection that an issuer's message names by id, at most `CACHE_TTL_MS` old. */
  async byId(id: string): Promise<CardConnection | null> {
    const known = this.#cached.get(id);
    if (known !== undefined) return known.connection;
    const connection = this.#opened(await this.#connections.findOne({ _id: id }));
    this.#cached.set(id, { connection });
    return connection;
  }

  /** Returns all connections' ids, those first whose issuers' books were read longest ago. */
  async ids(): Promise<readonly string[]> {
    const all = this.#connections.find({}, { projection: { _id: 1 } }).sort({ readThrough: 1 });
    return (await all.toArray()).map(({ _id }) => _id);
  }

  /** Returns a connection as recorded now; null if it is gone, or can't be opened and has this recorded as its fault. */
  async opened(id: string): Promise<CardConnection | null> {
    const record = await this.#connections.findOne({ _id: id });
    try {
      return this.#opened(record);
    } catch {
      const fault = "The connection's record can't be opened.";
      await this.#connections.updateOne({ _id: id }, { $set: { fault } });
      return null;
    }
  }

  newId(): string {
    return newId("rail");
  }

  /** Stores an account. False if another one was connected meanwhile, or a disconnect of this one has begun. */
  async put(
    { ending, id, issuer, organizationId }: ConnectionPlace,
    account: SetUpAccount,
  ): Promise<boolean> {
    const { clock, sealer } = this.#dependencies;
    const now = clock();
    const changed = {
      sealed: sealer.seal(PURPOSE, boundTo(organizationId, id), JSON.stringify(account)),
      keyHint: account.apiKey.slice(-HINT_CHARACTERS),
      publishableKey: account.publishableKey,
      isTest: account.made.isTest,
      hasAuthorizationSecret: account.authorizationSecret !== null,
      fault: null,
      ending: null,
    };
    const unseen = { lastEventAt: null, lastRequestAt: null, timeoutCheck: null };
    const first = { issuer, createdAt: now, readThrough: now, ...unseen };
    try {
      const { matchedCount, upsertedCount } = await this.#connections.updateOne(
        { _id: id, organizationId, ...(ending !== undefined && { ending }) },
        { $set: changed, $setOnInsert: first },
        { upsert: ending === undefined },
      );
      return matchedCount + upsertedCount > 0;
    } catch (error) {
      if (isDuplicateKey(error)) return false;
      throw error;
    } finally {
      this.#forget(id, organizationId);
    }
  }

  /** Begins a disconnect in place of any earlier one, and returns its mark. */
  async beginEnding({ _id: id, organizationId }: CardConnectionDocument): Promise<string> {
    const ending = newUuid();
    await this.#connections.updateOne({ _id: id }, { $set: { ending } });
    this.#forget(id, organizationId);
    return ending;
  }

  /** Gives up a disconnect, unless another one has begun. */
  async cancelEnding({ _id: id, organizationId }: CardConnectionDocument, ending: string): Promise<void> {
    await this.#connections.updateOne({ _id: id, ending }, { $set: { ending: null } });
    this.#forget(id, organizationId);
  }

  /** Removes a connection. False if another disconnect has begun, or an owner has connected again. */
  async remove({ _id: id, organizationId }: CardConnectionDocument, ending: string): Promise<boolean> {
    const { deletedCount } = await this.#connections.deleteOne({ _id: id, ending });
    this.#forget(id, organizationId);
    return deletedCount === 1;
  }

  #forget(id: string, organizationId: string): void {
    this.#cached.delete(organizationId);
    this.#cached.delete(id);
  }

  async note(
    { id }: CardConnection,
    seen: Partial<
      Pick<CardConnectionDocument, "fault" | "lastEventAt" | "lastRequestAt" | "readThrough" | "timeoutCheck">
    >,
  ): Promise<void> {
    await this.#connections.updateOne({ _id: id }, { $set: seen });
  }

  /** Opens a connection. Throws if that fails: its payments must not be taken for the sandbox's. */
  #opened(record: CardConnectionDocument | null): CardConnection | null {
    if (record === null) return null;
    const { _id: id, organizationId, sealed } = record;
    const kind = this.kindOf(record.issuer);
    if (kind === null) throw new IssuerUnusable(`this process knows no issuer ${record.issuer}`);
    const opened: unknown = JSON.parse(
      this.#dependencies.sealer.open(PURPOSE, boundTo(organizationId, id), sealed),
    );
    const account = sealedAccount.parse(opened);
    return { id, organizationId, account, issuer: kind.open(account), record };
  }
}

/** Joins the ids in the order of `SealedPlace.boundTo`. */
const boundTo = (organizationId: string, id: string): string => `${organizationId}/${id}`;
