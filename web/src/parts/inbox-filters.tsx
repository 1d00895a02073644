import { SegmentedControl, Select } from "@mantine/core";
import type { ReactElement } from "react";
import type { InboxChange, InboxSearch } from "../inbox-search.ts";
import { shortFlagOf } from "../rule-types.tsx";
import type { Approval } from "../words.ts";
import { AgentSelect } from "./agent-select.tsx";
import { AmountFilter, FilterBar, TeamSelect } from "./filters.tsx";

interface FilterProps {
  readonly search: InboxSearch;
  readonly set: (change: InboxChange) => void;
  readonly approvals: readonly Approval[];
}

export function InboxFilters({ approvals, search, set }: FilterProps): ReactElement {
  const { agentId = null, reason = null, sort = "newest", teamId = null, view = "cards" } = search;
  const reasons = new Set(approvals.flatMap(({ flaggedByRuleTypes }) => flaggedByRuleTypes));
  if (reason !== null) reasons.add(reason);
  return (
    <FilterBar count={Object.keys(search).filter((name) => name !== "view" && name !== "sort").length}>
      <AgentSelect value={agentId} onChange={(id) => set({ agentId: id })} />
      <TeamSelect value={teamId} onChange={(id) => set({ teamId: id })} />
      <Select
        aria-label="Reason"
        placeholder="Any reason"
        clearable
        data={[...reasons].map((type) => ({ value: type, label: shortFlagOf(type) }))}
        value={reason}
        onChange={(type) => set({ reason: type })}
      />
      <AmountFilter name="From" cents={search.minCents ?? null} onChange={(minCents) => set({ minCents })} />
      <AmountFilter name="Up to" cents={search.maxCents ?? null} onChange={(maxCents) => set({ maxCents })} />
      <Select
        aria-label="Order"
        allowDeselect={false}
        data={[
          { value: "newest", label: "Newest first" },
          { value: "deadline", label: "Deadline first" },
          { value: "amount", label: "Largest first" },
        ]}
        value={sort}
        onChange={(value) => set({ sort: value === "deadline" || value === "amount" ? value : null })}
      />
      <SegmentedControl
        aria-label="View"
        value={view}
        data={[
          { value: "cards", label: "Cards" },
          { value: "compact", label: "Compact" },
        ]}
        onChange={(value) => set({ view: value === "compact" ? value : null })}
      />
    </FilterBar>
  );
}
