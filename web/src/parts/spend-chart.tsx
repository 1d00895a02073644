import { Select, Text } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { type ReactElement, useState } from "react";
import { valueOf } from "../../../src/client/client.ts";
import type { Output } from "../../../src/client/types.ts";
import { api } from "../api.ts";
import { useNames } from "../containers.ts";
import { countOfDays, daysAfter, todayIn, useTimezone } from "../days.ts";
import { asWritten, dayOf, money, shortMoney, titled } from "../format.ts";
import type { Filters } from "../transaction-filters.ts";
import { queryOf } from "../transaction-query.ts";
import { useAgentNames } from "./agent-select.tsx";
import { Card, Waiting } from "./parts.tsx";
import { Failed } from "./problem.tsx";

type Day = Output<"summarizeTransactions">["days"][number];
const GROUPS = ["agent", "team", "rail"] as const;
type Group = (typeof GROUPS)[number];

const DAYS = { "7d": 7, "30d": 30, "90d": 90, all: 30 } as const;
const DAYS_MAX = 90;
const SERIES_MAX = 5;
/** Maximum responses for a chart. Each contains as many days as can be read in its time. */
const ANSWERS_MAX = 8;

/** Returns the number of days in a chart, up to `DAYS_MAX`, and the last day. */
function periodOf(
  { from, range, to }: Filters,
  today: string,
): { readonly count: number; readonly last: string } {
  const last = to === undefined || to > today ? today : to;
  if (from === undefined) return { count: DAYS[range ?? "all"], last };
  return { count: Math.min(Math.max(countOfDays(from, last), 1), DAYS_MAX), last };
}

const periodName = ({ from, to }: Filters, count: number): string => {
  const days = count === 1 ? "one day" : `${String(count)} days`;
  return from === undefined && to === undefined ? `the last ${days}` : days;
};

interface ChartProps {
  readonly filters: Omit<Filters, "open" | "search" | "status">;
  readonly height?: number;
}

export function SpendChart({ height = 190, ...props }: ChartProps): ReactElement {
  const timezone = useTimezone();
  if (timezone === null) return <Waiting lines={1} height={height} />;
  return <Chart {...props} height={height} timezone={timezone} />;
}

function Chart({
  filters,
  height,
  timezone,
}: Required<ChartProps> & { readonly timezone: string }): ReactElement {
  const [group, setGroup] = useState<Group>("agent");
  const { count, last } = periodOf(filters, todayIn(timezone));
  const first = daysAfter(last, 1 - count);
  const from = filters.from !== undefined && filters.from > first ? filters.from : first;
  const { data, error, isPending } = useQuery({
    queryKey: ["spend", { ...filters, from }, timezone, group],
    queryFn: async ({ client, queryKey, signal }): Promise<Spend> => {
      const days: Day[] = [];
      const isFirst = client.getQueryData(queryKey) === undefined;
      let before: string | undefined;
      for (let answers = 0; answers < ANSWERS_MAX; answers += 1) {
        const shown = { ...filters, from, range: "all" } as const;
        const query = { ...queryOf(shown, timezone), status: "spent", groupBy: group, tz: timezone } as const;
        const page = valueOf(
          await api.summarizeTransactions(
            { query: { ...query, ...(before === undefined ? {} : { before }) } },
            { signal },
          ),
        );
        days.push(...page.days);
        if (page.nextBefore === null) break;
        before = page.nextBefore;
        // Millions of payments take several responses. The newest days are shown in the meantime.
        if (isFirst) client.setQueryData<Spend>(queryKey, { days: [...days], isComplete: false });
      }
      return { days, isComplete: true };
    },
  });
  const choose = (
    <Select
      aria-label="Group by"
      size="xs"
      w={120}
      allowDeselect={false}
      data={GROUPS.map((value) => ({ value, label: `By ${value}` }))}
      value={group}
      onChange={(value) => setGroup(GROUPS.find((each) => each === value) ?? "agent")}
    />
  );
  return (
    <Card
      title="Spend"
      about={`What was charged in ${periodName(filters, count)}, less what came back. Days are those of ${timezone}.`}
      actions={choose}
    >
      {isPending ? <Waiting lines={1} height={height} /> : null}
      {error === null ? null : <Failed error={error} />}
      {data === undefined ? null : (
        <Bars {...data} group={group} count={count} last={last} timezone={timezone} height={height} />
      )}
    </Card>
  );
}

interface Spend {
  /** Newest first. */
  readonly days: readonly Day[];
  /** Whether no older days are left to read. */
  readonly isComplete: boolean;
}

interface BarsProps extends Spend {
  readonly group: Group;
  readonly count: number;
  readonly last: string;
  readonly timezone: string;
  readonly height: number;
}

/** Width until the chart is measured. */
const WIDTH = 900;
const AXIS = 56;
const FOOT = 22;

/** Returns the keys with the highest spend. The others are shown together. */
function seriesOf(days: readonly Day[]): readonly string[] {
  const sums = new Map<string, number>();
  for (const { groups } of days) {
    for (const { amountCents, group } of groups) sums.set(group, (sums.get(group) ?? 0) + amountCents);
  }
  return [...sums]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, SERIES_MAX)
    .map(([key]) => key);
}

/** Returns the sums of a day's series, and of all others. */
function partsOf({ amountCents, groups }: Day, series: readonly string[]): readonly number[] {
  const parts = series.map((key) => groups.find((each) => each.group === key)?.amountCents ?? 0);
  return [...parts, parts.reduce((rest, cents) => rest - cents, amountCents)];
}

const extentOf = (parts: readonly number[]) => ({
  above: parts.reduce((sum, cents) => sum + Math.max(0, cents), 0),
  below: parts.reduce((sum, cents) => sum + Math.min(0, cents), 0),
});

/** Returns a round amount that is at least `cents`. */
function ceilingOf(cents: number): number {
  const step = 10 ** Math.floor(Math.log10(Math.max(cents, 1)));
  return [1, 2, 2.5, 5, 10].map((factor) => factor * step).find((each) => each >= cents) ?? cents;
}

function Bars({ count, days, group, height, isComplete, last, timezone }: BarsProps): ReactElement {
  const series = seriesOf(days);
  const nameOf = useSeriesNames(group, series);
  const total = days.reduce((sum, { amountCents }) => sum + amountCents, 0);
  const byDay = new Map(days.map((day) => [day.day, day]));
  const shown = Array.from({ length: count }, (_none, index) => daysAfter(last, index - count + 1));
  const extents = days.map((day) => extentOf(partsOf(day, series)));
  const top = ceilingOf(Math.max(0, ...extents.map(({ above }) => above)));
  // On some days more was refunded than charged.
  const bottom = Math.min(0, ...extents.map(({ below }) => below));
  const { ref, width: measured } = useElementSize();
  const width = measured === 0 ? WIDTH : measured;
  const step = (width - AXIS) / count;
  const y = (cents: number): number => ((height - FOOT) * (top - cents)) / (top - bottom);
  if (days.every(({ amountCents }) => amountCents === 0)) {
    if (!isComplete) return <Waiting lines={1} height={height} />;
    return (
      <Text size="sm" c="dimmed" ta="center" py="xl">
        Nothing was spent in this period.
      </Text>
    );
  }
  return (
    <figure ref={ref} className="chart">
      <svg
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={`${money(total)} in ${count} days`}
      >
        {[0, 0.5, 1].map((part) => (
          <g key={part} className="chart-line">
            <line x1={AXIS} x2={width} y1={y(top * part) + 1} y2={y(top * part) + 1} />
            <text x={AXIS - 8} y={y(top * part) + (part === 1 ? 12 : 4)} textAnchor="end">
              {shortMoney(top * part)}
            </text>
          </g>
        ))}
        {shown.map((iso, index) => (
          <Column
            key={iso}
            day={byDay.get(iso)}
            iso={iso}
            series={series}
            nameOf={nameOf}
            x={AXIS + index * step}
            width={Math.min(step * 0.72, 34)}
            y={y}
          />
        ))}
        <text className="chart-day" x={AXIS} y={height - 4}>
          {dayOf(`${shown[0] ?? ""}T12:00:00`)}
        </text>
        <text className="chart-day" x={width} y={height - 4} textAnchor="end">
          {last === todayIn(timezone) ? "Today" : dayOf(`${last}T12:00:00`)}
        </text>
      </svg>
      <figcaption>
        <ul className="legend">
          {series.map((key, index) => (
            <li key={key}>
              <span className={`swatch series-${index}`} aria-hidden="true" />
              {nameOf(key)}
            </li>
          ))}
          <li className="legend-total figure">
            {money(total)} {isComplete ? "total" : "so far…"}
          </li>
        </ul>
      </figcaption>
    </figure>
  );
}

interface ColumnProps {
  readonly day: Day | undefined;
  readonly iso: string;
  readonly series: readonly string[];
  readonly nameOf: (key: string) => string;
  readonly x: number;
  readonly width: number;
  readonly y: (cents: number) => number;
}

function Column({ day, iso, nameOf, series, width, x, y }: ColumnProps): ReactElement | null {
  if (day === undefined) return null;
  const parts = partsOf(day, series);
  let [above, below] = [0, 0];
  const labels = series.flatMap((key, index) => {
    const cents = parts[index] ?? 0;
    return cents === 0 ? [] : [`${nameOf(key)}: ${money(cents)}`];
  });
  return (
    <g>
      <title>{[`${dayOf(`${iso}T12:00:00`)}: ${money(day.amountCents)}`, ...labels].join("\n")}</title>
      {parts.map((cents, index) => {
        if (cents === 0) return null;
        if (cents > 0) above += cents;
        else below += cents;
        const [from, to] = cents > 0 ? [above - cents, above] : [below, below - cents];
        return (
          <rect
            key={series[index] ?? "rest"}
            className={`series-${index < series.length ? index : "rest"}`}
            x={x}
            y={y(to)}
            width={width}
            height={Math.max(0, y(from) - y(to))}
          />
        );
      })}
    </g>
  );
}

function useSeriesNames(group: Group, series: readonly string[]): (key: string) => string {
  const names = useNames();
  const agentName = useAgentNames(group === "agent" ? series : []);
  return (key) => {
    if (group === "rail") return titled(key);
    const name = group === "team" ? names.team(key) : agentName(key);
    return name === "" ? `${key.slice(0, 8)}…` : asWritten(name);
  };
}
