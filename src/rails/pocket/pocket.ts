import type { Address, Hash, Hex } from "viem";
import type { AgentProfile } from "../../domain/agent/state.ts";
import type { RailFailure } from "../../domain/ledger/payment.ts";
import type { Detachment, FencedPlace } from "../../payments/ports.ts";
import type { TokenDomain } from "./token-domain.ts";

/** Maximum validity of an authorization, in seconds: issued authorizations expire soon after a stop. */
export const AUTHORIZATION_SECONDS_MAX = 300;

/** An EIP-3009 transfer out of a pocket. Times are epoch seconds, which the token compares with its blocks. */
export interface PocketTransfer {
  readonly to: Address;
  /** In the token's smallest units. */
  readonly units: bigint;
  readonly validAfter: number;
  readonly validBefore: number;
  readonly nonce: Hex;
}

/** A transfer signed for a payment. */
export interface Authorization extends PocketTransfer {
  readonly transactionId: string;
  readonly agentId: string;
  /** The pocket. */
  readonly from: Address;
  /** Number among the payment's authorizations, from 1. Its predecessor must be dead in a final block. */
  readonly number: number;
  /** The chain's newest block at the time of signing. */
  readonly signedAtBlock: bigint;
  /** 65 bytes: r, s, v. */
  readonly signature: Hex;
}

/** Whether the pocket holds enough for a payment. */
export type Funding =
  | { readonly status: "funded" }
  /** A top-up is in flight; ask again. */
  | { readonly status: "pending" }
  | ({ readonly status: "failed" } & RailFailure);

export type Authorized =
  /** Recorded and signed: this transfer, or an earlier one for the same payment that may still be settled. */
  | { readonly kind: "signed"; readonly authorization: Authorization }
  /** An earlier authorization was settled; nothing more is ever signed for the payment. */
  | { readonly kind: "used"; readonly authorization: Authorization; readonly txHash: Hash | null }
  /** A fence above the permit is in the place. Nothing was signed. */
  | { readonly kind: "fenced" }
  /** The payment has no reservation, or one below the transfer's units: call `fund` first. Nothing was signed. */
  | { readonly kind: "unfunded" }
  /** The transfer has expired or is valid for longer than `AUTHORIZATION_SECONDS_MAX`. Nothing was signed. */
  | { readonly kind: "bad_times" };

/** A signed transfer that is known to this process alone. */
export interface Prepared {
  readonly transfer: PocketTransfer;
  /** The chain's newest block before signing. */
  readonly signedAtBlock: bigint;
  readonly signature: Hex;
}

/** State of an authorization as of a final block. */
export type AuthorizationState =
  | { readonly kind: "open" }
  /** Settled. `txHash` is null if the chain no longer shows the transaction. */
  | { readonly kind: "used"; readonly txHash: Hash | null }
  /** Not settled, and never will be. */
  | { readonly kind: "dead" };

/** The agents' pockets: per agent a plain key with a small balance, which pays by signatures that merchants settle. */
export interface Pockets {
  /** Returns the pocket's address, derived from the agent's id and the service's key before anything is sent there. */
  addressOf(agentId: string): Address;
  /** The token's EIP-712 domain, read from the token itself. No signature is made under another domain. */
  domain(): Promise<TokenDomain>;
  /**
   * Reserves money for a payment and ensures that the pocket holds it in addition to other reservations. Tops up from
   * the agent's wallet if needed, and waits up to `withinMs` for that. Repeatable by any process with the same units.
   * Throws if the chain does not answer.
   */
  fund(profile: AgentProfile, transactionId: string, units: bigint, withinMs: number): Promise<Funding>;
  /** Makes a signature ahead of time. Nothing is recorded, and the signature must not leave the process. */
  prepare(agentId: string, transfer: PocketTransfer): Promise<Prepared>;
  /**
   * Records a prepared transfer as the first authorization of a payment for which `fund` has just reserved money. Null
   * if another authorization is in its place or the transfer expires soon; call `authorize` then.
   */
  authorizeFirst(
    agentId: string,
    transactionId: string,
    prepared: Prepared,
    permit: number,
  ): Promise<Authorized | null>;
  /**
   * Records the transfer as the payment's next authorization, unless a fence above the permit is in its place. The
   * signature leaves the process only afterwards. Of concurrent calls one transfer is recorded, and all calls return
   * it. Repeatable.
   */
  authorize(
    agentId: string,
    transactionId: string,
    transfer: PocketTransfer,
    permit: number,
  ): Promise<Authorized>;
  /** Returns the payment's authorizations, oldest first. */
  authorizationsOf(transactionId: string): Promise<readonly Authorization[]>;
  /**
   * Returns an authorization's state; throws if the chain does not answer. `isExpectedUsed` searches for the event
   * first, which saves a call if the event exists.
   */
  stateOf(
    authorization: Pick<Authorization, "agentId" | "nonce" | "validBefore" | "signedAtBlock">,
    isExpectedUsed?: boolean,
  ): Promise<AuthorizationState>;
  /**
   * Whether a nonce that no recorded authorization of the pocket has is used up in the newest block; throws if the chain
   * is silent.
   */
  isUsedUnrecorded(agentId: string, nonce: Hex): Promise<boolean>;
  /** Keeps further authorizations of these payments from being recorded under lower permits, like `RailPort.fence`. */
  fence(places: readonly FencedPlace[]): Promise<void>;
  /** Releases a payment's reservation: the payment was decided, or is not paid from the pocket. Repeatable. */
  release(agentId: string, transactionId: string): Promise<void>;
  /** Returns the pocket's balance in the newest block. */
  unitsIn(agentId: string): Promise<bigint>;
  /** Closes an archived agent's pocket: nothing more is signed, and its money goes back to the wallet. Repeatable. */
  close(agentId: string): Promise<Detachment>;
}
