import { canonicalJson } from "./canonical.ts";
import { type AuditHead, type AuditSeal, isMac } from "./entry.ts";

/** A chain's head in an anchor, which is stored where a writer of the database has no access. */

export interface AnchoredHead extends AuditHead {
  readonly organizationId: string;
}

/** Fields of a line of heads, common to all versions. */
interface Heads {
  readonly kind: "heads";
  /** ISO 8601. */
  readonly at: string;
  /** Heads that have changed since the previous anchor. */
  readonly heads: readonly AnchoredHead[];
  /** SHA-256 over the canonical form of everything but `root` and `mac`; recorded on a chain. */
  readonly root: string;
  readonly mac: string;
}

/** Version 1, in which lines do not name each other, so that a removed line leaves no trace. */
interface UnlinkedAnchor extends Heads {
  readonly version: 1;
}

interface LinkedAnchor extends Heads {
  readonly version: 2;
  /** Id of the server process that wrote the line. */
  readonly writer: string;
  /** Roots of earlier lines: the writer's last one; in its first line, all roots in the file that no line names yet. */
  readonly follows: readonly string[];
}

export type Anchor = UnlinkedAnchor | LinkedAnchor;

/** Fields of a transaction line, common to all versions. */
interface OnChain {
  readonly kind: "transaction";
  readonly at: string;
  readonly root: string;
  readonly chain: string;
  readonly from: string;
  readonly hash: string;
}

/** Version 1, without a MAC: anyone with write access to the file could have added the line. */
interface UnsealedTransaction extends OnChain {
  readonly version: 1;
}

interface SealedTransaction extends OnChain {
  readonly version: 2;
  /** HMAC of the SHA-256 over the canonical form of the fields above. */
  readonly mac: string;
}

/** States that an anchor's root is in a transaction on a chain. */
export type AnchorTransaction = UnsealedTransaction | SealedTransaction;

export type AnchorLine = Anchor | AnchorTransaction;

export interface NewAnchor {
  readonly heads: readonly AnchoredHead[];
  readonly at: Date;
  readonly writer: string;
  readonly follows: readonly string[];
}

export function anchorOf({ at, follows, heads, writer }: NewAnchor, seal: AuditSeal): Anchor {
  const content = { version: 2, kind: "heads", at: at.toISOString(), writer, follows, heads } as const;
  const root = seal.hash(canonicalJson(content));
  return { ...content, root, mac: seal.mac(root) };
}

/** Whether an anchor is unchanged since it was written with the service's key. */
export function isGenuineAnchor({ mac, root, ...content }: Anchor, seal: AuditSeal): boolean {
  return seal.hash(canonicalJson(content)) === root && isMac(seal, root, mac, content.at);
}

export const followedBy = (anchor: Anchor): readonly string[] => (anchor.version === 2 ? anchor.follows : []);

export type NewTransaction = Omit<OnChain, "kind" | "at"> & { readonly at: Date };

export function transactionOf(
  { at, chain, from, hash, root }: NewTransaction,
  seal: AuditSeal,
): AnchorTransaction {
  const content = {
    version: 2,
    kind: "transaction",
    at: at.toISOString(),
    root,
    chain,
    from,
    hash,
  } as const;
  return { ...content, mac: seal.mac(seal.hash(canonicalJson(content))) };
}

/** Whether a transaction line is unchanged. Always true for version 1, which has no MAC. */
export function isGenuineTransaction(line: AnchorTransaction, seal: AuditSeal): boolean {
  if (line.version === 1) return true;
  const { mac, ...content } = line;
  return isMac(seal, seal.hash(canonicalJson(content)), mac, content.at);
}
