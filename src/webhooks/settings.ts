/** Settings of webhooks. */
export interface WebhookSettings {
  /** Networks that are reached besides the public internet, for development. */
  readonly allowCidrs: readonly string[];
  /** Ports besides 443 and 8443. */
  readonly allowPorts: readonly number[];
  /** Certificate authorities that are trusted besides the usual ones. */
  readonly caFile: string | null;
  /** Pauses between the attempts of a delivery. */
  readonly backoffSeconds: readonly number[];
  /** Retention of deliveries. */
  readonly retentionDays: number;
}
