import type { Collection, Db, FindCursor } from "mongodb";
import {
  type Anchor,
  type AnchorLine,
  type AnchorTransaction,
  followedBy,
  isGenuineAnchor,
  isGenuineTransaction,
} from "../../domain/audit/anchor.ts";
import type { AuditSeal } from "../../domain/audit/entry.ts";
import { type AnchoredHashes, type ChainBreak, ChainVerifier } from "../../domain/audit/verify.ts";
import type { AnchorSink } from "./anchor-file.ts";
import {
  type AuditDocument,
  auditLogOf,
  chainNamedBy,
  chainRange,
  positionedEntry,
  storedDocument,
  strayOf,
} from "../../store/audit-documents.ts";

export interface ChainReport {
  readonly organizationId: string;
  /** Number of intact entries before the first break. */
  readonly entries: number;
  readonly anchors: number;
  readonly broken: ChainBreak | null;
}

/** Contents of the anchors' file that are verified as this service's. */
export interface AnchorsRead {
  readonly byOrganization: ReadonlyMap<string, AnchoredHashes>;
  readonly roots: ReadonlySet<string>;
  /** Roots that no other line names yet. */
  readonly unnamed: readonly string[];
  /** Roots that lines name and whose own lines are gone. */
  readonly missing: readonly string[];
  readonly transactions: readonly AnchorTransaction[];
  /** Numbers of torn lines, as a crash leaves them. */
  readonly tornLines: readonly number[];
  /** Numbers of lines that are not anchors. */
  readonly unreadable: readonly number[];
  /** Numbers of lines that were written or changed without the service's key. */
  readonly forged: readonly number[];
}

/** Reads every anchor. Must precede the walk: an anchor is never ahead of its chain when written. */
export async function readAnchors(file: Pick<AnchorSink, "lines">, seal: AuditSeal): Promise<AnchorsRead> {
  const byOrganization = new Map<string, Map<number, string[]>>();
  const [roots, named] = [new Set<string>(), new Set<string>()];
  const transactions: AnchorTransaction[] = [];
  const [tornLines, unreadable, forged] = [[] as number[], [] as number[], [] as number[]];
  for await (const { line, number } of file.lines()) {
    if (line === "torn") tornLines.push(number);
    else if (line === "unreadable") unreadable.push(number);
    else if (!isGenuine(line, seal)) forged.push(number);
    else if (line.kind === "transaction") transactions.push(line);
    else {
      roots.add(line.root);
      for (const root of followedBy(line)) named.add(root);
      remember(byOrganization, line);
    }
  }
  const unnamed = [...roots].filter((root) => !named.has(root));
  const missing = [...named].filter((root) => !roots.has(root));
  return { byOrganization, roots, unnamed, missing, transactions, tornLines, unreadable, forged };
}

const isGenuine = (line: AnchorLine, seal: AuditSeal): boolean =>
  line.kind === "transaction" ? isGenuineTransaction(line, seal) : isGenuineAnchor(line, seal);

function remember(byOrganization: Map<string, Map<number, string[]>>, { heads }: Anchor): void {
  for (const { hash, organizationId, sequence } of heads) {
    const anchors = byOrganization.get(organizationId) ?? new Map<number, string[]>();
    byOrganization.set(organizationId, anchors);
    anchors.set(sequence, [...(anchors.get(sequence) ?? []), hash]);
  }
}

export interface WalkOptions {
  readonly db: Db;
  readonly seal: AuditSeal;
  readonly anchors: AnchorsRead["byOrganization"];
  /** Limits the verification to one chain; null for all. */
  readonly organizationId: string | null;
  readonly onEntry: () => void;
}

const BATCH_ENTRIES = 1_000;

/**
 * Verifies every chain from its first entry to its last, in the order of places, holding at most two entries. Also
 * reports a chain of which only anchors remain. For a single chain, also reports a document of its organization outside
 * of it; a walk of all chains meets such documents anyway.
 */
export async function* walkChains(options: WalkOptions): AsyncGenerator<ChainReport> {
  const { anchors, db, organizationId, seal } = options;
  const log = auditLogOf(db);
  const stray = organizationId === null ? null : await strayOf(log, organizationId);
  const walked = new Set<string>();
  for await (const report of walk(entriesIn(log, organizationId), options)) {
    walked.add(report.organizationId);
    yield withStray(report, stray);
  }
  const left = new Set([
    ...anchors.keys(),
    ...(organizationId === null || stray === null ? [] : [organizationId]),
  ]);
  for (const id of left) {
    if (walked.has(id) || (organizationId !== null && id !== organizationId)) continue;
    yield withStray(reportOf(id, new ChainVerifier(seal, anchors.get(id))), stray);
  }
}

const withStray = (report: ChainReport, stray: unknown): ChainReport =>
  report.broken !== null || stray === null
    ? report
    : { ...report, broken: strayBreak(report.entries, stray) };

/** Returns a break after the last entry for a document of an organization outside of its chain. */
export const strayBreak = (entries: number, id: unknown): ChainBreak => ({
  sequence: entries + 1,
  problem: "inserted",
  detail: `a document of the organization has no place in its chain: ${String(id).slice(0, ID_SHOWN_CHARACTERS)}`,
});

const ID_SHOWN_CHARACTERS = 80;

function entriesIn(log: Collection<AuditDocument>, organizationId: string | null): FindCursor<unknown> {
  const some = organizationId === null ? {} : { _id: chainRange(organizationId) };
  return log.find(some, { raw: true }).sort({ _id: 1 }).batchSize(BATCH_ENTRIES);
}

async function* walk(
  entries: FindCursor<unknown>,
  { anchors, onEntry, seal }: WalkOptions,
): AsyncGenerator<ChainReport> {
  let current: { readonly organizationId: string; readonly verifier: ChainVerifier } | null = null;
  for await (const raw of entries) {
    onEntry();
    const document = storedDocument(raw);
    const placed = positionedEntry(document);
    // Documents without a position in any chain were not written by this service.
    const organizationId = placed?.organizationId ?? chainNamedBy(document);
    if (current !== null && current.organizationId !== organizationId) {
      yield reportOf(current.organizationId, current.verifier);
      current = null;
    }
    current ??= { organizationId, verifier: new ChainVerifier(seal, anchors.get(organizationId)) };
    current.verifier.take(placed?.found ?? { position: 0, fields: {} });
  }
  if (current !== null) yield reportOf(current.organizationId, current.verifier);
}

function reportOf(organizationId: string, verifier: ChainVerifier): ChainReport {
  const broken = verifier.end();
  return { organizationId, entries: verifier.checkedEntries, anchors: verifier.checkedAnchors, broken };
}
