import type { Collection, Db, Document } from "mongodb";
import type { AuditEntry, AuditHead } from "../domain/audit/entry.ts";
import { NO_ENTRY } from "../domain/audit/entry.ts";
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

const entryId = (organizationId: string, sequence: number): string =>
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

/** A document with its place taken apart; null where its id is no place in a chain. */
export function positionedEntry(document: Readonly<Record<string, unknown>>): {
  readonly organizationId: string;
  readonly found: FoundEntry;
} | null {
  const { _id, at, ...rest } = document;
  const [, organizationId, digits] = /^([^/]+)\/(\d{15})$/.exec(String(_id)) ?? [];
  if (organizationId === undefined || digits === undefined) return null;
  // What is no date is left as it is: it then hashes to something else.
  const instant = at instanceof Date && !Number.isNaN(at.getTime()) ? at.toISOString() : { notADate: true };
  // An entry of another organization is not genuine here, whatever its hash says.
  const belongs = rest["organizationId"] === organizationId;
  return {
    organizationId,
    found: { position: belongs ? Number(digits) : 0, fields: { ...rest, at: instant } },
  };
}

/** Where a chain ends. */
export async function headOf(log: Collection<AuditDocument>, organizationId: string): Promise<AuditHead> {
  const [last] = await log
    .find({ _id: chainRange(organizationId) }, { projection: { sequence: 1, hash: 1 } })
    .sort({ _id: -1 })
    .limit(1)
    .toArray();
  return last === undefined ? NO_ENTRY : { sequence: last.sequence, hash: last.hash };
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

/** What the list can be narrowed to; several of them together in this order. */
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
    { key: { organizationId: 1, entryKey: 1 }, name: "entry_key_unique", unique: true },
    ...FILTERED_BY.map((fields) => ({
      key: newestFirst(["organizationId", ...fields], "at"),
      name: fields.length === 0 ? "newest" : fields.map((field) => field.replace(".id", "")).join("_"),
    })),
  ],
};
