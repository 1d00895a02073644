import { rootData } from "../../activities/chain/audit-roots.ts";
import { ChainRpc, ChainUnreachable, WrongChain } from "../../activities/chain/rpc.ts";
import { AnchorFile } from "../../activities/audit/anchor-file.ts";
import { auditSeal } from "../../activities/audit/seal.ts";
import {
  type AnchorsRead,
  type ChainReport,
  readAnchors,
  walkChains,
} from "../../activities/audit/verification.ts";
import type { AnchorTransaction } from "../../src/domain/audit/anchor.ts";
import { caip2Of } from "../../activities/chain/config.ts";
import { readChain } from "../chain.ts";
import { readConfig } from "../config.ts";
import { loadMasterKey } from "../secrets/load-master-key.ts";
import { verifyMasterKey } from "../secrets/verify-master-key.ts";
import { connectedToMongo } from "./connecting.ts";
import { masterKeyBeside } from "./master-key.ts";

export interface VerifyOptions {
  readonly organization?: string | undefined;
  /** Told how many entries were looked at so far. */
  readonly onProgress?: (entries: number) => void;
}

/** What a verification found. */
export interface AuditVerdict {
  readonly unbroken: boolean;
  readonly entries: number;
  readonly anchors: number;
  readonly chains: number;
  /** The first broken entry of each chain that is broken. */
  readonly broken: readonly ChainReport[];
  readonly anchorFile: {
    readonly path: string;
    readonly unreadableLines: readonly number[];
    readonly forgedLines: readonly number[];
    /** Roots that are on the chain by the file's word, but whose anchors are not in the file. */
    readonly rootsWithoutAnchor: readonly string[];
  };
  readonly onChain: OnChain;
}

/** What the chain says of the roots that the file says are on it. */
export interface OnChain {
  readonly confirmed: number;
  /** Not mined, or on another chain than the one that is set up. */
  readonly unseen: number;
  /** Transactions with something else in them. */
  readonly wrong: readonly string[];
  readonly reachable: boolean;
}

const PROGRESS_ENTRIES = 10_000;
const ASKED_AT_ONCE = 50;

/**
 * `verify-audit-log` (docs/audit-log.md): walks every chain, or one, and holds it against its own links, the service's key, the
 * anchors' file, and the chain's roots where one is set up and answers. Changes nothing.
 */
export async function verifyAuditLog(
  env: NodeJS.ProcessEnv,
  { onProgress, organization }: VerifyOptions = {},
): Promise<AuditVerdict> {
  return connectedToMongo(env, async ({ db, evmRpcUrl }) => {
    const { auditAnchorFile } = readConfig(env, "127.0.0.1");
    const masterKey =
      (await masterKeyBeside(env)) ?? (await loadMasterKey({ fromEnvironment: "", embeddedDataDir: null }));
    await verifyMasterKey(db, masterKey);
    const seal = auditSeal(masterKey.deriveKey("audit-log"));
    const anchors = await readAnchors(new AnchorFile(auditAnchorFile), seal);
    let looked = 0;
    const onEntry = (): void => {
      looked += 1;
      if (looked % PROGRESS_ENTRIES === 0) onProgress?.(looked);
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
    const rpc = evmRpcUrl === null ? null : new ChainRpc(readChain(evmRpcUrl, env, masterKey, db).place);
    return verdict(reports, anchors, auditAnchorFile, await rootsOn(rpc, anchors.transactions));
  });
}

function verdict(
  reports: readonly ChainReport[],
  { forged, roots, transactions, unreadable }: AnchorsRead,
  path: string,
  onChain: OnChain,
): AuditVerdict {
  const broken = reports.filter((report) => report.broken !== null);
  const rootsWithoutAnchor = transactions.map(({ root }) => root).filter((root) => !roots.has(root));
  const sum = (count: (report: ChainReport) => number): number =>
    reports.reduce((total, report) => total + count(report), 0);
  return {
    unbroken: [broken, forged, rootsWithoutAnchor, onChain.wrong].every(({ length }) => length === 0),
    entries: sum(({ entries }) => entries),
    anchors: sum(({ anchors }) => anchors),
    chains: reports.length,
    broken,
    anchorFile: { path, unreadableLines: unreadable, forgedLines: forged, rootsWithoutAnchor },
    onChain,
  };
}

async function rootsOn(rpc: ChainRpc | null, transactions: readonly AnchorTransaction[]): Promise<OnChain> {
  const found = { confirmed: 0, unseen: 0, wrong: [] as string[] };
  if (rpc === null) return { ...found, unseen: transactions.length, reachable: false };
  try {
    await rpc.check();
    const chain = caip2Of(await rpc.answer(rpc.client.getChainId()));
    for (let from = 0; from < transactions.length; from += ASKED_AT_ONCE) {
      const asked = transactions.slice(from, from + ASKED_AT_ONCE);
      const answers = await Promise.all(asked.map((one) => rootOn(rpc, chain, one)));
      asked.forEach(({ hash }, index) => {
        const answer = answers[index];
        if (answer === "confirmed") found.confirmed += 1;
        else if (answer === "wrong") found.wrong.push(hash);
        else found.unseen += 1;
      });
    }
    return { ...found, reachable: true };
  } catch (error) {
    if (!(error instanceof ChainUnreachable || error instanceof WrongChain)) throw error;
    return { ...found, unseen: transactions.length - found.confirmed - found.wrong.length, reachable: false };
  }
}

async function rootOn(
  rpc: ChainRpc,
  here: string,
  { chain, hash, root }: AnchorTransaction,
): Promise<"confirmed" | "unseen" | "wrong"> {
  const transaction = chain === here ? await rpc.transaction(asHash(hash)) : null;
  if (transaction === null || transaction.blockNumber === null) return "unseen";
  return transaction.data === rootData(root) ? "confirmed" : "wrong";
}

const asHash = (hash: string): `0x${string}` => `0x${hash.slice(2)}`;

/** A verdict for a person, a line each. */
export function explained({ anchorFile, anchors, broken, chains, entries, onChain }: AuditVerdict): string[] {
  const { forgedLines, path, rootsWithoutAnchor, unreadableLines } = anchorFile;
  return [
    ...broken.map(({ broken: found, organizationId }) => {
      const { detail, problem, sequence } = found ?? { detail: "", problem: "", sequence: 0 };
      return `BROKEN ${organizationId}: entry ${sequence} (${problem}): ${detail}`;
    }),
    ...forgedLines.map((line) => `FORGED ${path}: line ${line} was not written by this service`),
    ...rootsWithoutAnchor.map((root) => `REMOVED ${path}: the anchor with the root ${root}`),
    ...onChain.wrong.map((hash) => `FORGED ${path}: transaction ${hash} carries another root`),
    ...unreadableLines.map((line) => `note: ${path}: line ${line} can't be read`),
    `${entries} entries of ${chains} chains checked against ${anchors} anchors; ` +
      (onChain.reachable
        ? `${onChain.confirmed} roots seen on the chain, ${onChain.unseen} not.`
        : `${onChain.unseen} roots not looked for: no chain answers.`),
  ];
}
