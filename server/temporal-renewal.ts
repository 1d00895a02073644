import { createHash } from "node:crypto";
import { setInterval } from "node:timers";
import type { Logger } from "../src/lib/logger.ts";
import type { TemporalSecurity } from "../src/store/temporal-connection.ts";

/** Interval at which certificates and keys are read again. */
const INTERVAL_MS = 30_000;

export interface RenewalOptions {
  readonly current: TemporalSecurity;
  readonly read: () => TemporalSecurity;
  /** Reconnects, in this order. One that throws leaves its connection unchanged and is retried. */
  readonly renewals: readonly ((security: TemporalSecurity) => Promise<void>)[];
  readonly logger: Logger;
}

/** Reconnects to Temporal when a certificate, a key or the profile file has changed on disk. */
export class TemporalRenewal {
  readonly #options: RenewalOptions;
  #current: string;
  #timer: NodeJS.Timeout | null = null;
  #looking: Promise<void> = Promise.resolve();

  constructor(options: RenewalOptions) {
    this.#options = options;
    this.#current = fingerprintOf(options.current);
  }

  start(): void {
    this.#timer = setInterval(() => void this.look(), INTERVAL_MS).unref();
  }

  /** Resolves once everything is connected with the current files, or a warning says why not. */
  look(): Promise<void> {
    this.#looking = this.#looking.then(() => this.#renew());
    return this.#looking;
  }

  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    await this.#looking;
  }

  async #renew(): Promise<void> {
    const { logger, read, renewals } = this.#options;
    try {
      const security = read();
      const fingerprint = fingerprintOf(security);
      if (fingerprint === this.#current) return;
      for (const renew of renewals) await renew(security);
      this.#current = fingerprint;
      logger.info({ settings: security.settings }, "connected to Temporal with renewed certificates or keys");
    } catch (err) {
      // Certificate and key are replaced one after the other, so the pair may not match yet.
      logger.warn(
        { err },
        "renewed certificates or keys of Temporal are unusable; the current connection stays in use",
      );
    }
  }
}

const fingerprintOf = ({ options: { apiKey, tls } }: TemporalSecurity): string => {
  const parts =
    typeof tls === "object" && tls !== null
      ? [
          tls.serverRootCACertificate,
          tls.clientCertPair?.crt,
          tls.clientCertPair?.key,
          tls.serverNameOverride,
        ]
      : [tls];
  const hash = createHash("sha256");
  for (const part of [apiKey, ...parts]) {
    hash.update(part instanceof Uint8Array ? part : String(part)).update("\0");
  }
  return hash.digest("hex");
};
