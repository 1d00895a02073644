import { randomUUID } from "node:crypto";
import type { Collection, Db } from "mongodb";
import pLimit from "p-limit";
import { type AnchoredHead, anchorOf, transactionOf } from "../../domain/audit/anchor.ts";
import type { AuditSeal } from "../../domain/audit/entry.ts";
import { lastAnchored } from "../../domain/audit/verify.ts";
import type { RootTransaction } from "../../chain/audit-roots.ts";
import type { Clock } from "../../payments/ports.ts";
import { withTimeout } from "../../lib/with-timeout.ts";
import type { AnchorSink } from "./anchor-file.ts";
import { type AuditDocument, auditLogOf, chainsIn, genuineHeadOf } from "../../store/audit-documents.ts";
import { readAnchors } from "./verification.ts";

export interface AnchoringDependencies {
  readonly db: Db;
  readonly seal: AuditSeal;
  readonly sink: AnchorSink;
  readonly clock: Clock;
  /** Records a root on the chain; null if no chain is set up. */
  readonly recordRoot: ((root: string) => Promise<RootTransaction>) | null;
  readonly onWarning: (message: string, error: unknown) => void;
}

/** Maximum roots waiting for an unreachable chain; older ones are only in the file. */
const WAITING_ROOTS_MAX = 1_000;
/** Maximum unnamed lines that a writer's first line names; every server that ever wrote leaves one. */
const FOLLOWS_MAX = 1_000;
/** Delay of the first anchor, so that a new service does not wait a whole interval. */
const FIRST_ANCHOR_SECONDS = 60;
/** Maximum delay of a service's shutdown by its last anchor, and of an anchoring by a root. */
const LAST_ANCHOR_MS = 5_000;
const ROOT_MS = 10_000;

/**
 * Records the heads of the chains outside the database, at intervals and at shutdown. Any number of servers do so
 * independently; repeated anchors agree. No request waits for it, and failures are retried at the next interval.
 */
export class AuditAnchoring {
  readonly #dependencies: AnchoringDependencies;
  readonly #log: Collection<AuditDocument>;
  readonly #writer = randomUUID();
  /** State of the file when first read, updated since; null until then. */
  #known: Known | null = null;
  #waitingRoots: readonly string[] = [];
  #timer: NodeJS.Timeout | null = null;
  readonly #serial = pLimit(1);
  #isRecording = false;
  #isStopped = false;

  constructor(dependencies: AnchoringDependencies) {
    this.#dependencies = dependencies;
    this.#log = auditLogOf(dependencies.db);
  }

  /** Anchors now and then at intervals, which are shorter until there is a first anchor. */
  start(everySeconds: number, firstSeconds: number = FIRST_ANCHOR_SECONDS): void {
    void this.#startNow(everySeconds, firstSeconds);
  }

  async #startNow(everySeconds: number, firstSeconds: number): Promise<void> {
    await this.#serially(() => this.#anchor());
    if (this.#isStopped) return;
    const isFirst = this.#known === null || this.#known.anchored.size === 0;
    const seconds = isFirst ? Math.min(firstSeconds, everySeconds) : everySeconds;
    this.#timer = setTimeout(() => this.start(everySeconds, firstSeconds), seconds * 1_000);
    this.#timer.unref();
    // Recorded separately, so that an unresponsive chain does not keep the last anchor from the file.
    await this.#recordWaiting();
  }

  /** Writes the last anchor, only to the file: a shutdown does not wait for a chain. */
  async stop(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#isStopped = true;
    await withTimeout(
      LAST_ANCHOR_MS,
      this.#serially(() => this.#anchor()),
    ).catch((error: unknown) => this.#dependencies.onWarning("the last anchor was not written", error));
  }

  /** Runs anchorings one after another; never rejects. */
  #serially(work: () => Promise<void>): Promise<void> {
    return this.#serial(work).catch((error: unknown) =>
      this.#dependencies.onWarning("the audit log was not anchored", error),
    );
  }

  /** Never rejects. Roots that the chain does not accept wait for the next interval or the next service. */
  async #recordWaiting(): Promise<void> {
    if (this.#isRecording || this.#isStopped) return;
    this.#isRecording = true;
    try {
      await this.#recordRoots();
    } catch (error) {
      if (!this.#isStopped) this.#dependencies.onWarning("an anchor's root is not on the chain yet", error);
    } finally {
      this.#isRecording = false;
    }
  }

  async #anchor(): Promise<void> {
    const { clock, seal, sink } = this.#dependencies;
    const known = (this.#known ??= await this.#read());
    let heads: AnchoredHead[] = [];
    const write = async (): Promise<void> => {
      if (heads.length === 0) return;
      const { follows } = known;
      const anchor = anchorOf({ heads, at: clock(), writer: this.#writer, follows }, seal);
      await sink.append(anchor);
      known.follows = [anchor.root];
      for (const { organizationId, sequence } of heads) known.anchored.set(organizationId, sequence);
      this.#waitingRoots = [...this.#waitingRoots, anchor.root].slice(-WAITING_ROOTS_MAX);
      heads = [];
    };
    for await (const organizationId of chainsIn(this.#log)) {
      const { hash, sequence } = await genuineHeadOf(this.#log, organizationId, seal);
      if (sequence === (known.anchored.get(organizationId) ?? 0)) continue;
      heads.push({ organizationId, sequence, hash });
      if (heads.length >= sink.headsPerLineMax) await write();
    }
    await write();
  }

  async #recordRoots(): Promise<void> {
    const { clock, recordRoot, seal, sink } = this.#dependencies;
    if (recordRoot === null) return void (this.#waitingRoots = []);
    for (const root of this.#waitingRoots) {
      if (this.#isStopped) return;
      const transaction = await withTimeout(ROOT_MS, recordRoot(root));
      // After a stop nothing is written; the next service on this file finds the root on the chain.
      if (this.#isStopped) return;
      await sink.append(transactionOf({ at: clock(), root, ...transaction }, seal));
      this.#waitingRoots = this.#waitingRoots.filter((each) => each !== root);
    }
  }

  /**
   * Reads the file, so that a restarted service does not repeat unchanged heads and continues the lines. Lines of
   * another service are ignored. A root that no line names and no transaction carries was on its way to the chain when
   * its writer ended; a root that a later line names is covered by that line's root.
   */
  async #read(): Promise<Known> {
    const { seal, sink } = this.#dependencies;
    const { byOrganization, transactions, unnamed } = await readAnchors(sink, seal);
    const anchored = new Map<string, number>();
    for (const [organizationId, hashes] of byOrganization) {
      anchored.set(organizationId, lastAnchored(hashes));
    }
    const onChain = new Set(transactions.map(({ root }) => root));
    this.#waitingRoots = unnamed.filter((root) => !onChain.has(root)).slice(-WAITING_ROOTS_MAX);
    return { anchored, follows: unnamed.slice(-FOLLOWS_MAX) };
  }
}

interface Known {
  /** Last anchored sequence of each chain. */
  readonly anchored: Map<string, number>;
  /** Roots that the next line names, so that no line can be removed unnoticed. */
  follows: readonly string[];
}
