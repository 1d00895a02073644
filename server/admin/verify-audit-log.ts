import type { Db } from "mongodb";
import { type RecordedRoot, recordedRoots } from "../../src/chain/audit-roots.ts";
import { AUDIT_INDEXES, AUDIT_LOG, SERVICE_CHAIN } from "../../src/store/audit-documents.ts";
import { alteredIndexes } from "../../src/store/indexes.ts";
import { AnchorFile, anchorLines } from "../../src/audit/chain/anchor-file.ts";
import { auditSeal } from "../../src/audit/chain/seal.ts";
import {
  type AnchorsRead,
  type ChainReport,
  readAnchors,
  walkChains,
} from "../../src/audit/chain/verification.ts";
import { authCollections } from "../../src/store/identity-documents.ts";
import { readChain } from "../chain.ts";
import { readConfig } from "../config.ts";
import { loadMasterKey } from "../../src/secrets/load-master-key.ts";
import { verifyMasterKey } from "../../src/secrets/verify-master-key.ts";
import { AdminError, connectedToMongo } from "./connecting.ts";
import { findMasterKey } from "./master-key.ts";
import { type OnChain, rootsOnChain } from "./roots-on-chain.ts";

export interface VerifyOptions {
  readonly organization?: string | undefined;
  /** Accepts a log without any anchors. The end of any chain may then have been cut off. */
  readonly withoutAnchors?: boolean | undefined;
  /** Called with the number of entries checked so far. */
  readonly onProgress?: (entries: number) => void;
}

export interface AuditVerdict {
  readonly unbroken: boolean;
  readonly entries: number;
  readonly anchors: number;
  readonly chains: number;
  /** First broken entry of each broken chain. */
  readonly broken: readonly ChainReport[];
  /** Organizations whose chain is missing from its first entry on. */
  readonly vanished: readonly string[];
  /** Missing or altered indexes of the log. Without them lists may omit entries, and an entry may exist twice. */
  readonly indexes: readonly string[];
  readonly anchorFile: {
    readonly path: string;
    /** There are entries but no anchors of this service, and the option that allows this is not set. */
    readonly isLacking: boolean;
    /** Lines that a crash left incomplete. They break nothing. */
    readonly tornLines: readonly number[];
    readonly unreadableLines: readonly number[];
    readonly forgedLines: readonly number[];
    /** Roots named by other anchors whose own anchors are not in the file. */
    readonly missingAnchors: readonly string[];
    /** Roots that are on the chain according to the file or the outbox, but whose anchors are not in the file. */
    readonly rootsWithoutAnchor: readonly string[];
  };
  readonly onChain: OnChain;
}

const PROGRESS_ENTRIES = 10_000;

/** Source of lines collected from logs. Not /dev/stdin, which can't be opened where it is a socket, as under SSH. */
const STANDARD_INPUT = { path: "standard input", lines: () => anchorLines(process.stdin) };

/**
 * `verify-audit-log`: walks one or all chains and checks their links, the service's key, the anchor file and, if a
 * chain is configured and answers, the roots on it. Changes nothing.
 */
export async function verifyAuditLog(
  env: NodeJS.ProcessEnv,
  { onProgress, organization, withoutAnchors = false }: VerifyOptions = {},
): Promise<AuditVerdict> {
  return connectedToMongo(env, async ({ db, evmRpcUrl }) => {
    const { auditAnchorFile } = readConfig(env, "127.0.0.1");
    const source = auditAnchorFile === null ? STANDARD_INPUT : new AnchorFile(auditAnchorFile);
    const masterKey =
      (await findMasterKey(env)) ?? (await loadMasterKey({ setting: null, embeddedDataDir: null }));
    await verifyMasterKey(db, masterKey);
    const seal = auditSeal(masterKey.deriveKeys("audit-log"));
    // Read first: every root recorded by now is in the file by now.
    const recorded = await recordedRoots(db);
    const anchors = await readAnchors(source, seal);
    // Read before the chains are walked: an organization created later has an entry by then.
    const audited = await auditedOrganizations(db, organization ?? null);
    let checked = 0;
    const onEntry = (): void => {
      checked += 1;
      if (checked % PROGRESS_ENTRIES === 0) onProgress?.(checked);
    };
    const reports: ChainReport[] = [];
    const walked = {
      db,
      seal,
      anchors: anchors.byOrganization,
      organizationId: organization ?? null,
      onEntry,
    };
    for await (const report of walkChains(walked)) reports.push(report);
    const isAnything = reports.length > 0 || audited.isKnown;
    if (organization !== undefined && !isAnything) {
      throw new AdminError(`There is no organization ${organization}.`);
    }
    const found = new Set(reports.map((report) => report.organizationId));
    const vanished = audited.ids.filter((id) => !found.has(id));
    const chain = evmRpcUrl === null ? null : readChain(evmRpcUrl, env, masterKey, db);
    return verdictOn({
      reports,
      anchors,
      vanished,
      indexes: checked === 0 ? [] : await alteredIndexes(db, AUDIT_LOG, AUDIT_INDEXES),
      isLacking: checked > 0 && anchors.roots.size === 0 && !withoutAnchors,
      path: source.path,
      // `--without-anchors` declares that there are none.
      recorded: withoutAnchors ? [] : recorded,
      onChain: await rootsOnChain(chain, anchors.transactions, recorded),
    });
  });
}

/**
 * Returns the organizations whose chains began with their creation, which must have at least that entry. Organizations
 * that are older than the audit log are not marked and not reported.
 */
async function auditedOrganizations(
  db: Db,
  organizationId: string | null,
): Promise<{ readonly ids: readonly string[]; readonly isKnown: boolean }> {
  const { organizations } = authCollections(db);
  if (organizationId === SERVICE_CHAIN) return { ids: [], isKnown: true };
  const some = organizationId === null ? {} : { _id: organizationId };
  const audited = await organizations
    .find({ ...some, isAudited: true }, { projection: { _id: 1 }, sort: { _id: 1 } })
    .toArray();
  const isKnown = (await organizations.findOne(some, { projection: { _id: 1 } })) !== null;
  return { ids: audited.map(({ _id }) => _id), isKnown };
}

interface Findings {
  readonly reports: readonly ChainReport[];
  readonly anchors: AnchorsRead;
  readonly vanished: readonly string[];
  readonly indexes: readonly string[];
  readonly isLacking: boolean;
  readonly path: string;
  readonly recorded: readonly RecordedRoot[];
  readonly onChain: OnChain;
}

function verdictOn({
  anchors,
  indexes,
  isLacking,
  onChain,
  path,
  recorded,
  reports,
  vanished,
}: Findings): AuditVerdict {
  const { forged, missing, roots, tornLines, transactions, unreadable } = anchors;
  const broken = reports.filter((report) => report.broken !== null);
  const anchored = new Set([...transactions, ...recorded].map(({ root }) => root));
  const rootsWithoutAnchor = [...anchored].filter((root) => !roots.has(root));
  const sum = (count: (report: ChainReport) => number): number =>
    reports.reduce((total, report) => total + count(report), 0);
  const wrong = [broken, vanished, indexes, unreadable, forged, missing, rootsWithoutAnchor, onChain.wrong];
  return {
    unbroken: !isLacking && wrong.every(({ length }) => length === 0),
    entries: sum(({ entries }) => entries),
    anchors: sum((report) => report.anchors),
    chains: reports.length,
    broken,
    vanished,
    indexes,
    anchorFile: {
      path,
      isLacking,
      tornLines: tornLines,
      unreadableLines: unreadable,
      forgedLines: forged,
      missingAnchors: missing,
      rootsWithoutAnchor,
    },
    onChain,
  };
}

/** Returns a verdict for a person, one line for each fact. */
export function explained(verdict: AuditVerdict): string[] {
  const { anchorFile, anchors, broken, chains, entries, indexes, onChain, vanished } = verdict;
  return [
    ...broken.map(({ broken: found, organizationId }) => {
      const { detail, problem, sequence } = found ?? { detail: "", problem: "", sequence: 0 };
      return `BROKEN ${organizationId}: entry ${sequence} (${problem}): ${detail}`;
    }),
    ...vanished.map((id) => `BROKEN ${id}: its chain is missing, from its creation on`),
    ...indexes.map(
      (name) =>
        `INDEX ${name} of ${AUDIT_LOG} is missing or altered: lists may leave entries out, or an entry may be there twice. ` +
        "Drop what has its name; a server creates it when it starts.",
    ),
    ...explainedFile(anchorFile),
    ...onChain.wrong.map(
      (hash) =>
        `FORGED ${anchorFile.path}: transaction ${hash} is not this service's, or carries another root`,
    ),
    `${entries} entries of ${chains} chains checked against ${anchors} anchors; ` +
      (onChain.reachable
        ? `${onChain.confirmed} roots seen on the chain, ${onChain.unseen} not.`
        : `${onChain.unseen} roots not checked: no chain responds.`),
  ];
}

function explainedFile(file: AuditVerdict["anchorFile"]): string[] {
  const { forgedLines, missingAnchors, path, rootsWithoutAnchor, tornLines, unreadableLines } = file;
  const lacking =
    `NO ANCHORS ${path}: nothing shows whether chains were cut off. If AUDIT_ANCHOR_FILE names another file than the ` +
    "servers', set it; if it was lost, put a copy in its place; if the service is new, wait a minute: its first one is on its way. " +
    "--without-anchors checks the links alone.";
  return [
    ...(file.isLacking ? [lacking] : []),
    ...forgedLines.map((line) => `FORGED ${path}: line ${line} was not written by this service`),
    ...unreadableLines.map(
      (line) => `SPOILED ${path}: line ${line} can't be read, and no crash leaves such a one`,
    ),
    ...[...new Set([...missingAnchors, ...rootsWithoutAnchor])].map(
      (root) => `REMOVED ${path}: the anchor with the root ${root}`,
    ),
    ...tornLines.map((line) => `note: ${path}: line ${line} was torn by a crash`),
  ];
}
