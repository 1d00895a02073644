export interface WebhookSettings {
  /** Networks reachable in addition to the public internet, for development. */
  readonly allowCidrs: readonly string[];
  /** Ports in addition to 443 and 8443. */
  readonly allowPorts: readonly number[];
  /** Certificate authorities trusted in addition to the usual ones. */
  readonly caFile: string | null;
  /** Delays between the attempts of a delivery. */
  readonly backoffSeconds: readonly number[];
  readonly retentionDays: number;
}
