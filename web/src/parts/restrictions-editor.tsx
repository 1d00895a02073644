import {
  Alert,
  Button,
  Chip,
  Group,
  Input,
  MultiSelect,
  Stack,
  Switch,
  TagsInput,
  Text,
} from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactElement, useState } from "react";
import { valueOf } from "../../../src/client/client.ts";
import type { Answer, Output } from "../../../src/client/types.ts";
import { useAction } from "../action.ts";
import { api, sentenceOf } from "../api.ts";
import { OPTIONS_MAX } from "../containers.ts";
import { Icon } from "../icons.tsx";
import { categoryNamed, categoryOptions } from "../merchant-categories.ts";
import { RAIL_LIST } from "../rails.ts";
import { restrictionSentences } from "../restrictions.ts";
import { Card, Waiting } from "./parts.tsx";
import { Failed, Problem } from "./problem.tsx";
import { type Range, type Simulated, Try } from "./try.tsx";

type Restrictions = Output<"getTeamRestrictions">;
type Level = "project" | "team" | "agent";

interface Calls {
  readonly read: (id: string, signal: AbortSignal) => Promise<Answer<Restrictions>>;
  readonly write: (id: string, body: Restrictions) => Promise<Answer<Restrictions>>;
  readonly simulate: (
    id: string,
    body: Omit<Restrictions, "version"> & { readonly range: Range },
  ) => Simulated;
}

const CALLS: Readonly<Record<Level, Calls>> = {
  project: {
    read: (id, signal) => api.getProjectRestrictions({ id }, { signal }),
    write: (id, body) => api.setProjectRestrictions({ id, body }),
    simulate: (id, body) => api.simulateProjectRestrictions({ id, body }),
  },
  team: {
    read: (id, signal) => api.getTeamRestrictions({ id }, { signal }),
    write: (id, body) => api.setTeamRestrictions({ id, body }),
    simulate: (id, body) => api.simulateTeamRestrictions({ id, body }),
  },
  agent: {
    read: (id, signal) => api.getAgentRestrictions({ id }, { signal }),
    write: (id, body) => api.setAgentRestrictions({ id, body }),
    simulate: (id, body) => api.simulateAgentRestrictions({ id, body }),
  },
};

interface EditorProps {
  readonly id: string;
  readonly level: Level;
  readonly isReadOnly: boolean;
}

/** Returns a query key that starts like those made stale by changes of the level. */
const keyOf = (level: Level, id: string): readonly string[] =>
  level === "agent" ? ["agents", id, "restrictions"] : ["rules", "restrictions", level, id];

export function RestrictionsEditor({ id, isReadOnly, level }: EditorProps): ReactElement {
  const { data, error } = useQuery({
    queryKey: keyOf(level, id),
    queryFn: async ({ signal }) => valueOf(await CALLS[level].read(id, signal)),
  });
  if (data === undefined) return error === null ? <Waiting /> : <Failed error={error} />;
  return <Form id={id} level={level} isReadOnly={isReadOnly} current={data} />;
}

const same = (one: Restrictions, other: Restrictions): boolean =>
  JSON.stringify(one) === JSON.stringify(other);

function Form({
  current,
  id,
  isReadOnly,
  level,
}: EditorProps & { readonly current: Restrictions }): ReactElement {
  const client = useQueryClient();
  const [base, setBase] = useState(current);
  const [draft, setDraft] = useState(current);
  const save = useAction(CALLS[level].write, { stale: [keyOf(level, id)] });
  const begin = (now: Restrictions): void => {
    setBase(now);
    setDraft(now);
  };
  const isChanged = !same(draft, base);
  // Lists without edits show the values in force.
  if (!isChanged && base.version < current.version) begin(current);
  const send = async (): Promise<void> => {
    const saved = await save.run(id, draft);
    if (saved === null) return;
    setBase(saved);
    // Keeps edits made after sending, as changes of the saved lists.
    setDraft((now) => (now === draft ? saved : { ...now, version: saved.version }));
  };
  const isStale = save.refused?.code === "STALE_RESTRICTIONS";
  return (
    <Card
      title="Restrictions"
      about={`Payments of this ${level} that are denied, whatever a person would say.`}
    >
      <Stack>
        {isStale ? (
          <Alert color="yellow" variant="light" role="alert" icon={<Icon name="alert" />}>
            <Group justify="space-between">
              <Text size="sm">Somebody else has changed these restrictions in the meantime.</Text>
              <Button
                size="compact-sm"
                variant="default"
                onClick={() => {
                  begin(current);
                  save.clear();
                  void client.invalidateQueries({ queryKey: keyOf(level, id) });
                }}
              >
                Show theirs
              </Button>
            </Group>
          </Alert>
        ) : (
          <Problem text={save.refused === null ? "" : sentenceOf(save.refused, [])} />
        )}
        {restrictionSentences(draft, categoryNamed).map((text) => (
          <Text key={text} size="sm">
            {text}
          </Text>
        ))}
        {isReadOnly ? null : (
          <>
            <Fields draft={draft} onChange={setDraft} />
            <Group justify="flex-end">
              <Button variant="default" disabled={!isChanged || save.isBusy} onClick={() => begin(current)}>
                Discard changes
              </Button>
              <Try
                isDisabled={false}
                onTry={(range) => {
                  const { version: _version, ...lists } = draft;
                  return CALLS[level].simulate(id, { ...lists, range });
                }}
              />
              <Button disabled={!isChanged} loading={save.isBusy} onClick={() => void send()}>
                Save
              </Button>
            </Group>
          </>
        )}
      </Stack>
    </Card>
  );
}

interface FieldsProps {
  readonly draft: Restrictions;
  readonly onChange: (draft: Restrictions) => void;
}

/**
 * Returns null, which means no restriction, for an empty list of allowed entries. To allow nothing, an agent is paused.
 */
const listOrNull = <T,>(entries: T[]): T[] | null => (entries.length === 0 ? null : entries);

function Fields({ draft, onChange }: FieldsProps): ReactElement {
  const { merchantCategories, rails, recipients } = draft;
  const setRecipients = (change: Partial<typeof recipients>): void =>
    onChange({ ...draft, recipients: { ...recipients, ...change } });
  const setCategories = (change: Partial<typeof merchantCategories>): void =>
    onChange({ ...draft, merchantCategories: { ...merchantCategories, ...change } });
  return (
    <>
      <TagsInput
        label="Only these recipients"
        description="Names, addresses or hosts (host:api.example.com), one after another; empty: all"
        value={recipients.only ?? []}
        onChange={(entries) => setRecipients({ only: listOrNull(entries) })}
      />
      <TagsInput
        label="Never these recipients"
        value={recipients.never}
        onChange={(never) => setRecipients({ never })}
      />
      <Categories
        label="Only these merchant categories"
        value={merchantCategories.only ?? []}
        onChange={(entries) => setCategories({ only: listOrNull(entries) })}
      />
      <Categories
        label="Never these merchant categories"
        value={merchantCategories.never}
        onChange={(never) => setCategories({ never })}
      />
      <Switch
        label="Deny payments without a category"
        checked={merchantCategories.uncoded === "deny"}
        onChange={({ currentTarget }) => setCategories({ uncoded: currentTarget.checked ? "deny" : "allow" })}
      />
      <Input.Wrapper label="Only by" description="None chosen: all">
        <Chip.Group
          multiple
          value={rails.only ?? []}
          onChange={(values) => {
            const chosen = RAIL_LIST.flatMap(({ value }) => (values.includes(value) ? [value] : []));
            onChange({ ...draft, rails: { only: listOrNull(chosen) } });
          }}
        >
          <Group gap="xs">
            {RAIL_LIST.map(({ label, value }) => (
              <Chip key={value} value={value}>
                {label}
              </Chip>
            ))}
          </Group>
        </Chip.Group>
      </Input.Wrapper>
    </>
  );
}

interface CategoriesProps {
  readonly label: string;
  readonly value: readonly string[];
  readonly onChange: (codes: string[]) => void;
}

function Categories({ label, onChange, value }: CategoriesProps): ReactElement {
  const [search, setSearch] = useState("");
  return (
    <MultiSelect
      label={label}
      searchable
      searchValue={search}
      onSearchChange={setSearch}
      limit={OPTIONS_MAX}
      nothingFoundMessage="No such category. You can type a four-digit code."
      data={categoryOptions([...value, search])}
      value={[...value]}
      onChange={onChange}
    />
  );
}
