import { Button, Group, Stack } from "@mantine/core";
import { type ReactElement, type SyntheticEvent, useState } from "react";
import { Modal } from "./dialog.tsx";
import { useAction } from "../action.ts";
import { api } from "../api.ts";
import { readAmount } from "../format.ts";
import { AmountInput } from "./amount.tsx";
import { Problem } from "./problem.tsx";

export type FundedFrom = "test money" | "treasury";

interface FundWalletProps {
  readonly agentId: string;
  readonly from: FundedFrom;
  readonly onClose: () => void;
}

const TEXTS = {
  "test money": {
    title: "Add test money",
    description: "Play money on the local chain. It is worth nothing.",
  },
  treasury: {
    title: "Fund from the treasury",
    description: "Goes from your organization’s treasury to the agent’s wallet.",
  },
} as const satisfies Record<FundedFrom, object>;

export function FundWallet({ agentId, from, onClose }: FundWalletProps): ReactElement {
  const [typed, setTyped] = useState("100");
  const [error, setError] = useState<string>();
  // Keeps a second click, or a retry after a lost response, from moving money again.
  const [keyed, setKeyed] = useState(() => crypto.randomUUID());
  const options = { stale: [["agents", agentId, "wallet"]], fields: ["amountCents"] };
  const mint = useAction(
    (amountCents: number) => api.fundAgentInSandbox({ id: agentId, body: { amountCents } }),
    options,
  );
  const move = useAction(
    (amountCents: number) =>
      api.fundAgent({
        id: agentId,
        body: { amountCents, idempotencyKey: `${keyed}/${String(amountCents)}` },
      }),
    options,
  );
  const fund = from === "treasury" ? move : mint;
  const submit = async (event: SyntheticEvent): Promise<void> => {
    event.preventDefault();
    const amount = readAmount(typed);
    setError(amount.ok ? undefined : amount.problem);
    if (!amount.ok) return;
    if (from === "test money") {
      if ((await mint.run(amount.cents)) !== null) onClose();
      return;
    }
    const answer = await move.run(amount.cents);
    if (answer === null) return;
    if (answer.funding.status !== "failed") {
      onClose();
      return;
    }
    setError(answer.funding.failureReason ?? "Nothing was moved.");
    setKeyed(crypto.randomUUID());
  };
  const { description, title } = TEXTS[from];
  return (
    <Modal opened onClose={onClose} title={title}>
      <form onSubmit={(event) => void submit(event)} noValidate>
        <Stack>
          <Problem text={fund.problem} />
          <AmountInput
            label="Amount"
            description={description}
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
