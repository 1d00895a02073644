import { Select, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { type ReactElement, useState } from "react";
import { AUDIT_ACTIONS, actionLabel, actionsOn, RESOURCE_KINDS } from "../../../src/client/audit-actions.ts";
import { api } from "../api.ts";
import { kindLabel } from "../audit-names.tsx";
import type { AuditSearch, AuditSearchChange } from "../audit-search.ts";
import { firstOf, OPTIONS_MAX, useProjects, useTeams } from "../containers.ts";
import { asWritten } from "../format.ts";
import { type Option, TYPED_MS, useAgentNames, useFoundAgents } from "./agent-select.tsx";
import { DayFields, DaysNote, FilterBar } from "./filters.tsx";

interface FilterProps {
  readonly search: AuditSearch;
  readonly set: (change: AuditSearchChange) => void;
  readonly timezone: string;
}

/** Kinds of an organization's own records. */
const KINDS = Object.entries(RESOURCE_KINDS)
  .filter(([kind]) => kind !== "master_key" && kind !== "wallet_factory")
  .map(([value, label]) => ({ value, label }));

export function AuditFilters({ search, set, timezone }: FilterProps): ReactElement {
  const {
    action = null,
    actor = null,
    from = null,
    resource = null,
    resourceType = null,
    to = null,
  } = search;
  return (
    <>
      <FilterBar isPadded count={Object.keys(search).length}>
        <PersonSelect value={actor} onChange={(id) => set({ actor: id })} />
        <Select
          aria-label="Action"
          placeholder="Any action"
          clearable
          searchable
          nothingFoundMessage="No such action"
          data={actionOptions(resourceType)}
          value={action}
          onChange={(name) => set({ action: name })}
        />
        <Select
          aria-label="Kind of object"
          placeholder="Any object"
          clearable
          searchable
          data={KINDS}
          value={resourceType}
          onChange={(kind) => set({ resourceType: kind, resource: null, action: null })}
        />
        {resourceType === null ? null : (
          <ObjectSelect
            key={resourceType}
            kind={resourceType}
            value={resource}
            onChange={(id) => set({ resource: id })}
          />
        )}
        <DayFields from={from} to={to} onChange={set} />
      </FilterBar>
      <DaysNote timezone={timezone} px="lg" pb="xs" />
    </>
  );
}

/** Returns the options for actions, grouped by the kind of object. */
function actionOptions(kind: string | null) {
  const groups = KINDS.filter(({ value }) => kind === null || kind === value).map(({ label, value }) => ({
    group: label,
    // An action on several kinds is listed once, under its first kind.
    items: actionsOn(value)
      .filter((action) => kind !== null || AUDIT_ACTIONS[action].on[0] === value)
      .map((action) => ({ value: action, label: actionLabel(action) })),
  }));
  return groups.filter(({ items }) => items.length > 0);
}

interface SelectProps {
  readonly value: string | null;
  readonly onChange: (id: string | null) => void;
}

interface Records {
  readonly group: string;
  readonly options: readonly Option[];
}

interface RecordSelectProps extends SelectProps {
  readonly label: string;
  readonly placeholder: string;
  readonly records: readonly Records[];
  /** Whether agents can be chosen as well. The service searches for them, since there may be thousands. */
  readonly withAgents: boolean;
}

function RecordSelect(props: RecordSelectProps): ReactElement {
  const { label, onChange, placeholder, records, value, withAgents } = props;
  const [typed, setTyped] = useState("");
  const known = records.flatMap(({ options }) => options).find((option) => option.value === value);
  const unknown = value === null || known !== undefined ? [] : [value];
  const agentName = useAgentNames(withAgents ? unknown : []);
  const chosen = known ?? (value === null ? null : { value, label: asWritten(agentName(value)) || value });
  // The chosen record's own label is not a search.
  const sought = typed === chosen?.label ? "" : typed.trim();
  const [debounced] = useDebouncedValue(sought, TYPED_MS);
  const agents = useFoundAgents(debounced, withAgents);
  const fits = (option: Option): boolean => option.label.toLowerCase().includes(sought.toLowerCase());
  const found = [
    ...records.map(({ group, options }) => ({ group, items: options.filter(fits).slice(0, OPTIONS_MAX) })),
    { group: "Agents", items: [...agents] },
  ];
  const isFound = found.some(({ items }) => items.some((option) => option.value === chosen?.value));
  return (
    <Select
      aria-label={label}
      placeholder={placeholder}
      clearable
      searchable
      data={[
        ...(chosen === null || isFound ? [] : [{ group: "Chosen", items: [chosen] }]),
        ...found.filter(({ items }) => items.length > 0),
      ]}
      filter={({ options }) => options}
      nothingFoundMessage="Nothing of this name"
      onSearchChange={setTyped}
      value={value}
      onChange={onChange}
    />
  );
}

const NAMES_FRESH_MS = 60_000;

/** Reads the first thousand records of a list, with their names. */
const useNamed = <T extends { readonly id: string }>(
  queryKey: readonly string[],
  records: (signal: AbortSignal) => AsyncGenerator<T, void, undefined>,
  nameOf: (record: T) => string,
  enabled = true,
): readonly Option[] => {
  const { data = [] } = useQuery({
    queryKey: [...queryKey, "all"],
    queryFn: ({ signal }) => firstOf(records(signal)),
    staleTime: NAMES_FRESH_MS,
    enabled,
  });
  return optionsOf(data, nameOf);
};

const optionsOf = <T extends { readonly id: string }>(
  records: readonly T[],
  nameOf: (record: T) => string,
): readonly Option[] => records.map((record) => ({ value: record.id, label: asWritten(nameOf(record)) }));

const PAGE = { query: { limit: 200 } } as const;

const useMembers = (enabled = true): readonly Option[] =>
  useNamed(
    ["members"],
    (signal) => api.each("listMembers", PAGE, { signal }),
    ({ name }) => name,
    enabled,
  );
const useKeys = (enabled = true): readonly Option[] =>
  useNamed(
    ["organizationKeys"],
    (signal) => api.each("listOrganizationKeys", PAGE, { signal }),
    ({ last4, name }) => `${name} (…${last4})`,
    enabled,
  );

function PersonSelect(props: SelectProps): ReactElement {
  const records = [
    { group: "Members", options: useMembers() },
    { group: "Organization keys", options: useKeys() },
  ];
  return <RecordSelect {...props} label="Person" placeholder="Anybody" records={records} withAgents />;
}

interface ObjectProps extends SelectProps {
  readonly kind: string;
}

/** Picker for one record of a kind: by name, or by id if there is no list. */
function ObjectSelect({ kind, ...props }: ObjectProps): ReactElement | null {
  const is = (...kinds: readonly string[]): boolean => kinds.includes(kind);
  const members = useMembers(is("user"));
  const keys = useKeys(is("organization_key"));
  const webhooks = useNamed(
    ["webhooks"],
    (signal) => api.each("listWebhooks", PAGE, { signal }),
    ({ name }) => name,
    is("webhook_endpoint"),
  );
  const invites = useNamed(
    ["invites"],
    (signal) => api.each("listInvites", PAGE, { signal }),
    ({ email }) => email,
    is("invite"),
  );
  const { data: teams = [] } = useTeams();
  const { data: projects = [] } = useProjects();
  const lists: Readonly<Record<string, readonly Option[]>> = {
    agent: [],
    user: members,
    organization_key: keys,
    webhook_endpoint: webhooks,
    invite: invites,
    team: optionsOf(teams, ({ name }) => name),
    project: optionsOf(projects, ({ name }) => name),
  };
  const options = Object.hasOwn(lists, kind) ? lists[kind] : undefined;
  if (is("organization")) return null;
  if (options === undefined) return <IdInput {...props} />;
  const records = [{ group: kindLabel(kind), options }];
  return (
    <RecordSelect
      {...props}
      label="Object"
      placeholder={`Any ${kindLabel(kind).toLowerCase()}`}
      records={records}
      withAgents={is("agent")}
    />
  );
}

const ID = /^[A-Za-z0-9_-]{1,100}$/;

function IdInput({ onChange, value }: SelectProps): ReactElement {
  const [typed, setTyped] = useState(value ?? "");
  return (
    <TextInput
      aria-label="Object"
      placeholder="Any id"
      value={typed}
      error={typed === "" || ID.test(typed) ? undefined : "Letters, digits, - and _"}
      onChange={({ currentTarget }) => {
        const text = currentTarget.value.trim();
        setTyped(text);
        if (text === "" || ID.test(text)) onChange(text === "" ? null : text);
      }}
    />
  );
}
