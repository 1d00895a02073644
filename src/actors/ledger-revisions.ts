import { LRUCache } from "lru-cache";
import type { LedgerRevisionRecords } from "../store/ledger-revisions.ts";
import type { LedgerCommand } from "../domain/ledger/commands.ts";
import type { KnownRevisions, ProjectRef, LedgerSubmitResult } from "../messages/ledger.ts";
import { RecordsBehind } from "./actor-unavailable.ts";
import type { Timers } from "../lib/timers.ts";

/** Projects that are remembered at once; another one costs a look into the records. */
const KNOWN_MAX = 10_000;

/** For so long nobody can have restored anything unnoticed: an engine takes longer to be stopped, replaced and started. */
const FRESH_MS = 2_000;

/** Records that seem to be behind are read so often: where other servers are busy, some reads come too early. */
const READS_MAX = 3;

/** What this process knows of how far a ledger has come. */
interface Known {
  /** By its answers. */
  ledger: number;
  /** By the records. */
  recorded: number;
  updatedAtMs: number;
}

/** Sends one update to a project's ledger. */
export type SubmitKnowing = (
  place: ProjectRef,
  commands: readonly LedgerCommand[],
  known: KnownRevisions,
) => Promise<LedgerSubmitResult>;

/** What a ledger said. `kept`: once it is in the records how far it had come, before which nobody is told what it has decided. */
export type Submitted = LedgerSubmitResult & { readonly kept: Promise<void> };

/**
 * Tells ledgers how far they had come, so that one from a backup, or one whose records are from a backup, decides nothing. What this
 * process has heard a moment ago holds; after that it reads the records, where other servers write, too.
 */
export class LedgerRevisions {
  readonly #known = new LRUCache<string, Known>({ max: KNOWN_MAX });
  readonly #records: LedgerRevisionRecords;
  readonly #timers: Pick<Timers, "monotonicMs">;
  readonly #submit: SubmitKnowing;

  constructor(records: LedgerRevisionRecords, submit: SubmitKnowing, timers: Pick<Timers, "monotonicMs">) {
    this.#records = records;
    this.#submit = submit;
    this.#timers = timers;
  }

  async submit(place: ProjectRef, commands: readonly LedgerCommand[]): Promise<Submitted> {
    const { projectId } = place;
    const result = await this.#submitKnowing(place, commands);
    this.#update(projectId, { ledger: result.revision });
    // Confirmations are about what was told before, and nobody is told anything of them.
    const isDecision = commands.some(({ kind }) => !kind.startsWith("confirm"));
    const kept = isDecision ? this.#keep(projectId, result.revision) : Promise.resolve();
    // Whoever waits for it hears of it; nobody may.
    kept.catch(() => undefined);
    return { ...result, kept };
  }

  async #submitKnowing(place: ProjectRef, commands: readonly LedgerCommand[]): Promise<LedgerSubmitResult> {
    const known = this.#known.get(place.projectId);
    const isFresh = known !== undefined && this.#timers.monotonicMs() - known.updatedAtMs < FRESH_MS;
    if (isFresh) {
      const { ledger, recorded } = known;
      return this.#submit(place, commands, { ledger, recorded, isRead: false });
    }
    for (let reads = 1; ; reads += 1) {
      try {
        return await this.#submit(place, commands, await this.#read(place.projectId));
      } catch (error) {
        // Another server may have written them, and told the ledger so, since they were read.
        if (!(error instanceof RecordsBehind) || reads >= READS_MAX) throw error;
      }
    }
  }

  async #read(projectId: string): Promise<KnownRevisions> {
    const recorded = await this.#records.read(projectId);
    const ledger = this.#known.get(projectId)?.ledger ?? 0;
    return { ledger, recorded, isRead: true };
  }

  async #keep(projectId: string, revision: number): Promise<void> {
    await this.#records.write(projectId, revision);
    this.#update(projectId, { recorded: revision });
  }

  #update(projectId: string, { ledger = 0, recorded = 0 }: Partial<Known>): void {
    const known = this.#known.get(projectId) ?? { ledger: 0, recorded: 0, updatedAtMs: 0 };
    this.#known.set(projectId, {
      ledger: Math.max(known.ledger, ledger),
      recorded: Math.max(known.recorded, recorded),
      updatedAtMs: ledger > 0 ? this.#timers.monotonicMs() : known.updatedAtMs,
    });
  }
}
