import type { Document } from "mongodb";
import type { OrganizationScope } from "../contract/types.ts";
import type { KeyBinding } from "../identity/principals.ts";

/** An organization's API key. Changes only when it is rotated or revoked. */
export interface OrganizationKeyDocument extends Document {
  _id: string;
  organizationId: string;
  name: string;
  /** HMAC of the value with the server-held pepper; the value itself is stored nowhere. */
  hash: string;
  last4: string;
  scopes: OrganizationScope[];
  binding: KeyBinding;
  dailyCreateLimit: number;
  /** Id of the first key in this chain of rotations. */
  lineageId: string;
  createdBy: { type: "user"; id: string };
  createdAt: Date;
  lastUsedAt: Date | null;
  rotatedAt: Date | null;
  revokedAt: Date | null;
  /** MAC over the fields that give access (`AccessProofs`). */
  proof: string;
}

/**
 * Creations of a lineage in one UTC day, by id, so that a replay takes no second slot. A slot is `committed` together
 * with the created record; until then it can be released.
 */
export interface DailyCreatesDocument {
  /** `<lineage id>/<YYYY-MM-DD>` */
  _id: string;
  slots: { id: string; reservedAt: Date; committed: boolean }[];
  /** Some time after the day's end; MongoDB then removes the document. */
  expiresAt: Date;
}

export const dailyCreatesId = (lineageId: string, now: Date): string =>
  `${lineageId}/${now.toISOString().slice(0, 10)}`;
