import { Button, Group, Stack, Text } from "@mantine/core";
import { type ReactElement, type SyntheticEvent, useState } from "react";
import type { Answer, Output } from "../../../src/client/types.ts";
import { useAction } from "../action.ts";
import { api } from "../api.ts";
import { money, onTheWall, readAmount, typedOf } from "../format.ts";
import { AmountInput } from "./amount.tsx";
import { BudgetBar, Card } from "./parts.tsx";
import { Problem } from "./problem.tsx";
import { type Range, type Simulated, Try } from "./try.tsx";

type Used = Output<"getAgentBudgetPolicy">["spendLimits"][number];
type Increase = Output<"getAgentBudgetPolicy">["usage"]["increases"][number];
type Limit = Pick<Used, "period" | "limitCents">;
type Period = Used["period"];

const PERIODS: readonly { readonly period: Period; readonly label: string }[] = [
  { period: "day", label: "Per day" },
  { period: "week", label: "Per week" },
  { period: "month", label: "Per month" },
  { period: "quarter", label: "Per quarter" },
  { period: "year", label: "Per year" },
];
const LIMITS_MAX = 4;

const STALE = [["agents"], ["budgets"]] as const;

interface LevelProps {
  readonly id: string;
  readonly isReadOnly: boolean;
}

export const AgentSpendLimits = ({
  id,
  isReadOnly,
  policy,
}: LevelProps & { readonly policy: Output<"getAgentBudgetPolicy"> }): ReactElement => (
  <SpendLimits
    of="this agent"
    limits={policy.spendLimits}
    increases={policy.usage.increases}
    isReadOnly={isReadOnly}
    write={(spendLimits) =>
      api.updateAgentBudgetPolicy({ id, body: { spendLimits, version: policy.version } })
    }
    simulate={(spendLimits, range) => api.simulateAgentBudgetPolicy({ id, body: { spendLimits, range } })}
  />
);

/** Limits by period for all agents of a team together. */
export const TeamSpendLimits = ({
  budget: { agents, capCents, spendLimits: limits, usage, version },
  id,
  isReadOnly,
}: LevelProps & { readonly budget: Output<"getTeamBudget"> }): ReactElement => (
  <SpendLimits
    of="all agents of this team together"
    limits={limits}
    increases={usage.increases}
    isReadOnly={isReadOnly}
    write={(spendLimits) => api.setTeamBudget({ id, body: { agents, capCents, spendLimits, version } })}
    simulate={(spendLimits, range) =>
      api.simulateTeamBudget({ id, body: { agents, capCents, spendLimits, range } })
    }
  />
);

/** Limits by period for all agents of a project together. */
export const ProjectSpendLimits = ({
  budget: { capCents, spendLimits: limits, teams, usage, version },
  id,
  isReadOnly,
}: LevelProps & { readonly budget: Output<"getProjectBudget"> }): ReactElement => (
  <SpendLimits
    of="all agents of this project together"
    limits={limits}
    increases={usage.increases}
    isReadOnly={isReadOnly}
    write={(spendLimits) => api.setProjectBudget({ id, body: { capCents, spendLimits, teams, version } })}
    simulate={(spendLimits, range) =>
      api.simulateProjectBudget({ id, body: { capCents, spendLimits, teams, range } })
    }
  />
);

interface SpendLimitsProps {
  /** Level whose payments count, in words. */
  readonly of: string;
  readonly limits: readonly Used[];
  readonly increases: readonly Increase[];
  readonly isReadOnly: boolean;
  readonly write: (limits: Limit[]) => Promise<Answer<unknown>>;
  readonly simulate: (limits: Limit[], range: Range) => Simulated;
}

type Typed = Readonly<Partial<Record<Period, string>>>;

const typedLimits = (limits: readonly Used[]): Typed =>
  Object.fromEntries(limits.map(({ limitCents, period }) => [period, typedOf(limitCents)]));

/** Bars of limits by period, each with its reset time, and their editor. */
function SpendLimits({ increases, isReadOnly, limits, of, simulate, write }: SpendLimitsProps): ReactElement {
  // Null: nothing was typed since the limits in force were read.
  const [typed, setTyped] = useState<Typed | null>(null);
  const [errors, setErrors] = useState<Typed>({});
  const save = useAction(write, { stale: STALE, fields: ["spendLimits"] });
  const shown = typed ?? typedLimits(limits);
  const filled = PERIODS.filter(({ period }) => (shown[period] ?? "").trim() !== "");
  /** Returns the typed limits; null if a field has a problem, which it shows. */
  const readAll = (): Limit[] | null => {
    const read = filled.map(({ period }) => ({ period, amount: readAmount(shown[period] ?? "") }));
    const problems = read.flatMap(({ amount, period }) => (amount.ok ? [] : [[period, amount.problem]]));
    setErrors(Object.fromEntries(problems));
    if (problems.length > 0) return null;
    return read.flatMap(({ amount, period }) => (amount.ok ? [{ period, limitCents: amount.cents }] : []));
  };
  const submit = async (event: SyntheticEvent): Promise<void> => {
    event.preventDefault();
    const sent = readAll();
    if (sent !== null && (await save.run(sent)) !== null) setTyped(null);
  };
  return (
    <Card title="Limits by period" about={`What ${of} may spend before the period begins anew.`}>
      <Stack>
        {limits.map(({ limitCents, period, resetsAt, usedCents }) => (
          <div key={period}>
            <BudgetBar
              label={labelOf(period)}
              limitCents={raisedBy(increases, period).reduce((sum, { cents }) => sum + cents, limitCents)}
              spentCents={usedCents}
              reservedCents={0}
            />
            <Text size="xs" c="dimmed">
              Begins anew <time dateTime={resetsAt}>{onTheWall(resetsAt)}</time>
              {raisedBy(increases, period).map(({ cents, endsAt, id }) => (
                <span key={id}>
                  {" · "}
                  {money(cents)} more until <time dateTime={endsAt}>{onTheWall(endsAt)}</time>
                </span>
              ))}
            </Text>
          </div>
        ))}
        {isReadOnly ? (
          limits.length === 0 ? (
            <Text size="sm" c="dimmed">
              None.
            </Text>
          ) : null
        ) : (
          <form onSubmit={(event) => void submit(event)} noValidate>
            <Stack>
              <Problem text={save.at("spendLimits") ?? save.problem} />
              <div className="fields">
                {PERIODS.map(({ label, period }) => (
                  <AmountInput
                    key={period}
                    label={label}
                    placeholder="No limit"
                    value={shown[period] ?? ""}
                    error={errors[period]}
                    disabled={filled.length >= LIMITS_MAX && (shown[period] ?? "") === ""}
                    onChange={(text) => setTyped({ ...shown, [period]: text })}
                  />
                ))}
              </div>
              <Text size="xs" c="dimmed">
                At most {LIMITS_MAX}. Periods follow the project’s calendar; what was spent before a limit was
                set counts.
              </Text>
              <Group justify="flex-end">
                <Button
                  variant="default"
                  disabled={typed === null || save.isBusy}
                  onClick={() => setTyped(null)}
                >
                  Discard changes
                </Button>
                <Try
                  isDisabled={false}
                  onTry={(range) => {
                    const sent = readAll();
                    return sent === null ? null : simulate(sent, range);
                  }}
                />
                <Button type="submit" disabled={typed === null} loading={save.isBusy}>
                  Save limits
                </Button>
              </Group>
            </Stack>
          </form>
        )}
      </Stack>
    </Card>
  );
}

const raisedBy = (increases: readonly Increase[], period: Period): readonly Increase[] =>
  increases.filter(({ limit }) => limit === period);

const labelOf = (period: Period): string => (period === "day" ? "Today" : `This ${period}`);
