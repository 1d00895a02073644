import type { Document } from "mongodb";
import type { OrganizationScope } from "../contract/types.ts";
import type { KeyBinding } from "../identity/principals.ts";

/** An organization's API key. Only when it dies is it ever changed. */
export interface OrganizationKeyDocument extends Document {
  _id: string;
  organizationId: string;
  name: string;
  /** HMAC of the value with the server-held pepper; the value itself is kept nowhere. */
  hash: string;
  last4: string;
  scopes: OrganizationScope[];
  binding: KeyBinding;
  dailyCreateLimit: number;
  /** The id of the first key of those that were rotated into each other. */
  lineageId: string;
  createdBy: { type: "user"; id: string };
  createdAt: Date;
  lastUsedAt: Date | null;
  rotatedAt: Date | null;
  revokedAt: Date | null;
  /** MAC over what gives access (`AccessProofs`). */
  proof: string;
}

/**
 * What a lineage creates in one UTC day: the ids, since a replay takes no second place. A place is `committed` together
 * with the record that was created; until then it can be released.
 */
export interface DailyCreatesDocument {
  /** `<lineage id>/<YYYY-MM-DD>` */
  _id: string;
  slots: { id: string; reservedAt: Date; committed: boolean }[];
  /** Some time after the day; then MongoDB removes it. */
  expiresAt: Date;
}

export const dailyCreatesId = (lineageId: string, now: Date): string =>
  `${lineageId}/${now.toISOString().slice(0, 10)}`;
