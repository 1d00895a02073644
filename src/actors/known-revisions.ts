import { LRUCache } from "lru-cache";
import type { LedgerRevisionRecords } from "../store/ledger-revisions.ts";
import type { LedgerCommand } from "../domain/ledger/commands.ts";
import type { KnownRevisions, ProjectRef, LedgerSubmitResult } from "../messages/ledger.ts";
import { StaleRecords } from "./actor-unavailable.ts";
import type { Timers } from "../lib/timers.ts";

/** Projects in the cache; another one costs a read of the records. */
const KNOWN_MAX = 10_000;

/** Within this time no restore can have gone unnoticed: an engine takes longer to be stopped, replaced and started. */
const KNOWN_FRESH_MS = 2_000;

/** Records that seem to be behind are read so often: where other servers are busy, some reads come too early. */
const READS_MAX = 3;

/** The ledger revisions that this process knows. */
interface Known {
  /** Newest revision by the ledger's answers. */
  ledger: number;
  /** Newest revision by the records. */
  recorded: number;
  updatedAtMs: number;
}

/** Sends one update to a project's ledger. */
export type SubmitWithRevisions = (
  project: ProjectRef,
  commands: readonly LedgerCommand[],
  known: KnownRevisions,
) => Promise<LedgerSubmitResult>;

/** A ledger's answer to one command. `revisionRecorded`: resolves once the ledger's revision is in the records; no response is sent before that. */
export type Submitted = LedgerSubmitResult & { readonly revisionRecorded: Promise<void> };

/**
 * Sends ledgers the newest known revisions, so that one that was restored from a backup, or whose records were, decides
 * nothing. A revision that this process got a moment ago is good enough; after that it reads the records, which other servers
 * write, too.
 */
export class LedgerRevisions {
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
    // A waiter gets the rejection; there may be no waiter.
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
        // Another server may have written them, and confirmed that to the ledger, since they were read.
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
