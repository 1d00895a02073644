import type { Filter } from "mongodb";
import {
  type AuditDocument,
  chainSegment,
  genuineHeadOf,
  isGenuine,
} from "../../src/store/audit-documents.ts";
import { actionsOn } from "../../src/client/audit-actions.ts";
import { ok } from "../../src/domain/result.ts";
import { auditNamesIn } from "./audit-names.ts";
import { EXPORTED_AT_ONCE, exportPieces } from "./export-pieces.ts";
import { definedFields } from "../../src/store/lists.ts";
import type { EqualityFilter } from "../../src/store/newest-reads.ts";
import { auditEntryView } from "../../src/views/views.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

interface Chosen {
  readonly actor?: string | undefined;
  readonly resource?: string | undefined;
  readonly resourceType?: string | undefined;
  readonly action?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** Lower bound that only dates match, as in every genuine entry: a document without a time has no place in a list. */
const EPOCH = new Date(0);

/** Reads the audit log. Shows only entries that this service wrote, in their places. */
export function auditLogHandlers(
  dependencies: HandlerDependencies,
): Pick<Handlers, "listAuditLog" | "exportAuditLog"> {
  const { auditSeal, lists } = dependencies;
  const { auditLog } = dependencies.collections;
  const namesIn = auditNamesIn(dependencies);

  /**
   * Yields the genuine entries of a chain, from the first to the current last one: later entries must not keep an
   * export from ending. Places in a chain have no gaps, so it is read in ranges, and no cursor stays open between them.
   */
  async function* wholeChain(
    organizationId: string,
    filter: Filter<AuditDocument>,
  ): AsyncGenerator<readonly AuditDocument[], void> {
    const { sequence: last } = await genuineHeadOf(auditLog, organizationId, auditSeal);
    for (let after = 0; after < last; after += EXPORTED_AT_ONCE) {
      const upTo = Math.min(after + EXPORTED_AT_ONCE, last);
      const segment = { ...filter, _id: chainSegment(organizationId, after, upTo) };
      const entries = await auditLog
        .find(segment, { hint: { _id: 1 } })
        .sort({ _id: 1 })
        .batchSize(EXPORTED_AT_ONCE + 1)
        .toArray();
      // Yields even if no entry matches, so that each read is bounded however rare matches are.
      yield entries.filter((entry) => isGenuine(entry, organizationId, auditSeal));
    }
  }

  return {
    async listAuditLog({ query: { cursor, limit, ...chosen } }, { principal: { organizationId } }) {
      const { from, to } = chosen;
      const page = await lists.page({
        collection: auditLog,
        list: "audit-log",
        filters: { organizationId, ...chosen },
        equals: equalsOf(organizationId, chosen),
        where: ofType(chosen),
        since: from === undefined ? EPOCH : new Date(from),
        until: to === undefined ? null : new Date(to),
        newestBy: "at",
        limit,
        cursor,
      });
      if (!page.ok) return page;
      const { items, nextCursor } = page.value;
      const entries = items.filter((entry) => isGenuine(entry, organizationId, auditSeal));
      const names = await namesIn(organizationId, entries);
      return ok({ body: { entries: entries.map(auditEntryView), nextCursor, names } });
    },

    async exportAuditLog({ query }, { principal: { organizationId } }) {
      const entries = wholeChain(organizationId, filterOf(organizationId, query));
      const pieces = await exportPieces(entries, (entry) => `${JSON.stringify(auditEntryView(entry))}\n`);
      const stream = { contentType: "application/x-ndjson", fileName: "audit-log.jsonl", pieces };
      return ok({ body: "", stream });
    },
  };
}

/**
 * Returns the equality filter, in the order of its index; null if nothing can match. The resource's type has no index,
 * so the actions on that type replace it: their entries rarely concern another type.
 */
function equalsOf(
  organizationId: string,
  { action, actor, resource, resourceType }: Chosen,
): EqualityFilter | null {
  const actions =
    resourceType === undefined
      ? action
      : actionsOn(resourceType).filter((each) => action === undefined || each === action);
  if (actions?.length === 0) return null;
  return {
    organizationId,
    ...definedFields({ "actor.id": actor, "resource.id": resource, action: actions }),
  };
}

const ofType = ({ resourceType }: Chosen): Filter<AuditDocument> =>
  resourceType === undefined ? {} : { "resource.type": resourceType };

function filterOf(organizationId: string, chosen: Chosen): Filter<AuditDocument> {
  const { action, actor, from, resource, to } = chosen;
  const between = definedFields({
    $gte: from === undefined ? undefined : new Date(from),
    $lt: to === undefined ? undefined : new Date(to),
  });
  return {
    organizationId,
    ...definedFields({ "actor.id": actor, "resource.id": resource, action }),
    ...ofType(chosen),
    ...(Object.keys(between).length === 0 ? {} : { at: between }),
  };
}
