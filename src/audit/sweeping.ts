import { withTimeout } from "../lib/with-timeout.ts";
import type { Logger } from "../lib/logger.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { AuditOutbox } from "./audit-outbox.ts";

const PAUSE_MS = 10_000;
/** Timeout of waiting for a sweep. A slower one hangs, or overlaps with the next, which is harmless. */
const SWEEP_MS = 300_000;
/** Timeout of the sweep at startup; the rest is appended while the server serves. */
const START_MS = 5_000;

export interface AuditSweepingDependencies {
  readonly outbox: Pick<AuditOutbox, "sweep">;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, "swept">;
}

/** Appends entries that servers have left in the audit outbox, at startup and then periodically. */
export class AuditSweeping {
  readonly #dependencies: AuditSweepingDependencies;
  #timer: NodeJS.Timeout | null = null;
  #running: Promise<void> = Promise.resolve();
  #isOver = false;

  constructor(dependencies: AuditSweepingDependencies) {
    this.#dependencies = dependencies;
  }

  /** Resolves once what was left is appended, or after a timeout. */
  async begin(): Promise<void> {
    this.#running = this.#sweep("start");
    await withTimeout(START_MS, this.#running).catch(() => undefined);
    this.#arm();
  }

  async end(): Promise<void> {
    this.#isOver = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#running;
  }

  #arm(): void {
    if (this.#isOver) return;
    this.#timer = setTimeout(() => {
      // Runs sweeps one after another; never rejects.
      this.#running = this.#running.then(() => this.#sweep("age"));
      void this.#running.finally(() => this.#arm());
    }, PAUSE_MS).unref();
  }

  async #sweep(from: "start" | "age"): Promise<void> {
    const { logger, metrics, outbox } = this.#dependencies;
    try {
      const { appended, left } = await withTimeout(SWEEP_MS, outbox.sweep(from));
      if (appended > 0) {
        metrics.swept("audit_entry", "done", appended);
        logger.warn({ appended }, "audit entries of a dead server were appended");
      }
      if (left > 0) {
        metrics.swept("audit_entry", "failed", left);
        logger.error({ left }, "audit entries of a dead server could not be appended yet");
      }
    } catch (err) {
      metrics.swept("audit_entry", "failed");
      logger.warn({ err }, "the audit outbox could not be swept");
    }
  }
}
