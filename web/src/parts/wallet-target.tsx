import { Button, Group, Stack } from "@mantine/core";
import { type ReactElement, type SyntheticEvent, useState } from "react";
import { useAction } from "../action.ts";
import { api } from "../api.ts";
import { money, readAmount, typedOf } from "../format.ts";
import type { Policy } from "../words.ts";
import { AmountInput } from "./amount.tsx";
import { Card, Fact, Facts } from "./parts.tsx";
import { Problem } from "./problem.tsx";

interface WalletTargetProps {
  readonly agentId: string;
  readonly policy: Policy;
  readonly isReadOnly: boolean;
}

/** Balance at which the treasury keeps an agent's wallet. */
export function WalletTarget({ agentId, isReadOnly, policy }: WalletTargetProps): ReactElement {
  const { version, walletTargetCents: target } = policy;
  const [typed, setTyped] = useState(typedOf(target));
  const [error, setError] = useState<string>();
  const save = useAction(
    (walletTargetCents: number | null) =>
      api.updateAgentBudgetPolicy({ id: agentId, body: { version, walletTargetCents } }),
    { stale: [["agents"]], fields: ["walletTargetCents"] },
  );
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    const amount = typed.trim() === "" ? null : readAmount(typed);
    setError(amount === null || amount.ok ? undefined : amount.problem);
    if (amount === null) void save.run(null);
    else if (amount.ok) void save.run(amount.cents);
  };
  return (
    <Card title="Wallet" about="Funded from your organization’s treasury.">
      <Stack>
        <Facts>
          <Fact label="Kept at">{target === null ? "Not kept" : money(target)}</Fact>
        </Facts>
        {isReadOnly ? null : (
          <form onSubmit={submit} noValidate>
            <Stack>
              <Problem text={save.problem} />
              <AmountInput
                label="Keep the wallet at"
                description="Empty: it is funded by hand."
                value={typed}
                error={error ?? save.at("walletTargetCents")}
                onChange={setTyped}
              />
              <Group justify="flex-end">
                <Button type="submit" variant="default" loading={save.isBusy}>
                  Set target
                </Button>
              </Group>
            </Stack>
          </form>
        )}
      </Stack>
    </Card>
  );
}
