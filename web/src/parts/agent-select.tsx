import { Select } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQueries, useQuery } from "@tanstack/react-query";
import { type ReactElement, useState } from "react";
import { valueOf } from "../../../src/client/client.ts";
import { api } from "../api.ts";
import { OPTIONS_MAX } from "../containers.ts";
import { asWritten } from "../format.ts";

const TYPED_MS = 200;
const NAMES_FRESH_MS = 60_000;

const nameOf = (id: string) => ({
  queryKey: ["agents", "name", id],
  queryFn: async ({ signal }: { readonly signal: AbortSignal }) =>
    valueOf(await api.getAgent({ id }, { signal })).agent.name,
  staleTime: NAMES_FRESH_MS,
});

/** Names of some agents by their ids; a text of no length while one is not known. */
export function useAgentNames(ids: readonly string[]): (id: string) => string {
  const names = useQueries({ queries: ids.map(nameOf) });
  return (id) => names[ids.indexOf(id)]?.data ?? "";
}

interface SelectProps {
  readonly value: string | null;
  readonly onChange: (id: string | null) => void;
}

/** Chooses an agent, whom the service looks for: there may be thousands. */
export function AgentSelect({ onChange, value }: SelectProps): ReactElement {
  const [typed, setTyped] = useState("");
  const [debounced] = useDebouncedValue(typed.trim(), TYPED_MS);
  const chosenName = useAgentNames(value === null ? [] : [value])(value ?? "");
  // What is shown of the one that was chosen is not looked for.
  const name = debounced === asWritten(chosenName) ? "" : debounced;
  const { data: found = [] } = useQuery({
    queryKey: ["agents", "found", name],
    queryFn: async ({ signal }) =>
      valueOf(
        await api.listAgents({ query: { limit: OPTIONS_MAX, ...(name === "" ? {} : { name }) } }, { signal }),
      ).agents,
    staleTime: NAMES_FRESH_MS,
    placeholderData: keepPreviousData,
  });
  const options = found.map((agent) => ({ value: agent.id, label: asWritten(agent.name) }));
  const isListed = value === null || options.some((option) => option.value === value);
  const chosen = value === null || isListed ? [] : [{ value, label: asWritten(chosenName) || "…" }];
  return (
    <Select
      aria-label="Agent"
      placeholder="Any agent"
      clearable
      searchable
      data={[...chosen, ...options]}
      filter={({ options: all }) => all}
      nothingFoundMessage="No such agent"
      onSearchChange={setTyped}
      value={value}
      onChange={onChange}
    />
  );
}
