import { Stack } from "@mantine/core";
import type { ReactElement } from "react";
import type { Approval } from "../words.ts";
import { BudgetBar } from "./parts.tsx";

/** What a payment would leave of the budget, as it was when the agent asked: its own amount was reserved then. */
export function ApprovalBars({ approval }: { readonly approval: Approval }): ReactElement {
  const { amountCents, budgetContext } = approval;
  return (
    <Stack gap="sm" className="approval-bars">
      <BudgetBar
        label="The agent’s budget"
        limitCents={budgetContext.budgetCents}
        spentCents={budgetContext.spentCents}
        reservedCents={Math.max(0, budgetContext.reservedCents - amountCents)}
        moreCents={Math.min(amountCents, budgetContext.reservedCents)}
      />
    </Stack>
  );
}
