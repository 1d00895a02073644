import { canonicalJson } from "./canonical.ts";
import type { AuditHead, AuditSeal } from "./entry.ts";

/** An anchor: the ends of chains, written down where whoever can write to the database can't. */

export interface AnchoredHead extends AuditHead {
  readonly organizationId: string;
}

export interface Anchor {
  readonly version: 1;
  readonly kind: "heads";
  /** ISO 8601. */
  readonly at: string;
  /** Those that have changed since the anchor before. */
  readonly heads: readonly AnchoredHead[];
  /** SHA-256 over the canonical form of all of the above; it is what goes on a chain. */
  readonly root: string;
  readonly mac: string;
}

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

const rootOf = ({ at, heads }: Pick<Anchor, "at" | "heads">, seal: AuditSeal): string =>
  seal.hash(canonicalJson({ version: 1, kind: "heads", at, heads }));

export function anchorOf(heads: readonly AnchoredHead[], at: Date, seal: AuditSeal): Anchor {
  const content = { at: at.toISOString(), heads };
  const root = rootOf(content, seal);
  return { version: 1, kind: "heads", ...content, root, mac: seal.mac(root) };
}

/** Whether an anchor is as it was written, by somebody with the service's key. */
export const isGenuineAnchor = (anchor: Anchor, seal: AuditSeal): boolean =>
  rootOf(anchor, seal) === anchor.root && seal.mac(anchor.root) === anchor.mac;
