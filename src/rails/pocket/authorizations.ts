import type { Collection, Db, Document } from "mongodb";
import { type Address, getAddress, type Hex } from "viem";
import { isDuplicateKey } from "../../lib/duplicate-key.ts";
import type { Clock, FencedPlace } from "../../payments/ports.ts";
import type { AccessProofs } from "../../secrets/access-proofs.ts";
import { COLLECTIONS } from "../../store/documents.ts";
import { FenceWriter } from "../../store/fence-writer.ts";
import type { Indexes } from "../../store/indexes.ts";
import type { Authorization } from "./pocket.ts";

/** A recorded authorization. Whether it was settled is not stored: the chain knows. */
export interface AuthorizationDocument extends Document {
  /** For example `eip155:1/txn_…/1`. */
  readonly _id: string;
  readonly agentId: string;
  /** The pocket. Unique together with `chain` and `nonce`, so that no nonce is ever signed for two transfers. */
  readonly from: string;
  readonly chain: string;
  readonly nonce: string;
  readonly to: string;
  /** Decimal digits. */
  readonly units: string;
  readonly validAfter: number;
  readonly validBefore: number;
  readonly signedAtBlock: number;
  readonly signature: string;
  readonly createdAt: Date;
  /** MAC over all fields (`AccessProofs`). */
  readonly proof: string;
}

/** A fence holds the place of a further authorization. */
type PlaceDocument = AuthorizationDocument | (Document & { readonly _id: string; readonly fence: number });

export const AUTHORIZATION_INDEXES: Indexes = {
  [COLLECTIONS.pocketAuthorizations]: [
    {
      key: { chain: 1, from: 1, nonce: 1 },
      unique: true,
      partialFilterExpression: { nonce: { $gt: "" } },
      reader: "a nonce is signed for one transfer",
    },
  ],
};

/** Maximum rounds of laying fences against processes that record concurrently. */
const ROUNDS_MAX = 20;

/**
 * The record of everything pockets ever signed. A place is empty, then holds a fence, then an authorization for good.
 */
export class AuthorizationRecords {
  readonly #collection: Collection<PlaceDocument>;
  readonly #fences: FenceWriter;
  readonly #chain: string;
  readonly #clock: Clock;
  readonly #proofs: Pick<AccessProofs, "genuine" | "proven">;

  constructor(db: Db, chain: string, clock: Clock, proofs: Pick<AccessProofs, "genuine" | "proven">) {
    // Majority reads: a record that only a failed primary had could later be signed differently.
    const options = { readConcern: { level: "majority" } } as const;
    this.#collection = db.collection(COLLECTIONS.pocketAuthorizations, options);
    this.#fences = new FenceWriter(db.collection(COLLECTIONS.pocketAuthorizations));
    this.#chain = chain;
    this.#clock = clock;
    this.#proofs = proofs;
  }

  /**
   * Returns a payment's authorizations, oldest first. Throws if something other than the service has changed one: it is
   * unknown then what was signed.
   */
  async of(transactionId: string): Promise<readonly Authorization[]> {
    const from = `${this.#chain}/${transactionId}/`;
    const range = { _id: { $gte: from, $lt: `${from}\u{10ffff}` }, fence: { $exists: false } };
    const found = await this.#collection.find(range).toArray();
    return found
      .filter(isAuthorization)
      .map((document) => this.#recordOf(document))
      .toSorted((one, other) => one.number - other.number);
  }

  /**
   * Records an authorization in its place unless a fence above the permit is there. `taken`: another authorization is
   * in the place or has the nonce.
   */
  async record(record: Authorization, permit: number): Promise<"recorded" | "taken" | "fenced"> {
    const { number, signedAtBlock, transactionId, units, ...rest } = record;
    const _id = this.#id(transactionId, number);
    const { _id: _same, ...document } = this.#proofs.proven("pocketAuthorization", {
      _id,
      ...rest,
      chain: this.#chain,
      units: String(units),
      signedAtBlock: Number(signedAtBlock),
      createdAt: this.#clock(),
    });
    try {
      await this.#collection.replaceOne({ _id, fence: { $lte: permit } }, document, { upsert: true });
      return "recorded";
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
      const inPlace = await this.#collection.findOne({ _id });
      return inPlace !== null && !isAuthorization(inPlace) ? "fenced" : "taken";
    }
  }

  /** Lays fences in the places of each payment's next authorization, until no process records there first. */
  async fence(places: readonly FencedPlace[]): Promise<void> {
    let open = places.map((place) => ({ ...place, number: 1 }));
    for (let round = 0; open.length > 0; round += 1) {
      if (round === ROUNDS_MAX) throw new Error("authorizations could not be fenced");
      const behind = await Promise.all(
        open.map(async ({ fence, number, transactionId }) => {
          const _id = this.#id(transactionId, number);
          if (await this.#fences.lay({ _id, fence, createdAt: this.#clock() })) return [];
          const last = (await this.of(transactionId)).at(-1)?.number ?? 0;
          return last < number ? [] : [{ fence, transactionId, number: last + 1 }];
        }),
      );
      open = behind.flat();
    }
  }

  /** Whether an authorization of the pocket with this nonce is recorded, for whichever payment. */
  async hasNonce(from: Address, nonce: Hex): Promise<boolean> {
    const found = await this.#collection.findOne({ chain: this.#chain, from, nonce });
    return (
      found !== null && isAuthorization(found) && this.#proofs.genuine("pocketAuthorization", found) !== null
    );
  }

  #id(transactionId: string, number: number): string {
    return `${this.#chain}/${transactionId}/${String(number)}`;
  }

  #recordOf(document: AuthorizationDocument): Authorization {
    const { _id, agentId, from, nonce, signature, signedAtBlock, to, units, validAfter, validBefore } =
      document;
    if (this.#proofs.genuine("pocketAuthorization", document) === null)
      throw new Error(`the authorization ${_id} is not as the service wrote it`);
    const place = /^(.+)\/(\d+)$/.exec(_id.slice(this.#chain.length + 1));
    if (place?.[1] === undefined || !isHex(nonce) || !isHex(signature))
      throw new Error(`${_id} is not an authorization`);
    return {
      transactionId: place[1],
      number: Number(place[2]),
      agentId,
      from: getAddress(from),
      to: getAddress(to),
      units: BigInt(units),
      validAfter,
      validBefore,
      nonce,
      signature,
      signedAtBlock: BigInt(signedAtBlock),
    };
  }
}

const isAuthorization = (document: PlaceDocument): document is AuthorizationDocument =>
  document["fence"] === undefined;

const isHex = (text: string): text is Hex => /^0x[0-9a-f]+$/.test(text);
