import { Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { valueOf } from "../../../src/client/client.ts";
import type { Output } from "../../../src/client/types.ts";
import { api } from "../api.ts";
import { type Approval, payeeIn } from "../words.ts";
import { BarLegend, BudgetBar, Money, State, When, Written } from "./parts.tsx";

type Level = Output<"getApprovalContext">["agent"];

const useContext = (approval: Approval, isSeen = true) =>
  useQuery({
    enabled: isSeen,
    queryKey: ["context", approval.id],
    staleTime: 30_000,
    queryFn: async ({ signal }) => valueOf(await api.getApprovalContext({ id: approval.id }, { signal })),
  });

/** Whether the contents above a decision's buttons are read or cannot be read. After that nothing moves the buttons. */
export function useIsContextSettled(approval: Approval): boolean {
  const { failureCount, isPending } = useContext(approval);
  // A decision does not wait for a read that is currently refused.
  return !isPending || failureCount > 0;
}

interface BarsProps {
  readonly approval: Approval;
  /** Set to false to stop reading while off screen. */
  readonly isSeen?: boolean;
}

/**
 * Bars of what a payment leaves of its agent's, team's and project's money. The payment's own amount is already
 * reserved.
 */
export function ApprovalBars({ approval, isSeen = true }: BarsProps): ReactElement {
  const { data } = useContext(approval, isSeen);
  const { budgetContext } = approval;
  // Until the context is read, the agent's budget at the time of the request is shown.
  const agent = data?.agent ?? {
    limitCents: budgetContext.budgetCents,
    spentCents: budgetContext.spentCents,
    reservedCents: budgetContext.reservedCents,
  };
  return (
    <Stack gap="sm" className="approval-bars">
      <LevelBar label="The agent’s budget" level={agent} amountCents={approval.amountCents} />
      <LevelBar label={capOf("team", data?.team)} level={data?.team} amountCents={approval.amountCents} />
      <LevelBar
        label={capOf("project", data?.project)}
        level={data?.project}
        amountCents={approval.amountCents}
      />
      <BarLegend parts={{ spent: "Spent", reserved: "Reserved", more: "This payment" }} />
    </Stack>
  );
}

/** Returns the label of a level. Without a cap, only its usage is shown. */
const capOf = (container: "project" | "team", level: Level | undefined): string =>
  level?.limitCents === null ? `The ${container}` : `The ${container}’s cap`;

interface LevelProps {
  readonly label: string;
  readonly level: Pick<Level, "limitCents" | "reservedCents" | "spentCents"> | undefined;
  readonly amountCents: number;
}

function LevelBar({ amountCents, label, level }: LevelProps): ReactElement {
  if (level === undefined) return <div className="bar bar-empty" aria-hidden="true" />;
  return (
    <BudgetBar
      label={label}
      limitCents={level.limitCents}
      spentCents={level.spentCents}
      reservedCents={Math.max(0, level.reservedCents - amountCents)}
      moreCents={Math.min(amountCents, level.reservedCents)}
    />
  );
}

const SHOWN = 3;

interface LastProps extends BarsProps {
  readonly shown?: number;
}

/** Last payments in a list. Their space is reserved before they are read, so that no button moves under the cursor. */
export const LastPaymentsInList = (props: BarsProps): ReactElement => (
  <div className="last-place">
    <LastPayments {...props} />
  </div>
);

/** The agent's last payments, for comparison. */
export function LastPayments({ approval, isSeen = true, shown = SHOWN }: LastProps): ReactElement | null {
  const { data } = useContext(approval, isSeen);
  if (data === undefined || data.lastPayments.length === 0) return null;
  return (
    <div className="last">
      <Text size="xs" c="dimmed" fw={550}>
        Latest payments of the agent
      </Text>
      <ul>
        {data.lastPayments.slice(0, shown).map((payment) => (
          <li key={payment.id}>
            <span className="last-to">
              <Written text={payeeIn(payment)} />
            </span>
            <State of={payment.status} />
            <span className="muted">
              <When iso={payment.createdAt} />
            </span>
            <Money cents={payment.amountCents} currency={payment.currency} />
          </li>
        ))}
      </ul>
    </div>
  );
}
