import { SHOWN_TRANSACTION_FIELDS, type TransactionSnapshot } from "../../src/store/documents.ts";
import { agentIn, transactionId } from "../../src/contract/primitives.ts";
import { rail as rails } from "../../src/contract/records.ts";
import type { InputOf } from "../../src/contract/types.ts";
import type { operations } from "../../src/contract/registry.ts";
import { ok } from "../../src/domain/result.ts";
import { csvRow } from "../../src/lib/csv.ts";
import { EXPORTED_AT_ONCE, exportPieces } from "./export-pieces.ts";
import { definedFields, inBatches } from "../../src/store/lists.ts";
import type { Selection } from "../../src/store/newest-reads.ts";
import { searchedBy } from "../../src/store/payment-searches.ts";
import { mostSpecificScope } from "../../src/identity/most-specific-scope.ts";
import { transactionView } from "../../src/views/views.ts";
import { zonedTime } from "../../src/lib/zoned-time.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { ContextOf, Handlers } from "./types.ts";

const DAY_MS = 86_400_000;
export const RANGE_DAYS = { "7d": 7, "30d": 30, "90d": 90 } as const;

type ListQuery = InputOf<typeof operations.listTransactions>["query"];
type Filters = Omit<ListQuery, "cursor" | "limit">;
type Caller = ContextOf<typeof operations.listTransactions.access>;

const BYTE_ORDER_MARK = "\ufeff";

const COLUMNS = [
  "id",
  "createdAt",
  "agentId",
  "agentName",
  "merchant",
  "amountCents",
  "currency",
  "direction",
  "rail",
  "status",
  "purpose",
  "denialReason",
  "denialCode",
  "onChainTxHash",
  "chainCaip2",
  "requestedCents",
  "authorizedCents",
  "capturedCents",
  "creditedCents",
  "stage",
  "breach",
  "amount",
  "resource",
  "protocol",
  "receipt",
] as const;

export function transactionHandlers({
  clock,
  collections,
  lists,
  reads,
}: HandlerDependencies): Pick<Handlers, "exportTransactions" | "getTransaction" | "listTransactions"> {
  /** Returns the filter for a caller, which a list and an export share. */
  async function chosen(
    filters: Filters,
    { principal: { organizationId }, target: { bindingFilter } }: Caller,
  ): Promise<Selection<TransactionSnapshot> & { readonly filters: object }> {
    const { agent_id: _agent, agentId: _same, from, range = "all", to, ...asked } = filters;
    const { maxAmountCents, minAmountCents, projectId, search, status, teamId, type } = asked;
    const containers = { projectId, teamId, agentId: agentIn(filters) };
    const scope = await mostSpecificScope(collections, organizationId, containers, bindingFilter);
    // A payment's rail never changes. A list of both is merged from the two.
    const equals = scope && { ...scope, ...definedFields({ status }), rail: type ?? rails.options };
    const named = transactionId.safeParse(search?.trim().replace(/^txn_.*$/i, withUpperCase));
    const wanted = { maxAmountCents, minAmountCents, search: named.success ? undefined : search };
    const searched = equals && (await searchedBy(collections.shownTransactions, organizationId, wanted));
    return {
      collection: collections.shownTransactions,
      projection: SHOWN_TRANSACTION_FIELDS,
      equals:
        searched === null ? null : equals && { ...equals, ...(named.success ? { _id: named.data } : {}) },
      ...searched,
      since: latest(
        range === "all" ? null : new Date(clock().getTime() - RANGE_DAYS[range] * DAY_MS),
        from === undefined ? null : new Date(from),
      ),
      until: to === undefined ? null : new Date(to),
      filters: { organizationId, ...asked, ...containers, from, range, to, bindingFilter },
    };
  }

  /** Runs searches in turns, since one with few matches examines thousands of records. */
  const inTurn = <T>(
    selection: Selection<TransactionSnapshot>,
    { principal }: Caller,
    work: () => Promise<T>,
  ) => (selection.paths === undefined ? work() : reads.run(work, principal.organizationId));

  return {
    getTransaction: (_input, { target }) =>
      Promise.resolve(ok({ body: { transaction: transactionView(target) } })),

    async listTransactions({ query: { cursor, limit, ...filters } }, caller) {
      const selection = await chosen(filters, caller);
      const page = await inTurn(selection, caller, () =>
        lists.page({ ...selection, list: "transactions", limit, cursor }),
      );
      if (!page.ok) return page;
      const { items, nextCursor } = page.value;
      return ok({ body: { transactions: items.map(transactionView), nextCursor } });
    },

    async exportTransactions({ query: { bom, tz, ...filters } }, caller) {
      const { filters: _filters, ...selection } = await chosen(filters, caller);
      const head = `${bom ? BYTE_ORDER_MARK : ""}${csvRow(COLUMNS)}`;
      const pieces = await exportPieces(inBatches(selection, EXPORTED_AT_ONCE), rowsIn(tz), head);
      const stream = { contentType: "text/csv; charset=utf-8", fileName: "transactions.csv", pieces };
      return ok({ body: "", stream });
    },
  };
}

const withUpperCase = (id: string): string => `txn_${id.slice(4).toUpperCase()}`;

/** Returns the later of two times; null if both are. */
export const latest = (one: Date | null, other: Date | null): Date | null =>
  one === null || (other !== null && other > one) ? other : one;

/** Returns rows whose times are in a time zone. */
function rowsIn(timezone: string | undefined): (transaction: TransactionSnapshot) => string {
  const shown = zonedTime(timezone);
  return (transaction) => {
    const view = transactionView(transaction);
    const createdAt = shown(transaction.createdAt);
    const breach = view.breach?.map(({ level, limit, overCents }) => `${level} ${limit} ${overCents}`);
    const cells = { ...view, ...view.amounts, createdAt, breach: breach?.join(", ") ?? null };
    return csvRow(COLUMNS.map((column) => cells[column]));
  };
}
