import type { Projections } from "../payments/ports.ts";
import type { CommandOf } from "../domain/ledger/commands.ts";
import { afterCharge } from "../domain/ledger/foreseen-charge.ts";
import type { AccountSummary } from "../domain/ledger/state.ts";
import { realTimers, type Timers } from "../lib/timers.ts";

/**
 * Maximum lag of an agent's record behind its ledger when no request on this server reads the record. All agents'
 * records are written at the same ticks, so that their writes are batched.
 */
const TICK_MS = 500;

/** Maximum records confirmed in one update; the rest follow with the next. */
const CONFIRMED_AT_ONCE_MAX = 1_000;

export interface AccountRecordsDependencies {
  readonly recordAccount: Projections["writeAccount"];
  readonly onError: (message: string, error: unknown) => void;
  readonly timers?: Timers;
}

/** Writes the records of a project's agents, slightly behind their accounts, to batch many changes. */
export class AccountRecords {
  readonly #dependencies: AccountRecordsDependencies;
  readonly #onWritten: () => void;
  readonly #unwritten = new Map<string, AccountSummary>();
  readonly #writing = new Map<string, Promise<unknown>>();
  readonly #unconfirmed = new Map<string, number>();
  /** Newest summaries that foresee a charge, by agent. */
  readonly #foreseeing = new Map<string, AccountSummary>();
  readonly #timers: Timers;
  #cancelTimer: (() => void) | null = null;

  constructor(dependencies: AccountRecordsDependencies, onWritten: () => void) {
    this.#dependencies = dependencies;
    this.#timers = dependencies.timers ?? realTimers;
    this.#onWritten = onWritten;
  }

  get hasToWrite(): boolean {
    return this.#unwritten.size > 0 || this.#writing.size > 0;
  }

  get hasToConfirm(): boolean {
    return this.#unconfirmed.size > 0;
  }

  isBehind(agentId: string): boolean {
    return this.#unwritten.has(agentId) || this.#writing.has(agentId);
  }

  add(accounts: readonly AccountSummary[]): void {
    for (const account of accounts) {
      const { agentId, revision } = account;
      this.#noteForeseen(account);
      const isWritten = (this.#unconfirmed.get(agentId) ?? 0) >= revision;
      if (!isWritten && (this.#unwritten.get(agentId)?.revision ?? 0) < revision)
        this.#unwritten.set(agentId, account);
    }
    if (this.#unwritten.size === 0) return;
    const untilTick = TICK_MS - (this.#timers.monotonicMs() % TICK_MS);
    this.#cancelTimer ??= this.#timers.after(untilTick, () => this.#writeAll());
  }

  #noteForeseen(account: AccountSummary): void {
    const { agentId, onceCharged, revision } = account;
    if ((this.#foreseeing.get(agentId)?.revision ?? 0) >= revision) return;
    if (onceCharged === undefined) this.#foreseeing.delete(agentId);
    else this.#foreseeing.set(agentId, account);
  }

  /** Adds what an agent's record shows after a charge, if that was foreseen and nothing has changed since. */
  charged(agentId: string, transactionId: string): void {
    const foreseeing = this.#foreseeing.get(agentId);
    if (foreseeing?.onceCharged?.transactionId === transactionId) this.add([afterCharge(foreseeing)]);
  }

  /** Writes the pending summary of an agent (null: of all agents) and waits for it. */
  async write(agentId: string | null): Promise<void> {
    if (agentId === null) {
      this.#writeAll();
      return void (await Promise.all(this.#writing.values()));
    }
    this.#write(agentId);
    await this.#writing.get(agentId);
  }

  #writeAll(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    for (const agentId of this.#unwritten.keys()) this.#write(agentId);
  }

  #write(agentId: string): void {
    const summary = this.#unwritten.get(agentId);
    if (summary === undefined) return;
    this.#unwritten.delete(agentId);
    const before = this.#writing.get(agentId) ?? Promise.resolve();
    const writing: Promise<unknown> = Promise.all([before, this.#record(summary)]).finally(() => {
      if (this.#writing.get(agentId) === writing) this.#writing.delete(agentId);
      this.#onWritten();
    });
    this.#writing.set(agentId, writing);
  }

  async #record(summary: AccountSummary): Promise<void> {
    const { agentId, revision } = summary;
    try {
      await this.#dependencies.recordAccount(summary);
      this.#unconfirmed.set(agentId, Math.max(this.#unconfirmed.get(agentId) ?? 0, revision));
    } catch (error) {
      this.#dependencies.onError("an agent's record was not written; its ledger sweeps", error);
    }
  }

  /** Returns the confirmation of written records for the ledger; null if there is nothing to confirm. */
  confirmation(): CommandOf<"confirm_records"> | null {
    if (this.#unconfirmed.size === 0) return null;
    const records = [...this.#unconfirmed]
      .slice(0, CONFIRMED_AT_ONCE_MAX)
      .map(([agentId, revision]) => ({ agentId, revision }));
    return { kind: "confirm_records", records };
  }

  confirmed({ records }: CommandOf<"confirm_records">): void {
    for (const { agentId, revision } of records) {
      if ((this.#unconfirmed.get(agentId) ?? 0) <= revision) this.#unconfirmed.delete(agentId);
    }
  }
}
