import type { Address, Hash, Hex } from "viem";
import type { AgentProfile } from "../../domain/agent/state.ts";
import type { RailFailure } from "../../domain/ledger/payment.ts";
import type { Detachment, FencedPlace } from "../../payments/ports.ts";
import type { TokenDomain } from "./token-domain.ts";

/** Maximum time for which an authorization may be good, in seconds: what is out ends by itself soon after a stop. */
export const AUTHORIZATION_SECONDS_MAX = 300;

/** An EIP-3009 transfer out of a pocket. Times are seconds since 1970, as the token compares them with its blocks. */
export interface PocketTransfer {
  readonly to: Address;
  /** The token's smallest units. */
  readonly units: bigint;
  readonly validAfter: number;
  readonly validBefore: number;
  readonly nonce: Hex;
}

/** A transfer that was signed for a payment. */
export interface Authorization extends PocketTransfer {
  readonly transactionId: string;
  readonly agentId: string;
  /** The pocket. */
  readonly from: Address;
  /** Number among the payment's authorizations, from 1. A further one follows only one that is dead in a final block. */
  readonly number: number;
  /** The chain's newest block when it was signed. */
  readonly signedAtBlock: bigint;
  /** 65 bytes: r, s, v. */
  readonly signature: Hex;
}

/** Whether the pocket holds what a payment needs. Throws where the chain does not answer. */
export type Funding =
  | { readonly status: "funded" }
  /** A top-up is on its way; ask again. */
  | { readonly status: "pending" }
  | ({ readonly status: "failed" } & RailFailure);

export type Authorized =
  /** Recorded and signed: this transfer, or the one that was signed for the payment before and may still be settled. */
  | { readonly kind: "signed"; readonly authorization: Authorization }
  /** An earlier one was settled; nothing more is ever signed for the payment. */
  | { readonly kind: "used"; readonly authorization: Authorization; readonly txHash: Hash | null }
  /** A fence above the permit is in the place. Nothing is signed. */
  | { readonly kind: "fenced" }
  /** The payment has no money set aside, or less than this: call `fund` first. Nothing is signed. */
  | { readonly kind: "unfunded" }
  /** The transfer is good for longer than `AUTHORIZATION_SECONDS_MAX`, or over already. Nothing is signed. */
  | { readonly kind: "bad_times" };

/** A transfer whose signature is made, and is in this process alone. */
export interface Prepared {
  readonly transfer: PocketTransfer;
  /** The chain's newest block before it was signed. */
  readonly signedAtBlock: bigint;
  readonly signature: Hex;
}

/** State of an authorization by a final block. */
export type AuthorizationState =
  | { readonly kind: "open" }
  /** Settled. Null: the chain no longer shows the transaction. */
  | { readonly kind: "used"; readonly txHash: Hash | null }
  /** Neither settled nor ever to be. */
  | { readonly kind: "dead" };

/** The agents' pockets: per agent a plain key with small change, which pays by signature what a merchant settles. */
export interface Pockets {
  /** Follows from the agent's id and the service's key, before anything is sent there. */
  addressOf(agentId: string): Address;
  /** The token's EIP-712 domain, as the token itself has it. No signature is made under another. */
  domain(): Promise<TokenDomain>;
  /**
   * Sets money aside for a payment and sees to it that the pocket holds it, beside what is set aside for others: tops up from
   * the agent's wallet where it does not, and waits so long for that. May be repeated by any process, with the same units.
   */
  fund(profile: AgentProfile, transactionId: string, units: bigint, withinMs: number): Promise<Funding>;
  /** Makes a signature ahead, while other things are waited for. Nothing is recorded, and it must not leave the process. */
  prepare(agentId: string, transfer: PocketTransfer): Promise<Prepared>;
  /**
   * Records what was prepared as the first authorization of a payment that `fund` has just set money aside for. Null: another one is
   * in its place, or it is over soon; ask `authorize`.
   */
  authorizeFirst(
    agentId: string,
    transactionId: string,
    prepared: Prepared,
    permit: number,
  ): Promise<Authorized | null>;
  /**
   * Records the transfer as the payment's next authorization, where no fence above the permit is in its place. Its signature leaves the
   * process only then. Of concurrent calls one is recorded, and all get that one. May be repeated.
   */
  authorize(
    agentId: string,
    transactionId: string,
    transfer: PocketTransfer,
    permit: number,
  ): Promise<Authorized>;
  /** The payment's authorizations, oldest first. */
  authorizationsOf(transactionId: string): Promise<readonly Authorization[]>;
  /** Throws where the chain does not answer. `isExpectedUsed`: its event is looked for first, which saves a call where it is there. */
  stateOf(
    authorization: Pick<Authorization, "agentId" | "nonce" | "validBefore" | "signedAtBlock">,
    isExpectedUsed?: boolean,
  ): Promise<AuthorizationState>;
  /** Keeps further authorizations of these payments from being recorded under lower permits, as `RailPort.fence` does. */
  fence(places: readonly FencedPlace[]): Promise<void>;
  /** Gives back what is set aside for a payment: it was decided, or is not paid from the pocket. May be repeated. */
  release(agentId: string, transactionId: string): Promise<void>;
  /** The pocket's money in the newest block. */
  unitsIn(agentId: string): Promise<bigint>;
  /** Ends an archived agent's pocket: nothing more is signed, and its money goes back to the wallet. May be repeated. */
  close(agentId: string): Promise<Detachment>;
}
