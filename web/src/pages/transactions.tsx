import { Button, SegmentedControl, Select } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { addressOfFile } from "../../../src/client/client.ts";
import { useTimezone } from "../days.ts";
import { Icon } from "../icons.tsx";
import { AgentSelect } from "../parts/agent-select.tsx";
import {
  AmountFilter,
  DayFields,
  DaysNote,
  FilterBar,
  ProjectSelect,
  SearchField,
  TeamSelect,
} from "../parts/filters.tsx";
import { Card, Page, Waiting } from "../parts/parts.tsx";
import { SpendChart } from "../parts/spend-chart.tsx";
import { TransactionDrawer } from "../parts/transaction-drawer.tsx";
import { TransactionList } from "../parts/transaction-list.tsx";
import { type FilterChange, type Filters, filtersIn, RANGE, STATUS } from "../transaction-filters.ts";
import { searchOf } from "../transaction-query.ts";
import { RAIL_LIST } from "../rails.ts";

/** Statuses by which an export can be filtered. With any other filter the export contains all statuses. */
const EXPORTED = ["approved", "pending", "denied", "failed"] as const;

export function Transactions(): ReactElement {
  const timezone = useTimezone();
  return timezone === null ? <Waiting lines={8} /> : <Narrowed timezone={timezone} />;
}

function Narrowed({ timezone }: { readonly timezone: string }): ReactElement {
  const { open, ...filters } = useSearch({ from: "/app/transactions" });
  const navigate = useNavigate({ from: "/transactions" });
  const set = (change: FilterChange): void =>
    void navigate({ search: filtersIn({ ...filters, ...change }), replace: true });
  const { status, ...others } = filters;
  const exported = {
    ...searchOf(others, timezone),
    ...(EXPORTED.some((each) => each === status) ? { status } : {}),
    tz: timezone,
    bom: true,
  };
  return (
    <Page
      title="Transactions"
      about="Every payment that an agent requested, with its outcome."
      actions={
        <Button
          component="a"
          href={addressOfFile("exportTransactions", exported)}
          download
          variant="default"
          leftSection={<Icon name="download" />}
        >
          Export CSV
        </Button>
      }
    >
      <Narrow filters={filters} set={set} />
      {hasChart(filters) ? <SpendChart filters={others} /> : <DaysNote timezone={timezone} />}
      <Card flush>
        <TransactionList filters={filters} query={searchOf(filters, timezone)} />
      </Card>
      {open === undefined ? null : <TransactionDrawer id={open} onClose={() => set({ open: null })} />}
    </Page>
  );
}

/** Whether the chart of daily spending can show the same payments as the list. */
const hasChart = ({ search, status = "approved" }: Filters): boolean =>
  search === undefined && status === "approved";

interface FilterProps {
  readonly filters: Omit<Filters, "open">;
  readonly set: (change: FilterChange) => void;
}

function Narrow({ filters, set }: FilterProps): ReactElement {
  const hasDays = filters.from !== undefined || filters.to !== undefined;
  return (
    <FilterBar
      count={Object.keys(filters).filter((name) => name !== "search").length}
      search={
        <SearchField
          label="Search"
          placeholder="Merchant, purpose, amount or id"
          value={filters.search ?? ""}
          onChange={(search) => set({ search: search === "" ? null : search })}
        />
      }
    >
      <SegmentedControl
        aria-label="Time"
        value={hasDays ? "" : (filters.range ?? "all")}
        data={[
          { value: "7d", label: "7 days" },
          { value: "30d", label: "30 days" },
          { value: "90d", label: "90 days" },
          { value: "all", label: "All" },
        ]}
        onChange={(range) =>
          set({ range: RANGE.find((each) => each === range) ?? null, from: null, to: null })
        }
      />
      <Select
        aria-label="State"
        placeholder="Any state"
        clearable
        data={[
          { value: "approved", label: "Approved" },
          { value: "pending", label: "Pending" },
          { value: "denied", label: "Denied" },
          { value: "failed", label: "Failed" },
          { value: "reversed", label: "Reversed" },
          { value: "expired", label: "Expired" },
        ]}
        value={filters.status ?? null}
        onChange={(status) => set({ status: STATUS.find((each) => each === status) ?? null })}
      />
      <Select
        aria-label="Rail"
        placeholder="Any rail"
        clearable
        data={RAIL_LIST.map(({ label, value }) => ({ label, value }))}
        value={filters.type ?? null}
        onChange={(type) => set({ type: RAIL_LIST.find(({ value }) => value === type)?.value ?? null })}
      />
      <AgentSelect value={filters.agentId ?? null} onChange={(agentId) => set({ agentId })} />
      <TeamSelect value={filters.teamId ?? null} onChange={(teamId) => set({ teamId })} />
      <ProjectSelect value={filters.projectId ?? null} onChange={(projectId) => set({ projectId })} />
      <AmountFilter name="From" cents={filters.minCents ?? null} onChange={(minCents) => set({ minCents })} />
      <AmountFilter
        name="Up to"
        cents={filters.maxCents ?? null}
        onChange={(maxCents) => set({ maxCents })}
      />
      <DayFields
        from={filters.from ?? null}
        to={filters.to ?? null}
        onChange={(days) => set({ ...days, range: null })}
      />
    </FilterBar>
  );
}
