import type { Db } from "mongodb";
import { realTimers, type Timers } from "../lib/timers.ts";
import { knownKeys } from "./known-keys.ts";
import type { MasterKey } from "./master-key.ts";
import { refusalOf, verifyMasterKey } from "./verify-master-key.ts";

export interface KeyWatchTimes {
  /** Interval between two looks. */
  readonly intervalMs: number;
  /** Validity of a look, counted from its beginning. */
  readonly validMs: number;
}

const TIMES: KeyWatchTimes = { intervalMs: 10_000, validMs: 30_000 };
/** Interval between looks while none succeeds. */
const RETRY_MS = 1_000;

/**
 * Time from a retirement's announcement to the last write of a value under the key: a process that has not noticed
 * makes none after `validMs`, and what it has made is written within the timeouts of its requests. The rest is for a
 * deposed primary, which may answer looks for some seconds.
 */
export const RETIREMENT_MS = 2 * TIMES.validMs;

/**
 * Keeps a process from making anything under a master key that is retired meanwhile. It reads the database's keys at
 * an interval, and fails once they refuse those of the process. Without a recent look nothing new is made: a process that
 * was halted or cut off must look first.
 */
export class KeyWatch {
  /** Rejects with a `MasterKeyError`. */
  readonly failed: Promise<never>;
  readonly #db: Db;
  readonly #masterKey: MasterKey;
  readonly #times: KeyWatchTimes;
  readonly #timers: Timers;
  #fail: (error: Error) => void = () => undefined;
  #validUntilMs = -Infinity;
  #cancel: (() => void) | null = null;
  #isStopped = false;

  constructor(db: Db, masterKey: MasterKey, times = TIMES, timers = realTimers) {
    this.#db = db;
    this.#masterKey = masterKey;
    this.#times = times;
    this.#timers = timers;
    this.failed = new Promise((_resolve, reject) => {
      this.#fail = reject;
    });
    this.failed.catch(() => undefined);
  }

  /** Verifies the keys, then looks at every interval. Throws `MasterKeyError`. */
  async start(now: Date): Promise<void> {
    this.#masterKey.makeOnlyIf(() => this.#isValid());
    const sinceMs = this.#timers.monotonicMs();
    await verifyMasterKey(this.#db, this.#masterKey, now);
    this.#confirm(sinceMs);
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
  }

  #isValid(): boolean {
    return this.#timers.monotonicMs() < this.#validUntilMs;
  }

  #confirm(sinceMs: number): void {
    this.#validUntilMs = sinceMs + this.#times.validMs;
    this.#lookAfter(this.#times.intervalMs);
  }

  #lookAfter(ms: number): void {
    if (!this.#isStopped) this.#cancel = this.#timers.after(ms, () => void this.#look());
  }

  async #look(): Promise<void> {
    const sinceMs = this.#timers.monotonicMs();
    try {
      const refusal = refusalOf(await knownKeys(this.#db).find().toArray(), this.#masterKey);
      if (refusal === null) this.#confirm(sinceMs);
      else this.#fail(refusal);
    } catch {
      // MongoDB's failures are reported by all that use it.
      this.#lookAfter(RETRY_MS);
    }
  }
}
