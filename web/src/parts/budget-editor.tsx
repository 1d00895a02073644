import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { type ReactElement, type SyntheticEvent, useMemo, useState } from "react";
import type { Refused } from "../../../src/client/types.ts";
import { money, readAmount, typedOf } from "../format.ts";
import { Icon } from "../icons.tsx";
import { AmountInput } from "./amount.tsx";
import { BudgetRows, type ChildNames } from "./budget-rows.tsx";
import { BudgetBar, Card } from "./parts.tsx";
import { Problem } from "./problem.tsx";
import { type Range, type Simulated, Try } from "./try.tsx";

export interface BudgetChild {
  readonly id: string;
  /** Null for no cap. */
  readonly cents: number | null;
}

export interface Budget {
  readonly capCents: number | null;
  readonly version: number;
  readonly usage: { readonly spentCents: number; readonly reservedCents: number };
  readonly children: readonly BudgetChild[];
}

interface EditorProps {
  readonly about: string;
  readonly budget: Budget;
  readonly mayClear: boolean;
  readonly childLabel: string;
  readonly names: ChildNames;
  readonly isReadOnly: boolean;
  readonly isBusy: boolean;
  readonly refused: Refused | null;
  readonly problem: string;
  /** Saves the whole budget. Returns the budget then in force; null if it was refused. */
  readonly onSave: (
    capCents: number | null,
    children: ReadonlyMap<string, number | null>,
    version: number,
  ) => Promise<Budget | null>;
  readonly onTry: (
    capCents: number | null,
    children: ReadonlyMap<string, number | null>,
    range: Range,
  ) => Simulated;
  readonly onReload: () => void;
}

type Typed = Readonly<Record<string, string>>;

const CAP = "cap";

const typedBudget = ({ capCents, children }: Budget): Typed => ({
  [CAP]: typedOf(capCents),
  ...Object.fromEntries(children.map(({ cents, id }) => [id, typedOf(cents)])),
});

const STALE_CODES: readonly Refused["code"][] = [
  "STALE_BUDGET",
  "BUDGET_CHILDREN_INCOMPLETE",
  "BUDGET_CHILD_UNKNOWN",
];

/** Editor of a whole budget: the cap, and the share of each child. */
export function BudgetEditor(props: EditorProps): ReactElement {
  const { about, budget, childLabel, isBusy, isReadOnly, mayClear, names, onReload, onSave, onTry } = props;
  const { problem, refused } = props;
  const [base, setBase] = useState(budget);
  const [typed, setTyped] = useState(() => typedBudget(budget));
  const [errors, setErrors] = useState<Typed>({});
  const start = useMemo(() => typedBudget(base), [base]);
  const isChanged = Object.keys(typed).some((key) => typed[key] !== start[key]);
  // A field without edits shows the value in force.
  if (!isChanged && base.version < budget.version) {
    setBase(budget);
    setTyped(typedBudget(budget));
  }
  const reset = (): void => {
    setBase(budget);
    setTyped(typedBudget(budget));
    setErrors({});
  };
  const read = (key: string, isOptional: boolean, problems: Record<string, string>): number | null => {
    const text = (typed[key] ?? "").trim();
    if (text === "" && isOptional) return null;
    const amount = readAmount(text);
    if (amount.ok) return amount.cents;
    problems[key] = amount.problem;
    return null;
  };
  /** Returns the typed budget; null if a field has a problem, which it shows. */
  const readAll = () => {
    const problems: Record<string, string> = {};
    const cap = read(CAP, true, problems);
    const children = new Map(base.children.map(({ id }) => [id, read(id, mayClear, problems)]));
    setErrors(problems);
    if (Object.keys(problems).length === 0) return { cap, children };
    // Clears the filter, which may hide the invalid field.
    names.onTyped("");
    return null;
  };
  const submit = async (event: SyntheticEvent): Promise<void> => {
    event.preventDefault();
    const whole = readAll();
    if (whole === null) return;
    const sent = typed;
    const saved = await onSave(whole.cap, whole.children, base.version);
    if (saved === null) return;
    setBase(saved);
    // Keeps text typed after sending, as a change of the saved values.
    setTyped((now) => {
      const since = Object.entries(now).filter(([key, text]) => text !== sent[key]);
      return { ...typedBudget(saved), ...Object.fromEntries(since) };
    });
  };
  const isStale = refused !== null && STALE_CODES.includes(refused.code);
  const set = (key: string) => (value: string) => setTyped((now) => ({ ...now, [key]: value }));
  const centsNow = ({ cents, id }: BudgetChild): number => {
    const text = typed[id] ?? "";
    if (text === start[id]) return cents ?? 0;
    const amount = readAmount(text);
    return amount.ok ? amount.cents : 0;
  };
  const total = base.children.reduce((sum, child) => sum + centsNow(child), 0);
  return (
    <Card title="Budget" about={about}>
      <form onSubmit={(event) => void submit(event)} noValidate>
        <Stack>
          <BudgetBar
            label="Used"
            limitCents={budget.capCents}
            spentCents={budget.usage.spentCents}
            reservedCents={budget.usage.reservedCents}
          />
          {isStale ? (
            <Alert color="yellow" variant="light" role="alert" icon={<Icon name="alert" />}>
              <Group justify="space-between">
                <Text size="sm">
                  Somebody else has changed this budget, or what is in it, in the meantime.
                </Text>
                <Button
                  size="compact-sm"
                  variant="default"
                  onClick={() => {
                    reset();
                    onReload();
                  }}
                >
                  Show theirs
                </Button>
              </Group>
            </Alert>
          ) : (
            <Problem text={problem} />
          )}
          <AmountInput
            label="Cap"
            description="What all agents below it may reserve and spend together. Empty: no cap."
            placeholder="No cap"
            value={typed[CAP] ?? ""}
            error={errors[CAP]}
            disabled={isReadOnly}
            onChange={set(CAP)}
          />
          {base.children.length === 0 ? null : (
            <div className="budget-rows" role="group" aria-label={childLabel}>
              <Text size="sm" fw={550}>
                {childLabel}
              </Text>
              <BudgetRows
                ids={base.children.map(({ id }) => id)}
                names={names}
                values={typed}
                problems={errors}
                placeholder={mayClear ? "No cap" : ""}
                isReadOnly={isReadOnly}
                onChange={(id, value) => set(id)(value)}
              />
              <Text size="xs" c="dimmed">
                Total {money(total)}. They may add up to more than the cap, which binds on its own.
              </Text>
            </div>
          )}
          {isReadOnly ? null : (
            <Group justify="flex-end">
              <Button variant="default" disabled={!isChanged || isBusy} onClick={reset}>
                Discard changes
              </Button>
              <Try
                isDisabled={false}
                onTry={(range) => {
                  const whole = readAll();
                  return whole === null ? null : onTry(whole.cap, whole.children, range);
                }}
              />
              <Button type="submit" disabled={!isChanged} loading={isBusy}>
                Save
              </Button>
            </Group>
          )}
        </Stack>
      </form>
    </Card>
  );
}
