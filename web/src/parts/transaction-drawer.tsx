import { Drawer, Group, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { valueOf } from "../../../src/client/client.ts";
import { api } from "../api.ts";
import { money, number, onTheWall, titled } from "../format.ts";
import type { Transaction } from "../words.ts";
import { Fact, Facts, State, Waiting, Written } from "./parts.tsx";
import { Failed } from "./problem.tsx";
import { CopyIcon } from "./secret.tsx";

/** One transaction with its story. */
export function TransactionDrawer({
  id,
  onClose,
}: {
  readonly id: string;
  readonly onClose: () => void;
}): ReactElement {
  const { data, error, isPending } = useQuery({
    queryKey: ["transactions", "one", id],
    queryFn: async ({ signal }) => valueOf(await api.getTransaction({ id }, { signal })).transaction,
  });
  return (
    <Drawer opened onClose={onClose} position="right" size="md" title="Transaction">
      {isPending ? <Waiting /> : null}
      {error === null ? null : <Failed error={error} />}
      {data === undefined ? null : <Story transaction={data} />}
    </Drawer>
  );
}

function Story({ transaction }: { readonly transaction: Transaction }): ReactElement {
  const { denialDetails, onChainTxHash } = transaction;
  return (
    <Stack>
      <div>
        <div className="approval-amount figure">{money(transaction.amountCents, transaction.currency)}</div>
        <Group gap="xs" mt={6}>
          <State of={transaction.status} />
          <span className="muted">{titled(transaction.rail)}</span>
        </Group>
      </div>
      <Facts>
        <Fact label="To">
          <Written text={transaction.merchant} />
        </Fact>
        <Fact label="Purpose, in the agent’s words">
          <Written text={transaction.purpose} />
        </Fact>
        <Fact label="Agent">
          <Link to="/agents/$id" params={{ id: transaction.agentId }} className="row-link">
            <Written text={transaction.agentName} />
          </Link>
        </Fact>
        <Fact label="Asked at">{onTheWall(transaction.createdAt)}</Fact>
        {transaction.denialReason === null ? null : (
          <Fact label="Why not">
            {transaction.denialReason} <span className="mono muted">{transaction.denialCode}</span>
          </Fact>
        )}
        {denialDetails === null ? null : (
          <Fact label="The limit">
            {number(denialDetails.limit)}, of which {number(denialDetails.remaining)} was left
            {denialDetails.resetsAt === null
              ? ""
              : `; it begins anew at ${onTheWall(denialDetails.resetsAt)}`}
          </Fact>
        )}
        {onChainTxHash === null ? null : (
          <Fact label={`On chain ${transaction.chainCaip2 ?? ""}`}>
            <span className="mono">{onChainTxHash}</span>{" "}
            <CopyIcon text={onChainTxHash} label="Copy the hash" />
          </Fact>
        )}
        <Fact label="Id">
          <span className="mono">{transaction.id}</span>{" "}
          <CopyIcon text={transaction.id} label="Copy the id" />
        </Fact>
      </Facts>
    </Stack>
  );
}
