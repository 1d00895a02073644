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

/** An entry as it is stored. Its id is its place in its chain, so the id's own index keeps two from having one place. */
export type AuditDocument = Document &
  Omit<AuditEntry, "at"> & {
    readonly _id: string;
    readonly at: Date;
  };

/** Never in `COLLECTIONS`: what a refused request must not change does not include the note that it was refused. */
export const AUDIT_LOG = "audit_log";

/** The chain of what belongs to no organization, such as the operator's commands. */
export const SERVICE_CHAIN = "service";

const DIGITS = 15;

/**
 * Read as a majority has it: an entry that only a fallen primary had must neither be shown nor be linked to. Written as the
 * connection says: in the journal of a majority.
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

/** The ids of a chain's entries, in their order. */
export const chainRange = (organizationId: string): { readonly $gt: string; readonly $lt: string } => ({
  $gt: `${organizationId}/`,
  $lt: `${organizationId}0`,
});

/** The ids of a chain's entries after one of them (0: from the first), up to another. */
export const chainSegment = (
  organizationId: string,
  after: number,
  upTo: number,
): { readonly $gt: string; readonly $lte: string } => ({
  $gt: entryId(organizationId, after),
  $lte: entryId(organizationId, upTo),
});

/** An entry's id: its organization, which has no slash, and its sequence. */
const PLACE = /^([^/]+)\/(\d{15})$/;

/** A document with its place taken apart; null where its id is no place in a chain. */
export function positionedEntry(document: Readonly<Record<string, unknown>>): {
  readonly organizationId: string;
  readonly found: FoundEntry;
} | null {
  const { _id, at, ...rest } = document;
  const [, organizationId, digits] = PLACE.exec(String(_id)) ?? [];
  if (organizationId === undefined || digits === undefined) return null;
  // A value that is no date is left as it is: it then hashes to something else.
  const instant = at instanceof Date && !Number.isNaN(at.getTime()) ? at.toISOString() : { notADate: true };
  // An entry of another organization is not genuine here, whatever its hash says.
  const belongs = rest["organizationId"] === organizationId;
  return {
    organizationId,
    found: { position: belongs ? Number(digits) : 0, fields: { ...rest, at: instant } },
  };
}

/** Whether a document is an entry of the organization as this service has written it, in its own place. */
export function isGenuine(document: AuditDocument, organizationId: string, seal: AuditSeal): boolean {
  const placed = positionedEntry(document);
  if (placed === null || placed.organizationId !== organizationId) return false;
  return placed.found.position === document.sequence && isSealed(placed.found.fields, seal);
}

/**
 * A document read with the driver's option `raw`. A field may be there twice: MongoDB filters by the first, the driver returns the
 * last. Such a document is returned with one field more, so that its content does not match its hash.
 */
export function storedDocument(raw: unknown): Document {
  if (!(raw instanceof Uint8Array)) throw new Error("the document was not read as it is stored");
  const document = BSON.deserialize(raw);
  const isAsWritten = Buffer.compare(BSON.serialize(document), raw) === 0;
  return isAsWritten ? document : { ...document, isStoredOtherwise: true };
}

/** The document in the last place of a chain that is before an id. Other documents that lie there are passed over. */
const lastPlaceBefore = (log: Collection<AuditDocument>, organizationId: string, before: string) =>
  log
    .find({ _id: { $gt: chainRange(organizationId).$gt, $lt: before, $regex: PLACE } })
    .sort({ _id: -1 })
    .limit(1)
    .next();

/** The end of a chain, for the next entry: whatever lies in the last place. */
export async function headOf(log: Collection<AuditDocument>, organizationId: string): Promise<AuditHead> {
  const last = await lastPlaceBefore(log, organizationId, chainRange(organizationId).$lt);
  if (last === null) return NO_ENTRY;
  return { sequence: Number(last._id.split("/")[1]), hash: last.hash };
}

/** The last entry of a chain that is as this service has written it. */
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
 * The id of a document that says it is the organization's and has no place in its chain; null: there is none. Reads a key of an
 * index for each entry, and no document. The id may be anything. Without a hint, since an index may have been altered.
 */
export async function strayOf(log: Collection<AuditDocument>, organizationId: string): Promise<unknown> {
  const outside = { organizationId, _id: { $not: chainRange(organizationId) } };
  const found = await log.findOne(outside, { projection: { _id: 1 } });
  return found?._id ?? null;
}

/** The organizations that have chains, by the ids of their entries. */
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

/** The chain that a document without a valid position belongs to, by its id. */
export const chainNamedBy = ({ _id }: Readonly<Record<string, unknown>>): string =>
  String(_id).split("/")[0] ?? "";

/** Fields that the list can be narrowed to; several of them together in this order. */
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

/** The indexes behind idempotent appends, and behind each choice of filters of the list, newest first. */
export const AUDIT_INDEXES: Indexes = {
  [AUDIT_LOG]: [
    {
      key: { organizationId: 1, entryKey: 1 },
      name: "entry_key_unique",
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
