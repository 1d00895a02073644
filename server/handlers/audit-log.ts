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

/** With it only dates fit, as in every entry that is one: documents without a time have no place in a list. */
const EPOCH = new Date(0);

/** Reading the audit log (docs/audit-log.md): nothing is shown that was not written by this service, in its place. */
export function auditLogHandlers(
  dependencies: HandlerDependencies,
): Pick<Handlers, "listAuditLog" | "exportAuditLog"> {
  const { auditSeal, lists } = dependencies;
  const { auditLog } = dependencies.collections;
  const namesIn = auditNamesIn(dependencies);

  /**
   * Genuine entries of a chain, from its first to the one that is its last now: later entries must not keep an export
   * from its end. Places in a chain have no gaps, so stretches of it are read one after another, and nothing stays open between.
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
      // Also where nothing in it fits: what is read at a time is bounded, however seldom something does.
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
 * The filter that entries have in common, in the order of their index; null: there are none. Instead of the resource's type, which no index
 * has, the actions on that type: their entries are hardly on any other.
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
