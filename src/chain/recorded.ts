import type { Document } from "mongodb";
import type { Address, Hash, Hex } from "viem";
import type { RailFailureCode } from "../domain/ledger/rail-failures.ts";

/** A transaction signed for one fee. */
interface SigningDocument {
  hash: string;
  raw: string;
  at: Date;
}

/** The transaction that has a nonce for good: a final one of the same key, not recorded under the nonce. */
export interface Replacement {
  readonly hash: string;
  readonly blockNumber: number;
  readonly at: Date;
}

export interface Signing {
  readonly hash: Hash;
  readonly raw: Hex;
  readonly at: Date;
}

/** The fields of an action on a chain that its proof covers, and `fence`. */
export interface UnprovenTransaction extends Document {
  /** For example `eip155:1/spend/txn_…/1`. The purpose is unique, so one decision holds for all processes. */
  _id: string;
  chain: string;
  from: string;
  /** Null for a refusal. Unique with `chain` and `from`: no nonce is ever signed for two actions. */
  nonce: number | null;
  hash: string | null;
  raw: string | null;
  /** Signings under the same nonce for higher fees, oldest first: any of them may be mined. */
  raised: SigningDocument[];
  /** Null as long as a signing may still be mined, as far as is known. */
  replacedBy: Replacement | null;
  /** No-op sent under a replaced transaction's nonce if the chain lost the other one; absent until needed. */
  noop?: SigningDocument;
  /** Whether the process that finds it replaced records it again under another nonce, or its caller decides. */
  isRepeated: boolean;
  /** The wallet that the action spends from or changes. */
  wallet: string | null;
  /** Amount taken out of the wallet, in cents; negative if the action brings money. */
  amountCents: number;
  /** Version of the policy that a limit mirrors; 0 if it was raised for one payment. */
  limitVersion: number | null;
  refusal: { code: RailFailureCode | "WITHHELD"; reason: string } | null;
  /** Present on a fence, which is no decision yet: a call under a lower permit is not recorded here. */
  fence?: number;
  createdAt: Date;
}

/**
 * One action on a chain, decided once: by a signed transaction, or by a refusal in its place. Nonce and call never
 * change, and every signing is recorded before it is sent. Whether it was mined is not stored: the chain knows.
 */
export interface ChainTransactionDocument extends UnprovenTransaction {
  /** MAC over all fields but `fence` (`AccessProofs`). */
  proof: string;
}

interface Purposed {
  /** Unique on the chain, for good. */
  readonly purpose: string;
  readonly wallet: string | null;
}

export interface Call extends Purposed {
  readonly kind: "call";
  readonly to: Address;
  readonly data: Hex;
  readonly gas: bigint;
  readonly amountCents?: number;
  readonly limitVersion?: number;
  /** Whether the call stays valid later, so that it is recorded again if another transaction used its nonce. */
  readonly isRepeated?: boolean;
  /** Permit of a payment, which is recorded only if no higher fence is in its place. */
  readonly permit?: number;
}

export interface Refused extends Purposed {
  readonly kind: "refusal";
  readonly refusal: NonNullable<UnprovenTransaction["refusal"]>;
}

export type Entry = Call | Refused;

export type Recorded =
  | {
      readonly kind: "transaction";
      readonly purpose: string;
      readonly nonce: number;
      /** Hash of the newest signing. */
      readonly hash: Hash;
      readonly raw: Hex;
      /** All signings under its nonce, oldest first. */
      readonly signings: readonly Signing[];
      /** The proven transaction that was mined instead; no signing of this one ever will be. */
      readonly replacedBy: Replacement | null;
      /** No-op sent in place of the transaction, if it was needed. */
      readonly noop: Signing | null;
      readonly isRepeated: boolean;
      readonly limitVersion: number | null;
      readonly amountCents: number;
      readonly wallet: string | null;
      readonly createdAt: Date;
    }
  | {
      readonly kind: "refusal";
      readonly purpose: string;
      readonly wallet: string | null;
      readonly refusal: NonNullable<UnprovenTransaction["refusal"]>;
    }
  | {
      /** A record that something else than the service has changed: neither signed nor refused, as far as is known. */
      readonly kind: "unproven";
      readonly purpose: string;
      readonly nonce: number;
      readonly raw: Hex;
      readonly createdAt: Date;
    };

export type RecordedTransaction = Extract<Recorded, { kind: "transaction" }>;
export type RecordedRefusal = Extract<Recorded, { kind: "refusal" }>;
type Unproven = Extract<Recorded, { kind: "unproven" }>;
/** A record under a nonce, whose bytes can be sent. */
export type Sendable = RecordedTransaction | Unproven;

/** Returns the transaction fields of a refusal. */
export const noTransaction = () => ({
  nonce: null,
  hash: null,
  raw: null,
  raised: [],
  replacedBy: null,
  isRepeated: false,
  amountCents: 0,
  limitVersion: null,
});

/** Converts a document to its decision. Throws if the document is neither kind of decision. */
export function recordedOf(purpose: string, document: ChainTransactionDocument): Recorded {
  const { amountCents, createdAt, hash, isRepeated, limitVersion, nonce, raw, refusal, replacedBy, wallet } =
    document;
  const noop = document.noop === undefined ? null : signingOf(document.noop);
  if (refusal !== null) return { kind: "refusal", purpose, wallet, refusal };
  if (nonce === null || hash === null || raw === null) throw new Error(`${document._id} is no transaction`);
  const signings = [{ hash, raw, at: createdAt }, ...document.raised].map(signingOf);
  const newest = signings.at(-1);
  if (newest === undefined) throw new Error(`${document._id} was never signed`);
  const about = { limitVersion, amountCents, wallet, createdAt, replacedBy, noop, isRepeated };
  return { kind: "transaction", purpose, nonce, hash: newest.hash, raw: newest.raw, signings, ...about };
}

/** Converts a document whose proof is invalid. Its bytes may be sent: anybody can send what the key has signed. */
export function unprovenOf(purpose: string, { createdAt, nonce, raw }: ChainTransactionDocument): Unproven {
  const bytes = typeof raw === "string" && isHex(raw) ? raw : "0x";
  return { kind: "unproven", purpose, nonce: nonce ?? 0, raw: bytes, createdAt };
}

function signingOf({ at, hash, raw }: SigningDocument): Signing {
  if (!isHex(hash) || !isHex(raw)) throw new Error("a signing is not in hex");
  return { hash, raw, at };
}

const isHex = (text: string): text is Hex => /^0x[0-9a-f]*$/.test(text);

export const isSendable = (recorded: Recorded): recorded is Sendable => recorded.kind !== "refusal";

export const isTransaction = (recorded: Recorded): recorded is RecordedTransaction =>
  recorded.kind === "transaction";

const AGAIN = /^again\/\d+\//;

/** Returns the purpose for repeating a replaced call: unique for its nonce. */
export const retryPurpose = ({ nonce, purpose }: Pick<RecordedTransaction, "nonce" | "purpose">): string =>
  `again/${String(nonce)}/${purpose.replace(AGAIN, "")}`;
