/** Repairs of transactions, and observations about endpoints. Metrics count them, so the names are an interface. */
export type ChainRepair =
  /** The chain did not have the transaction, and it was resent as signed. */
  | "sent_again"
  | "fee_raised"
  /** A transaction would need a higher fee than allowed, so it waits; counted at each check. */
  | "fee_bounded"
  /** Another transaction was proven to have the nonce for good. */
  | "foreign_nonce"
  /** The nonce is used for good, and the chain does not say by what. */
  | "nonce_unexplained"
  /** A skipped nonce was filled with a no-op. */
  | "nonce_filled"
  /** Another endpoint than before has answered. */
  | "endpoint_changed"
  /** Two endpoints are on different chains or blocks; counted at each check. */
  | "endpoints_disagree";

export interface ChainWatchers {
  readonly onWarning: (message: string, details: Readonly<Record<string, unknown>>) => void;
  /** Called with the kind and number of repairs. */
  readonly onRepair: (what: ChainRepair, count: number) => void;
}
