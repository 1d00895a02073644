import { LRUCache } from "lru-cache";
import type { LedgerRevisionRecords } from "../store/ledger-revisions.ts";
import type { LedgerCommand } from "../domain/ledger/commands.ts";
import type { KnownRevisions, ProjectRef, LedgerSubmitResult } from "../messages/ledger.ts";
import { StaleRecords } from "./actor-unavailable.ts";
import type { Timers } from "../lib/timers.ts";

/** Maximum cached projects; another one costs a read of the records. */
const KNOWN_MAX = 10_000;

/** Maximum age of known revisions: replacing an engine for a restore takes longer. */
const KNOWN_FRESH_MS = 2_000;

/** Maximum reads of records that seem to be behind. While other servers are busy, some reads come too early. */
const READS_MAX = 3;

interface Known {
  /** Newest revision in the ledger's responses. */
  ledger: number;
  /** Newest revision in the records. */
  recorded: number;
  updatedAtMs: number;
}

export type SubmitWithRevisions = (
  project: ProjectRef,
  commands: readonly LedgerCommand[],
  known: KnownRevisions,
) => Promise<LedgerSubmitResult>;

/**
 * A ledger's response to an update. `revisionRecorded` resolves once the ledger's revision is in the records; no
 * response is sent before.
 */
export type Submitted = LedgerSubmitResult & { readonly revisionRecorded: Promise<void> };

/**
 * Sends ledgers the newest known revisions, so that a ledger decides nothing after it or its records were restored from
 * a backup. A revision that this process learned a moment ago suffices; after that the records are read, which other
 * servers also write.
 */
export class KnownLedgerRevisions {
  readonly #known = new LRUCache<string, Known>({ max: KNOWN_MAX });
  readonly #records: LedgerRevisionRecords;
  readonly #timers: Pick<Timers, "monotonicMs">;
  readonly #submit: SubmitWithRevisions;

  constructor(
    records: LedgerRevisionRecords,
    submit: SubmitWithRevisions,
    timers: Pick<Timers, "monotonicMs">,
  ) {
    this.#records = records;
    this.#submit = submit;
    this.#timers = timers;
  }

  async submit(project: ProjectRef, commands: readonly LedgerCommand[]): Promise<Submitted> {
    const { projectId } = project;
    const result = await this.#submitWithRevisions(project, commands);
    this.#update(projectId, { ledger: result.revision });
    // Confirmations decide nothing, and no response depends on them.
    const isDecision = commands.some(({ kind }) => !kind.startsWith("confirm"));
    const revisionRecorded = isDecision ? this.#record(projectId, result.revision) : Promise.resolve();
    // Avoids an unhandled rejection when nothing awaits the promise.
    revisionRecorded.catch(() => undefined);
    return { ...result, revisionRecorded };
  }

  async #submitWithRevisions(
    project: ProjectRef,
    commands: readonly LedgerCommand[],
  ): Promise<LedgerSubmitResult> {
    const known = this.#known.get(project.projectId);
    const isFresh = known !== undefined && this.#timers.monotonicMs() - known.updatedAtMs < KNOWN_FRESH_MS;
    if (isFresh) {
      const { ledger, recorded } = known;
      return this.#submit(project, commands, { ledger, recorded, isRead: false });
    }
    for (let reads = 1; ; reads += 1) {
      try {
        return await this.#submit(project, commands, await this.#read(project.projectId));
      } catch (error) {
        // Another server may have written the records and confirmed them to the ledger since they were read.
        if (!(error instanceof StaleRecords) || reads >= READS_MAX) throw error;
      }
    }
  }

  async #read(projectId: string): Promise<KnownRevisions> {
    const recorded = await this.#records.read(projectId);
    const ledger = this.#known.get(projectId)?.ledger ?? 0;
    return { ledger, recorded, isRead: true };
  }

  async #record(projectId: string, revision: number): Promise<void> {
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
