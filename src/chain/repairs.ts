/** Repairs of transactions, and what was noticed about endpoints. Metrics count them, so the names are an interface. */
export type ChainRepair =
  /** The chain did not have it, and it was sent again as it was signed. */
  | "sent_again"
  /** More was offered for it. */
  | "fee_raised"
  /** More would have to be offered than is allowed, so it waits; counted at each look. */
  | "fee_bounded"
  /** Another transaction was proven to have its nonce for good. */
  | "foreign_nonce"
  /** The nonce is used for good, and the chain does not say by what. */
  | "nonce_unexplained"
  /** A nonce that was passed over was filled with a transaction that does nothing. */
  | "nonce_filled"
  /** Another endpoint than before has answered. */
  | "endpoint_changed"
  /** Two endpoints are on different chains or blocks; counted at each look. */
  | "endpoints_disagree";

/** Callbacks of the parts that watch the chain. */
export interface ChainWatchers {
  /** Told of what an operator should know. */
  readonly onWarning: (message: string, details: Readonly<Record<string, unknown>>) => void;
  /** Told of how many were repaired, in which way. */
  readonly onRepair: (what: ChainRepair, count: number) => void;
}
