import { SegmentedControl, Select } from "@mantine/core";
import { type ReactElement, useState } from "react";
import { OPTIONS_MAX, useTeams } from "../containers.ts";
import { asWritten, readAmount, typedOf } from "../format.ts";
import type { InboxChange, InboxSearch } from "../inbox-search.ts";
import { shortFlagOf } from "../rule-types.tsx";
import type { Approval } from "../words.ts";
import { AgentSelect } from "./agent-select.tsx";
import { AmountInput } from "./amount.tsx";

interface FilterProps {
  readonly search: InboxSearch;
  readonly set: (change: InboxChange) => void;
  readonly approvals: readonly Approval[];
}

/** Filters, order and view of the inbox. */
export function InboxFilters({ approvals, search, set }: FilterProps): ReactElement {
  const { data: teams = [] } = useTeams();
  const { agentId = null, reason = null, sort = "newest", teamId = null, view = "cards" } = search;
  const reasons = new Set(approvals.flatMap(({ flaggedByRuleTypes }) => flaggedByRuleTypes));
  if (reason !== null) reasons.add(reason);
  return (
    <div className="filters">
      <AgentSelect value={agentId} onChange={(id) => set({ agentId: id })} />
      <Select
        aria-label="Team"
        placeholder="Any team"
        clearable
        searchable
        limit={OPTIONS_MAX}
        data={teams.map(({ id, name }) => ({ value: id, label: asWritten(name) }))}
        value={teamId}
        onChange={(id) => set({ teamId: id })}
      />
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
    </div>
  );
}

interface AmountFilterProps {
  readonly name: string;
  readonly cents: number | null;
  readonly onChange: (cents: number | null) => void;
}

/** A bound of the amount, in force as soon as it reads as one. */
function AmountFilter({ cents, name, onChange }: AmountFilterProps): ReactElement {
  const [typed, setTyped] = useState(() => typedOf(cents));
  const read = typed.trim() === "" ? null : readAmount(typed);
  return (
    <AmountInput
      label={name}
      ariaLabel={`Amount ${name.toLowerCase()}`}
      placeholder={name}
      value={typed}
      error={read?.ok === false ? read.problem : undefined}
      onChange={(text) => {
        setTyped(text);
        const now = text.trim() === "" ? null : readAmount(text);
        if (now === null || now.ok) onChange(now === null ? null : now.cents);
      }}
    />
  );
}
