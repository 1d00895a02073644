import { exactMoney } from "../format.ts";
import { Text } from "@mantine/core";
import { Link, useNavigate } from "@tanstack/react-router";
import { type ReactElement, useCallback } from "react";
import { api } from "../api.ts";
import { Icon } from "../icons.tsx";
import type { Filters, Query } from "../transaction-filters.ts";
import { type Transaction, payeeIn } from "../words.ts";
import { ChargedState } from "./charged.tsx";
import { More, usePages } from "./list.tsx";
import { Empty, Waiting, When, Written } from "./parts.tsx";
import { Failed } from "./problem.tsx";
import { Table } from "./table.tsx";
import { RAILS } from "../rails.ts";

interface ListProps {
  readonly filters: Omit<Filters, "open">;
  /** Filters in the API's form. */
  readonly query: Query;
  readonly hidesAgent?: boolean;
}

/** Transactions, newest first, as far as they were scrolled. */
export function TransactionList({ filters, hidesAgent = false, query }: ListProps): ReactElement {
  const pages = usePages(["transactions", "list", query], (cursor, options) =>
    api.listTransactions({ query: { ...query, ...cursor, limit: 50 } }, options),
  );
  const cells = useCallback(
    (each: Transaction) => <Cells transaction={each} filters={filters} hidesAgent={hidesAgent} />,
    [JSON.stringify(filters), hidesAgent],
  );
  const navigate = useNavigate();
  const open = useCallback(
    ({ id }: Transaction) => void navigate({ to: "/transactions", search: { ...filters, open: id } }),
    [navigate, JSON.stringify(filters)],
  );
  if (pages.data === undefined)
    return pages.error === null ? (
      <Waiting lines={8} />
    ) : (
      <Failed error={pages.error} retry={() => void pages.refetch()} />
    );
  const transactions = pages.data.pages.flatMap((page) => page.transactions);
  if (transactions.length === 0) {
    return pages.hasNextPage ? (
      <>
        <Waiting lines={8} />
        <More {...pages} />
      </>
    ) : (
      <Empty icon="list" title="No transactions here">
        {Object.keys(filters).length > (hidesAgent ? 1 : 0)
          ? "Nothing fits these filters."
          : "Every payment that an agent asks for shows here."}
      </Empty>
    );
  }
  return (
    <>
      <Table
        items={transactions}
        keyOf={({ id }) => id}
        columns={hidesAgent ? 5 : 6}
        cells={cells}
        onOpen={open}
        head={
          <>
            <th>To</th>
            <th>State</th>
            {hidesAgent ? null : <th>Agent</th>}
            <th>Purpose</th>
            <th>When</th>
            <th className="right">Amount</th>
          </>
        }
      />
      <More {...pages} />
    </>
  );
}

interface CellsProps extends Omit<ListProps, "query"> {
  readonly transaction: Transaction;
}

function Cells({ filters, hidesAgent = false, transaction: each }: CellsProps): ReactElement {
  return (
    <>
      <td className="main">
        <Link to="/transactions" search={{ ...filters, open: each.id }} className="row-link clamp">
          <Written text={payeeIn(each)} />
        </Link>
        <Text size="xs" c="dimmed" className="inline">
          <Icon name={RAILS[each.rail].icon} size={13} /> {RAILS[each.rail].label}
        </Text>
      </td>
      <td>
        <ChargedState transaction={each} />
      </td>
      {hidesAgent ? null : (
        <td>
          <Link to="/agents/$id" params={{ id: each.agentId }} className="row-link clamp">
            <Written text={each.agentName} />
          </Link>
        </td>
      )}
      <td className="wide purpose">
        <span className="clamp">
          <Written text={each.purpose} />
        </span>
      </td>
      <td>
        <When iso={each.createdAt} />
      </td>
      <td className="right">
        <span className="figure">{exactMoney(each)}</span>
      </td>
    </>
  );
}
