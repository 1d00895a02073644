import type { Collection, Db } from "mongodb";
import type { Adapter, AdapterPayload } from "oidc-provider";
import { isDuplicateKey } from "../../src/lib/duplicate-key.ts";
import type { KeyedMacs } from "../../src/secrets/keyed-macs.ts";
import { type Sealer, SealError } from "../../src/secrets/sealer.ts";
import { type OAuthDocument, oauthRecordsOf } from "../../src/store/oauth-documents.ts";
import { keyIdIn } from "./account.ts";

/** Time for which a used refresh token stays valid: clients refresh in parallel and lose responses. */
const REFRESH_GRACE_MS = 30_000;

export interface OAuthRecordsDependencies {
  readonly db: Db;
  readonly macs: KeyedMacs;
  readonly sealer: Sealer;
  readonly clock: () => Date;
  /** Called for a record that the service did not write, or wrote under another id. */
  readonly onForged: (id: string) => void;
}

/**
 * State of the OAuth protocol in MongoDB. Ids and tokens are stored as MACs, everything else sealed to that MAC:
 * reading the database gives no access, and records written by others are rejected.
 */
export class OAuthRecords {
  readonly #records: Collection<OAuthDocument>;
  readonly #dependencies: OAuthRecordsDependencies;

  constructor(dependencies: OAuthRecordsDependencies) {
    this.#dependencies = dependencies;
    this.#records = oauthRecordsOf(dependencies.db);
  }

  async put(kind: string, id: string, payload: AdapterPayload, expiresAt: Date): Promise<void> {
    const { macs } = this.#dependencies;
    const { _id, ...fields } = this.#documentOf(macs.make(textOf(kind, id)), payload, expiresAt);
    await this.#records.updateOne(
      { _id },
      { $set: fields, $setOnInsert: { consumedAt: null } },
      { upsert: true },
    );
  }

  async find(kind: string, id: string): Promise<{ payload: AdapterPayload; consumedAt: Date | null } | null> {
    const { clock, macs } = this.#dependencies;
    const [newest = "", ...older] = macs.all(textOf(kind, id));
    const found = await this.#records.findOne({
      _id: { $in: [newest, ...older] },
      expiresAt: { $gt: clock() },
    });
    if (found === null) return null;
    const payload = this.#opened(found);
    if (payload === null) return null;
    if (found._id !== newest) await this.#renew(found, newest, payload);
    return { payload, consumedAt: found.consumedAt };
  }

  /** Marks the first use. Returns false if it was used before. */
  async consume(kind: string, id: string): Promise<boolean> {
    const { clock } = this.#dependencies;
    const unused = { _id: { $in: this.#idsOf(kind, id) }, consumedAt: null };
    const { matchedCount } = await this.#records.updateOne(unused, { $set: { consumedAt: clock() } });
    return matchedCount > 0;
  }

  async release(kind: string, id: string): Promise<void> {
    await this.#records.updateOne({ _id: { $in: this.#idsOf(kind, id) } }, { $set: { consumedAt: null } });
  }

  async remove(kind: string, id: string): Promise<void> {
    await this.#records.deleteMany({ _id: { $in: this.#idsOf(kind, id) } });
  }

  /** Extends a record's lifetime to at least `until`. */
  async keep(kind: string, id: string, until: Date): Promise<void> {
    await this.#records.updateOne({ _id: { $in: this.#idsOf(kind, id) } }, { $max: { expiresAt: until } });
  }

  async removeOfGrant(grantId: string): Promise<void> {
    await this.#records.deleteMany({ grantId });
  }

  async removeOfKey(keyId: string): Promise<void> {
    await this.#records.deleteMany({ keyId });
  }

  #opened({ _id, sealed }: OAuthDocument): AdapterPayload | null {
    const { onForged, sealer } = this.#dependencies;
    try {
      // The seal proves that the service wrote the record.
      return JSON.parse(sealer.open(PURPOSE, _id, sealed)) as AdapterPayload;
    } catch (error) {
      if (!(error instanceof SealError)) throw error;
      onForged(_id);
      return null;
    }
  }

  #idsOf(kind: string, id: string): string[] {
    return [...this.#dependencies.macs.all(textOf(kind, id))];
  }

  #documentOf(_id: string, payload: AdapterPayload, expiresAt: Date): Omit<OAuthDocument, "consumedAt"> {
    const { grantId = null } = payload;
    const sealed = this.#dependencies.sealer.seal(PURPOSE, _id, JSON.stringify(payload));
    return { _id, grantId, keyId: keyIdIn(payload.accountId), sealed, expiresAt };
  }

  /** Moves a record to the newest master key, so that an older key is not needed for a connection's whole lifetime. */
  async #renew(found: OAuthDocument, newest: string, payload: AdapterPayload): Promise<void> {
    const { consumedAt, expiresAt } = found;
    try {
      await this.#records.insertOne({ ...this.#documentOf(newest, payload, expiresAt), consumedAt });
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
    }
    await this.#records.deleteOne({ _id: found._id });
  }
}

const PURPOSE = "oauth-record";

/** Encoded as JSON, so that kind and id cannot run into each other. */
const textOf = (kind: string, id: string): string => JSON.stringify([kind, id]);

/** State in the provider's form, one adapter for each of its models. */
export class RecordsAdapter implements Adapter {
  readonly #kind: string;
  readonly #records: OAuthRecords;
  readonly #clock: () => Date;
  readonly #onReplay: () => never;
  readonly #endGrant: (grantId: string) => Promise<void>;

  constructor(
    kind: string,
    records: OAuthRecords,
    clock: () => Date,
    onReplay: () => never,
    endGrant: (grantId: string) => Promise<void>,
  ) {
    this.#kind = kind;
    this.#records = records;
    this.#clock = clock;
    this.#onReplay = onReplay;
    this.#endGrant = endGrant;
  }

  async upsert(id: string, payload: AdapterPayload, expiresInSeconds?: number): Promise<void> {
    // Each authorization needs new consent, so no session is kept.
    if (this.#kind === "Session") return;
    if (expiresInSeconds === undefined) throw new Error(`an OAuth record has no expiry: ${this.#kind}`);
    await this.#records.put(
      this.#kind,
      id,
      payload,
      new Date(this.#clock().getTime() + expiresInSeconds * 1_000),
    );
  }

  async find(id: string): Promise<AdapterPayload | undefined> {
    const found = await this.#records.find(this.#kind, id);
    if (found === null) return undefined;
    const { consumedAt, payload } = found;
    if (consumedAt === null) return payload;
    const isInGrace =
      this.#kind === "RefreshToken" && this.#clock().getTime() - consumedAt.getTime() < REFRESH_GRACE_MS;
    return isInGrace ? payload : { ...payload, consumed: Math.floor(consumedAt.getTime() / 1_000) };
  }

  /** The first of two concurrent exchanges of a code wins. */
  async consume(id: string): Promise<void> {
    const isFirst = await this.#records.consume(this.#kind, id);
    if (!isFirst && this.#kind === "AuthorizationCode") this.#onReplay();
  }

  async destroy(id: string): Promise<void> {
    await this.#records.remove(this.#kind, id);
  }

  async revokeByGrantId(grantId: string): Promise<void> {
    // The provider calls this for each of its models. All records of a grant are removed together.
    if (this.#kind === "AccessToken") await this.#endGrant(grantId);
  }

  findByUid(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  findByUserCode(): Promise<undefined> {
    return Promise.resolve(undefined);
  }
}
