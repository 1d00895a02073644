import type { Document } from "mongodb";
import type { Address, Hash, Hex } from "viem";
import type { RailFailureCode } from "../domain/ledger/rail-failures.ts";

/** A transaction as it was signed once, for one fee. */
interface SigningDocument {
  hash: string;
  raw: string;
  at: Date;
}

/** The transaction that has a nonce for good: a final one of the same key that is none of those recorded under it. */
export interface Replacement {
  readonly hash: string;
  readonly blockNumber: number;
  readonly at: Date;
}

/** A signing of a recorded transaction. */
export interface Signing {
  readonly hash: Hash;
  readonly raw: Hex;
  readonly at: Date;
}

/**
 * One action on a chain, decided once: by a signed transaction, or by a refusal in its place. Nonce and call never
 * change, and every signing is recorded before it is sent. Whether it was mined is not stored: the chain knows.
 */
export interface ChainTransactionDocument extends Document {
  /** `eip155:1/spend/txn_…/1`: the purpose is unique, so what is decided once is decided for all processes. */
  _id: string;
  chain: string;
  from: string;
  /** Null for a refusal. Unique with `chain` and `from`: no nonce is ever signed for two things. */
  nonce: number | null;
  hash: string | null;
  raw: string | null;
  /** Signings under the same nonce for higher fees, oldest first: any of them may be mined. */
  raised: SigningDocument[];
  /** Null: as far as is known, one of them may be mined. */
  replacedBy: Replacement | null;
  /** No-op sent under a replaced transaction's nonce if the chain lost the other one; absent until needed. */
  noop?: SigningDocument;
  /** Whether the process that finds it replaced records it under another nonce; else that is left to its caller. */
  isRepeated: boolean;
  /** The wallet that it spends from or changes. */
  wallet: string | null;
  /** Amount taken out of the wallet, in cents; negative if it brings money. */
  amountCents: number;
  /** Version of the policy that a limit mirrors; 0 if it was raised for one payment. */
  limitVersion: number | null;
  refusal: { code: RailFailureCode | "WITHHELD"; reason: string } | null;
  /** No decision yet: a call under a lower permit is not recorded here. */
  fence?: number;
  createdAt: Date;
}

interface Purposed {
  /** Unique on the chain, for good. */
  readonly purpose: string;
  readonly wallet: string | null;
}

/** A call to be signed, recorded and sent. */
export interface Call extends Purposed {
  readonly kind: "call";
  readonly to: Address;
  readonly data: Hex;
  readonly gas: bigint;
  readonly amountCents?: number;
  readonly limitVersion?: number;
  /** Good at any later time, too: recorded again by the process that sees that its nonce was used by another transaction. */
  readonly isRepeated?: boolean;
  /** Permit of a payment: it is recorded only if no higher fence is in its place. */
  readonly permit?: number;
}

/** The decision that something is never done. */
export interface Refused extends Purposed {
  readonly kind: "refusal";
  readonly refusal: NonNullable<ChainTransactionDocument["refusal"]>;
}

export type Entry = Call | Refused;

/** A decision, as recorded. */
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
      /** The proven transaction that was mined instead; then no signing ever is. */
      readonly replacedBy: Replacement | null;
      /** No-op sent in its place, once it was needed. */
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
      readonly refusal: NonNullable<ChainTransactionDocument["refusal"]>;
    };

export type RecordedTransaction = Extract<Recorded, { kind: "transaction" }>;

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

/** A decision as its document has it, under its purpose. Throws where the document is neither kind of decision. */
export function recordedOf(purpose: string, document: ChainTransactionDocument): Recorded {
  const { amountCents, createdAt, hash, isRepeated, limitVersion, nonce, raw, refusal, replacedBy, wallet } =
    document;
  const noop = document.noop === undefined ? null : signingOf(document.noop);
  if (refusal !== null) return { kind: "refusal", purpose, refusal };
  if (nonce === null || hash === null || raw === null) throw new Error(`${document._id} is no transaction`);
  const signings = [{ hash, raw, at: createdAt }, ...document.raised].map(signingOf);
  const newest = signings.at(-1);
  if (newest === undefined) throw new Error(`${document._id} was never signed`);
  const about = { limitVersion, amountCents, wallet, createdAt, replacedBy, noop, isRepeated };
  return { kind: "transaction", purpose, nonce, hash: newest.hash, raw: newest.raw, signings, ...about };
}

function signingOf({ at, hash, raw }: SigningDocument): Signing {
  if (!isHex(hash) || !isHex(raw)) throw new Error("a signing is not in hex");
  return { hash, raw, at };
}

const isHex = (text: string): text is Hex => /^0x[0-9a-f]*$/.test(text);

export const isTransaction = (recorded: Recorded): recorded is RecordedTransaction =>
  recorded.kind === "transaction";

const AGAIN = /^again\/\d+\//;

/** The purpose under which a call is recorded again that was replaced: unique for that nonce. */
export const retryPurpose = ({ nonce, purpose }: Pick<RecordedTransaction, "nonce" | "purpose">): string =>
  `again/${String(nonce)}/${purpose.replace(AGAIN, "")}`;
