import { Button, SegmentedControl, Select } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { addressOfFile } from "../../../src/client/client.ts";
import { OPTIONS_MAX, useProjects, useTeams } from "../containers.ts";
import { Icon } from "../icons.tsx";
import { AgentSelect } from "../parts/agent-select.tsx";
import { Card, Page } from "../parts/parts.tsx";
import { SpendChart } from "../parts/spend-chart.tsx";
import { TransactionDrawer } from "../parts/transaction-drawer.tsx";
import { TransactionList } from "../parts/transaction-list.tsx";
import { type Filters, filtersIn } from "../transaction-filters.ts";
import { RAIL_LIST } from "../rails.ts";

const zone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Statuses that an export can be narrowed by; with another one it has all. */
const EXPORTED = ["approved", "pending", "denied", "failed"] as const;

/** All payments, narrowed by what stands in the address bar. */
export function Transactions(): ReactElement {
  const { open, ...filters } = useSearch({ from: "/app/transactions" });
  const navigate = useNavigate({ from: "/transactions" });
  const set = (change: Partial<Record<keyof Filters, string | null>>): void =>
    void navigate({ search: filtersIn({ ...filters, ...change }), replace: true });
  const { status, ...others } = filters;
  const exported = {
    ...others,
    ...(EXPORTED.some((each) => each === status) ? { status } : {}),
    tz: zone(),
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
      <FilterBar filters={filters} set={set} />
      <SpendChart filters={others} />
      <Card flush>
        <TransactionList filters={filters} />
      </Card>
      {open === undefined ? null : <TransactionDrawer id={open} onClose={() => set({ open: null })} />}
    </Page>
  );
}

interface FilterProps {
  readonly filters: Omit<Filters, "open">;
  readonly set: (change: Partial<Record<keyof Filters, string | null>>) => void;
}

function FilterBar({ filters, set }: FilterProps): ReactElement {
  const { data: teams = [] } = useTeams();
  const { data: projects = [] } = useProjects();
  return (
    <div className="filters">
      <SegmentedControl
        aria-label="Time"
        value={filters.range ?? "all"}
        data={[
          { value: "7d", label: "7 days" },
          { value: "30d", label: "30 days" },
          { value: "90d", label: "90 days" },
          { value: "all", label: "All" },
        ]}
        onChange={(range) => set({ range: range === "all" ? null : range })}
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
        onChange={(status) => set({ status })}
      />
      <Select
        aria-label="Rail"
        placeholder="Any rail"
        clearable
        data={RAIL_LIST.map(({ label, value }) => ({ label, value }))}
        value={filters.type ?? null}
        onChange={(type) => set({ type })}
      />
      <AgentSelect value={filters.agentId ?? null} onChange={(agentId) => set({ agentId })} />
      <Select
        aria-label="Team"
        placeholder="Any team"
        clearable
        searchable
        limit={OPTIONS_MAX}
        data={teams.map(({ id, name }) => ({ value: id, label: name }))}
        value={filters.teamId ?? null}
        onChange={(teamId) => set({ teamId })}
      />
      <Select
        aria-label="Project"
        placeholder="Any project"
        clearable
        searchable
        limit={OPTIONS_MAX}
        data={projects.map(({ id, name }) => ({ value: id, label: name }))}
        value={filters.projectId ?? null}
        onChange={(projectId) => set({ projectId })}
      />
    </div>
  );
}
