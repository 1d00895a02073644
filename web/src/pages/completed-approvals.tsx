import { Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { api } from "../api.ts";
import { More, usePages } from "../parts/list.tsx";
import { Card, Empty, Money, State, Waiting, When, Written } from "../parts/parts.tsx";
import { Failed } from "../parts/problem.tsx";
import { Table } from "../parts/table.tsx";
import { type Approval, payeeOf } from "../words.ts";

export function CompletedApprovals(): ReactElement {
  const pages = usePages(["approvals", "completed"], (cursor, options) =>
    api.listCompletedApprovals({ query: { ...cursor, limit: 50 } }, options),
  );
  if (pages.data === undefined)
    return pages.error === null ? (
      <Waiting />
    ) : (
      <Failed error={pages.error} retry={() => void pages.refetch()} />
    );
  const approvals = pages.data.pages.flatMap((page) => page.approvals);
  return (
    <Card flush>
      {approvals.length === 0 ? (
        <Empty icon="inbox" title="No decisions yet">
          Each decision appears here, with who made it and the feedback that the agent received.
        </Empty>
      ) : (
        <Table
          items={approvals}
          keyOf={({ id }) => id}
          columns={6}
          cells={cellsOf}
          head={
            <>
              <th>To</th>
              <th>Resolution</th>
              <th>By</th>
              <th>Feedback to the agent</th>
              <th>When</th>
              <th className="right">Amount</th>
            </>
          }
        />
      )}
      <More {...pages} />
    </Card>
  );
}

function cellsOf(approval: Approval): ReactElement {
  const { feedback, resolvedBy } = approval;
  return (
    <>
      <td className="main">
        <Link to="/approvals/$id" params={{ id: approval.id }} className="row-link clamp">
          <Written text={payeeOf(approval)} />
        </Link>
        <Text size="xs" c="dimmed">
          <Written text={approval.agentName} />
        </Text>
      </td>
      <td>
        <State of={approval.resolution ?? "pending"} />
      </td>
      <td className="away">
        {resolvedBy === null || resolvedBy === undefined ? (
          <span className="muted">Nobody</span>
        ) : (
          <Written text={resolvedBy.name} />
        )}
      </td>
      <td className="wide purpose">
        <span className="clamp">{feedback ? <Written text={feedback} /> : null}</span>
      </td>
      <td>
        <When iso={approval.resolvedAt ?? approval.createdAt} />
      </td>
      <td className="right">
        <Money cents={approval.amountCents} currency={approval.currency} />
      </td>
    </>
  );
}
