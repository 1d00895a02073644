import { Button, Group, Stack } from "@mantine/core";
import { type ReactElement, type SyntheticEvent, useState } from "react";
import { Modal } from "./dialog.tsx";
import { useAction } from "../action.ts";
import { api } from "../api.ts";
import { readAmount } from "../format.ts";
import { AmountInput } from "./amount.tsx";
import { Problem } from "./problem.tsx";

interface FundWalletProps {
  readonly agentId: string;
  readonly onClose: () => void;
}

/** Asks how much test money an agent's wallet on the local chain gets. */
export function FundWallet({ agentId, onClose }: FundWalletProps): ReactElement {
  const [typed, setTyped] = useState("100");
  const [error, setError] = useState<string>();
  const fund = useAction(
    (amountCents: number) => api.fundAgentInSandbox({ id: agentId, body: { amountCents } }),
    { stale: [["agents", agentId, "wallet"]], fields: ["amountCents"] },
  );
  const submit = async (event: SyntheticEvent): Promise<void> => {
    event.preventDefault();
    const amount = readAmount(typed);
    setError(amount.ok ? undefined : amount.problem);
    if (amount.ok && (await fund.run(amount.cents)) !== null) onClose();
  };
  return (
    <Modal opened onClose={onClose} title="Add test money">
      <form onSubmit={(event) => void submit(event)} noValidate>
        <Stack>
          <Problem text={fund.problem} />
          <AmountInput
            label="Amount"
            description="Play money on the local chain. It is worth nothing."
            value={typed}
            error={error ?? fund.at("amountCents")}
            onChange={setTyped}
          />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={fund.isBusy}>
              Add
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
