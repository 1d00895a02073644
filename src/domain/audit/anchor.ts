import { canonicalJson } from "./canonical.ts";
import type { AuditHead, AuditSeal } from "./entry.ts";

/** An anchor: the ends of chains, written down where whoever can write to the database can't. */

export interface AnchoredHead extends AuditHead {
  readonly organizationId: string;
}

/** What a line of heads says, whichever its version. */
interface Heads {
  readonly kind: "heads";
  /** ISO 8601. */
  readonly at: string;
  /** Those that have changed since the anchor before. */
  readonly heads: readonly AnchoredHead[];
  /** SHA-256 over the canonical form of everything but `root` and `mac`; it is what goes on a chain. */
  readonly root: string;
  readonly mac: string;
}

/** From before lines named each other: that one was taken out shows nowhere in the file. */
interface UnlinkedAnchor extends Heads {
  readonly version: 1;
}

interface LinkedAnchor extends Heads {
  readonly version: 2;
  /** The server's run that wrote it. */
  readonly writer: string;
  /** Roots of lines before it: of its writer's last, or at first of all in the file that nobody has named yet. */
  readonly follows: readonly string[];
}

export type Anchor = UnlinkedAnchor | LinkedAnchor;

/** That the root of an anchor is in a transaction on a chain. */
export interface AnchorTransaction {
  readonly version: 1;
  readonly kind: "transaction";
  readonly at: string;
  readonly root: string;
  /** CAIP-2. */
  readonly chain: string;
  readonly from: string;
  readonly hash: string;
}

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

/** Whether an anchor is as it was written, by somebody with the service's key. */
export function isGenuineAnchor({ mac, root, ...content }: Anchor, seal: AuditSeal): boolean {
  return seal.hash(canonicalJson(content)) === root && seal.mac(root) === mac;
}

export const followedBy = (anchor: Anchor): readonly string[] => (anchor.version === 2 ? anchor.follows : []);
