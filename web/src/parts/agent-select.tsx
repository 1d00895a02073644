import { MultiSelect, Select } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQueries, useQuery } from "@tanstack/react-query";
import { type ReactElement, useState } from "react";
import { valueOf } from "../../../src/client/client.ts";
import { api } from "../api.ts";
import { OPTIONS_MAX } from "../containers.ts";
import { asWritten } from "../format.ts";

/** Pause in typing before a search. */
export const TYPED_MS = 200;
const NAMES_FRESH_MS = 60_000;

const nameOf = (id: string) => ({
  queryKey: ["agents", "name", id],
  queryFn: async ({ signal }: { readonly signal: AbortSignal }) =>
    valueOf(await api.getAgent({ id }, { signal })).agent.name,
  staleTime: NAMES_FRESH_MS,
});

/** Returns agents' names by id; empty while unknown. */
export function useAgentNames(ids: readonly string[]): (id: string) => string {
  const names = useQueries({ queries: ids.map(nameOf) });
  return (id) => names[ids.indexOf(id)]?.data ?? "";
}

export interface Option {
  readonly value: string;
  readonly label: string;
}

/** Searches for agents whose names contain the text. The service searches, since there may be thousands. */
export function useFoundAgents(typed: string, enabled = true): readonly Option[] {
  const { data: found = [] } = useQuery({
    enabled,
    queryKey: ["agents", "found", typed],
    queryFn: async ({ signal }) =>
      valueOf(
        await api.listAgents(
          { query: { limit: OPTIONS_MAX, ...(typed === "" ? {} : { name: typed }) } },
          { signal },
        ),
      ).agents,
    staleTime: NAMES_FRESH_MS,
    placeholderData: keepPreviousData,
  });
  return found.map((agent) => ({ value: agent.id, label: asWritten(agent.name) }));
}

/** Puts chosen agents that this search did not find before the others. */
const withChosen = (
  options: readonly Option[],
  chosen: readonly string[],
  nameOfId: (id: string) => string,
): Option[] => [
  ...chosen
    .filter((id) => !options.some(({ value }) => value === id))
    .map((id) => ({ value: id, label: asWritten(nameOfId(id)) || "…" })),
  ...options,
];

interface SelectProps {
  readonly value: string | null;
  readonly onChange: (id: string | null) => void;
}

/** Select for one agent. The service searches, since there may be thousands. */
export function AgentSelect({ onChange, value }: SelectProps): ReactElement {
  const [typed, setTyped] = useState("");
  const [debounced] = useDebouncedValue(typed.trim(), TYPED_MS);
  const chosen = value === null ? [] : [value];
  const nameOfId = useAgentNames(chosen);
  // The chosen agent's own name is not a search.
  const options = useFoundAgents(debounced === asWritten(nameOfId(value ?? "")) ? "" : debounced);
  return (
    <Select
      aria-label="Agent"
      placeholder="Any agent"
      clearable
      searchable
      data={withChosen(options, chosen, nameOfId)}
      filter={({ options: all }) => all}
      nothingFoundMessage="No such agent"
      onSearchChange={setTyped}
      value={value}
      onChange={onChange}
    />
  );
}

interface MultiSelectProps {
  readonly value: readonly string[];
  readonly onChange: (ids: string[]) => void;
  readonly error: string | undefined;
}

export function AgentsSelect({ error, onChange, value }: MultiSelectProps): ReactElement {
  const [typed, setTyped] = useState("");
  const [debounced] = useDebouncedValue(typed.trim(), TYPED_MS);
  const nameOfId = useAgentNames(value);
  return (
    <MultiSelect
      aria-label="Chosen agents"
      placeholder="Choose agents"
      searchable
      hidePickedOptions
      data={withChosen(useFoundAgents(debounced), value, nameOfId)}
      filter={({ options: all }) => all}
      nothingFoundMessage={typed.trim() === "" ? "No other agent" : "No such agent"}
      onSearchChange={setTyped}
      value={[...value]}
      onChange={onChange}
      error={error}
    />
  );
}
