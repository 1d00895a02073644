import type { Filter, FindCursor } from "mongodb";
import type { z } from "zod";
import { type AuditDocument, chainUpTo, headOf } from "../../activities/audit/documents.ts";
import type { auditEntry } from "../../src/contract/records.ts";
import { ok } from "../../src/domain/result.ts";
import { given } from "../lists.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

interface Chosen {
  readonly actor?: string | undefined;
  readonly resource?: string | undefined;
  readonly action?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** Entries that are read, and sent, at a time. */
const EXPORTED_AT_ONCE = 500;

/** Reading the audit log (docs/audit-log.md). */
export function auditLogHandlers({
  collections: { auditLog },
  lists,
}: HandlerDependencies): Pick<Handlers, "listAuditLog" | "exportAuditLog"> {
  return {
    async listAuditLog({ query: { cursor, limit, ...chosen } }, { principal: { organizationId } }) {
      const page = await lists.page({
        collection: auditLog,
        list: "audit-log",
        filter: filterOf(organizationId, chosen),
        newestBy: "at",
        limit,
        cursor,
      });
      if (!page.ok) return page;
      const { items, nextCursor } = page.value;
      return ok({ body: { entries: items.map(auditEntryView), nextCursor } });
    },

    async exportAuditLog({ query }, { principal: { organizationId } }) {
      // Only so far: what is written meanwhile, this export's own entry aside, must not keep it from ending.
      const { sequence } = await headOf(auditLog, organizationId);
      const filter = { ...filterOf(organizationId, query), _id: chainUpTo(organizationId, sequence) };
      const entries = auditLog.find(filter).sort({ _id: 1 }).allowDiskUse(true).batchSize(EXPORTED_AT_ONCE);
      const fileName = "audit-log.jsonl";
      return ok({
        body: "",
        stream: { contentType: "application/x-ndjson", fileName, pieces: lines(entries) },
      });
    },
  };
}

function filterOf(
  organizationId: string,
  { action, actor, from, resource, to }: Chosen,
): Filter<AuditDocument> {
  const between = given({
    $gte: from === undefined ? undefined : new Date(from),
    $lt: to === undefined ? undefined : new Date(to),
  });
  return {
    organizationId,
    ...given({ "actor.id": actor, "resource.id": resource, action }),
    ...(Object.keys(between).length === 0 ? {} : { at: between }),
  };
}

async function* lines(entries: FindCursor<AuditDocument>): AsyncGenerator<string> {
  try {
    let piece: string[] = [];
    for await (const entry of entries) {
      piece.push(`${JSON.stringify(auditEntryView(entry))}\n`);
      if (piece.length < EXPORTED_AT_ONCE) continue;
      yield piece.join("");
      piece = [];
    }
    if (piece.length > 0) yield piece.join("");
  } finally {
    await entries.close();
  }
}

/** All of it but where it lies: whoever has an entry can make its hash again. */
function auditEntryView({ _id, at, ...entry }: AuditDocument): z.input<typeof auditEntry> {
  return { ...entry, at: at.toISOString() };
}
