import { BSON, type Collection, type Db, type Document } from "mongodb";
import {
  type AuditEntry,
  type AuditHead,
  type AuditSeal,
  isSealed,
  NO_ENTRY,
} from "../domain/audit/entry.ts";
import { newestFirst } from "./newest-first.ts";
import type { FoundEntry } from "../domain/audit/verify.ts";
import type { Indexes } from "./indexes.ts";

/** Stored form of an entry. The id is the entry's place in its chain, so the index on ids keeps places unique. */
export type AuditDocument = Document &
  Omit<AuditEntry, "at"> & {
    readonly _id: string;
    readonly at: Date;
  };

/**
 * Name of the audit log's collection. Not in `COLLECTIONS`: a refused request changes none of those, yet is noted here.
 */
export const AUDIT_LOG = "audit_log";

/** Chain of entries that belong to no organization, such as the operator's commands. */
export const SERVICE_CHAIN = "service";

const DIGITS = 15;

/**
 * Returns the audit log, read with majority concern: an entry that only a failed primary had must be neither shown nor
 * linked to. Writes are acknowledged by the journals of a majority, as on the whole connection.
 */
export const auditLogOf = (db: Db): Collection<AuditDocument> =>
  db.collection<AuditDocument>(AUDIT_LOG, {
    readConcern: { level: "majority" },
    readPreference: "primary",
  });

export const entryId = (organizationId: string, sequence: number): string =>
  `${organizationId}/${String(sequence).padStart(DIGITS, "0")}`;

export function auditDocument(entry: AuditEntry): AuditDocument {
  const { at, organizationId, sequence } = entry;
  return { _id: entryId(organizationId, sequence), ...entry, at: new Date(at) };
}

export const chainRange = (organizationId: string): { readonly $gt: string; readonly $lt: string } => ({
  $gt: `${organizationId}/`,
  $lt: `${organizationId}0`,
});

/** Returns the range of ids of a chain's entries after sequence `after` (0: from the first), up to `upTo`. */
export const chainSegment = (
  organizationId: string,
  after: number,
  upTo: number,
): { readonly $gt: string; readonly $lte: string } => ({
  $gt: entryId(organizationId, after),
  $lte: entryId(organizationId, upTo),
});

/** Id of an entry: its organization's id, which contains no slash, and its sequence number. */
const PLACE = /^([^/]+)\/(\d{15})$/;

/** Splits a document into its place and its fields; null if its id is not a place in a chain. */
export function positionedEntry(document: Readonly<Record<string, unknown>>): {
  readonly organizationId: string;
  readonly found: FoundEntry;
} | null {
  const { _id, at, ...rest } = document;
  const [, organizationId, digits] = PLACE.exec(String(_id)) ?? [];
  if (organizationId === undefined || digits === undefined) return null;
  // A value that is not a date is marked as such, so that the entry hashes to something else.
  const instant = at instanceof Date && !Number.isNaN(at.getTime()) ? at.toISOString() : { notADate: true };
  // An entry of another organization is not genuine here, whatever its hash says.
  const belongs = rest["organizationId"] === organizationId;
  return {
    organizationId,
    found: { position: belongs ? Number(digits) : 0, fields: { ...rest, at: instant } },
  };
}

/** Whether a document is an entry of the organization that this service wrote, in its own place. */
export function isGenuine(document: AuditDocument, organizationId: string, seal: AuditSeal): boolean {
  const placed = positionedEntry(document);
  if (placed === null || placed.organizationId !== organizationId) return false;
  return placed.found.position === document.sequence && isSealed(placed.found.fields, seal);
}

/**
 * Parses a document that was read with the driver's option `raw`. A field may occur twice: MongoDB filters by the first
 * occurrence, the driver returns the last. Such a document gets an extra field, so that its content does not match its
 * hash.
 */
export function storedDocument(raw: unknown): Document {
  if (!(raw instanceof Uint8Array)) throw new Error("the document was not read with the option `raw`");
  const document = BSON.deserialize(raw);
  const isAsWritten = Buffer.compare(BSON.serialize(document), raw) === 0;
  return isAsWritten ? document : { ...document, isStoredOtherwise: true };
}

/** Returns the document in a chain's last place before an id. Documents whose id is not a place are skipped. */
const lastPlaceBefore = (log: Collection<AuditDocument>, organizationId: string, before: string) =>
  log
    .find({ _id: { $gt: chainRange(organizationId).$gt, $lt: before, $regex: PLACE } })
    .sort({ _id: -1 })
    .limit(1)
    .next();

/** Returns the head of a chain, for the next entry: the document in the last place, genuine or not. */
export async function headOf(log: Collection<AuditDocument>, organizationId: string): Promise<AuditHead> {
  const last = await lastPlaceBefore(log, organizationId, chainRange(organizationId).$lt);
  if (last === null) return NO_ENTRY;
  return { sequence: Number(last._id.split("/")[1]), hash: last.hash };
}

export async function genuineHeadOf(
  log: Collection<AuditDocument>,
  organizationId: string,
  seal: AuditSeal,
): Promise<AuditHead> {
  let last = await lastPlaceBefore(log, organizationId, chainRange(organizationId).$lt);
  while (last !== null && !isGenuine(last, organizationId, seal))
    last = await lastPlaceBefore(log, organizationId, last._id);
  return last === null ? NO_ENTRY : { sequence: last.sequence, hash: last.hash };
}

/**
 * Returns the id of a document that claims to be the organization's but has no place in its chain; null if there is
 * none. Reads one index key per entry and no documents. The id may have any type. Uses no hint, since an index may have
 * been altered.
 */
export async function strayOf(log: Collection<AuditDocument>, organizationId: string): Promise<unknown> {
  const outside = { organizationId, _id: { $not: chainRange(organizationId) } };
  const found = await log.findOne(outside, { projection: { _id: 1 } });
  return found?._id ?? null;
}

/** Yields the organizations that have chains, found by the ids of their entries. */
export async function* chainsIn(log: Collection<AuditDocument>): AsyncGenerator<string> {
  let after = "";
  for (;;) {
    const next = await log
      .find({ _id: { $gt: after } }, { projection: { _id: 1 } })
      .sort({ _id: 1 })
      .limit(1)
      .next();
    const organizationId = next?._id.split("/")[0];
    if (organizationId === undefined) return;
    yield organizationId;
    after = chainRange(organizationId).$lt;
  }
}

/** Returns the chain that a document without a valid position belongs to, by its id. */
export const chainNamedBy = ({ _id }: Readonly<Record<string, unknown>>): string =>
  String(_id).split("/")[0] ?? "";

const FILTERED_BY = [
  [],
  ["actor.id"],
  ["resource.id"],
  ["action"],
  ["actor.id", "resource.id"],
  ["actor.id", "action"],
  ["resource.id", "action"],
  ["actor.id", "resource.id", "action"],
] as const;

/** Name of the index that keeps entry keys unique, as in the error of a repeated append. */
export const ENTRY_KEY_INDEX = "entry_key_unique";

/** Indexes for idempotent appends and for each combination of the list's filters, newest first. */
export const AUDIT_INDEXES: Indexes = {
  [AUDIT_LOG]: [
    {
      key: { organizationId: 1, entryKey: 1 },
      name: ENTRY_KEY_INDEX,
      unique: true,
      reader: "an entry is appended once",
    },
    ...FILTERED_BY.map((fields) => ({
      key: newestFirst(["organizationId", ...fields], "at"),
      name: fields.length === 0 ? "newest" : fields.map((field) => field.replace(".id", "")).join("_"),
      reader: `the audit log's list, filtered by [${fields.join(", ")}]`,
    })),
  ],
};
