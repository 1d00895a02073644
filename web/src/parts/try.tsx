import { Button, List, NativeSelect, Stack, Table, Text } from "@mantine/core";
import { type ReactElement, useState } from "react";
import type { Answer, Output } from "../../../src/client/types.ts";
import { useAction } from "../action.ts";
import { dayOf, money, number } from "../format.ts";
import { shortFlagOf } from "../rule-types.tsx";
import { Modal } from "./dialog.tsx";
import { Waiting } from "./parts.tsx";
import { Problem } from "./problem.tsx";

type Simulation = Output<"simulateTeamBudget">;
type Side = Simulation["moves"][number]["from"];
export type Range = 7 | 30 | 90;

const RANGES: readonly { readonly value: Range; readonly label: string }[] = [
  { value: 7, label: "The last 7 days" },
  { value: 30, label: "The last 30 days" },
  { value: 90, label: "The last 90 days" },
];

const SIDES: Readonly<Record<Side, string>> = {
  approved: "Approved",
  held: "Held for a person",
  denied: "Denied",
};

const SHOWN_EXAMPLES = 20;

export type Simulated = Promise<Answer<Simulation>>;

interface TryProps {
  readonly isDisabled: boolean;
  /** Tries the typed change; null if it cannot be sent, in which case its fields say why. */
  readonly onTry: (range: Range) => Simulated | null;
}

/** Button that tries a change on past payments before it is saved. */
export function Try({ isDisabled, onTry }: TryProps): ReactElement {
  const [range, setRange] = useState<Range>(30);
  const [found, setFound] = useState<Simulation | null>(null);
  const [isOpen, setOpen] = useState(false);
  const action = useAction((asked: Simulated) => asked);
  const run = async (days: Range): Promise<void> => {
    const asked = onTry(days);
    if (asked === null) return;
    setRange(days);
    setFound(null);
    setOpen(true);
    setFound(await action.run(asked));
  };
  return (
    <>
      <Button variant="default" disabled={isDisabled || action.isBusy} onClick={() => void run(range)}>
        Try
      </Button>
      {isOpen ? (
        <Modal opened onClose={() => setOpen(false)} size="lg" title="What would have been different">
          <Stack>
            <NativeSelect
              label="Payments of"
              data={RANGES.map(({ label, value }) => ({ label, value: String(value) }))}
              value={String(range)}
              disabled={action.isBusy}
              onChange={({ currentTarget }) => void run(RANGES[currentTarget.selectedIndex]?.value ?? range)}
            />
            <Problem text={action.problem} />
            {action.isBusy ? <Waiting /> : null}
            {found === null ? null : <Found simulation={found} />}
          </Stack>
        </Modal>
      ) : null}
    </>
  );
}

function Found({ simulation }: { readonly simulation: Simulation }): ReactElement {
  const { assumptions, examples, moves, payments, unchanged } = simulation;
  return (
    <>
      <Text>
        {moves.length === 0
          ? `Nothing: all ${number(payments)} payments would have gone as they did.`
          : `${number(payments - unchanged)} of ${number(payments)} payments.`}
      </Text>
      {moves.length === 0 ? null : (
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Was</Table.Th>
              <Table.Th>Would have been</Table.Th>
              <Table.Th>Payments</Table.Th>
              <Table.Th>Amount</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {moves.map(({ cents, count, from, to }) => (
              <Table.Tr key={`${from} ${to}`}>
                <Table.Td>{SIDES[from]}</Table.Td>
                <Table.Td>{SIDES[to]}</Table.Td>
                <Table.Td>{number(count)}</Table.Td>
                <Table.Td>{money(cents)}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
      {examples.length === 0 ? null : (
        <List size="sm" listStyleType="none">
          {examples.slice(0, SHOWN_EXAMPLES).map((example) => (
            <List.Item key={example.transactionId}>
              {dayOf(example.createdAt)} · {example.recipient} · {money(example.amountCents)}:{" "}
              {SIDES[example.from]} → {SIDES[example.to]}
              {whyOf(example)}
            </List.Item>
          ))}
        </List>
      )}
      <Text size="xs" c="dimmed">
        Assumed: {assumptions.join(" ")}
      </Text>
    </>
  );
}

function whyOf({ denialCode, flaggedByRuleTypes, to }: Simulation["examples"][number]): string {
  if (to === "denied" && denialCode !== null) return ` (${denialCode})`;
  return flaggedByRuleTypes.length === 0 ? "" : ` (${flaggedByRuleTypes.map(shortFlagOf).join(", ")})`;
}
