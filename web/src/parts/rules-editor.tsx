import { ActionIcon, Alert, Button, Group, Menu, Stack, Switch, Text } from "@mantine/core";
import { type ReactElement, useState } from "react";
import type { Refused } from "../../../src/client/types.ts";
import { Icon } from "../icons.tsx";
import { KINDS, newRule, RuleFields, sentenceOfRule } from "../rule-types.tsx";
import { type Draft, draftsOf, type Rule, sentOf, type SentRules } from "../rules.ts";
import { Card, Empty } from "./parts.tsx";
import { Problem } from "./problem.tsx";

interface Rules {
  readonly rules: readonly Rule[];
  readonly version: number;
}

interface EditorProps {
  readonly current: Rules;
  readonly what: string;
  readonly isReadOnly: boolean;
  readonly isBusy: boolean;
  readonly refused: Refused | null;
  readonly problem: string;
  /** Answers what is in force then; null: it was refused. */
  readonly onSave: (rules: SentRules, version: number) => Promise<Rules | null>;
  readonly onReload: () => void;
}

const same = (one: readonly Draft[], other: readonly Draft[]): boolean =>
  JSON.stringify(one) === JSON.stringify(other);

/** Which payments wait for a person: the whole of a container's rules, replaced at once. */
export function RulesEditor(props: EditorProps): ReactElement {
  const { current, isBusy, isReadOnly, onReload, onSave, problem, refused, what } = props;
  const [base, setBase] = useState(current);
  const [drafts, setDrafts] = useState(() => draftsOf(current.rules));
  const isChanged = !same(drafts, draftsOf(base.rules));
  const begin = (rules: Rules): void => {
    setBase(rules);
    setDrafts(draftsOf(rules.rules));
  };
  // What nobody is editing shows what is in force now.
  if (!isChanged && base.version < current.version) begin(current);
  const change = (draft: Draft): void =>
    setDrafts(drafts.map((each) => (each.key === draft.key ? draft : each)));
  const save = async (): Promise<void> => {
    const saved = await onSave(sentOf(drafts), base.version);
    if (saved !== null) begin(saved);
  };
  const isStale = refused?.code === "STALE_APPROVAL_RULES";
  const add = isReadOnly ? undefined : (
    <Menu>
      <Menu.Target>
        <Button variant="default" leftSection={<Icon name="plus" />}>
          Add a rule
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {KINDS.map(({ label, value }) => (
          <Menu.Item key={value} onClick={() => setDrafts([...drafts, newRule(value)])}>
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
  return (
    <Card
      title="Approval rules"
      about={`Besides each agent’s own threshold: which payments of ${what} wait for a person.`}
      actions={add}
    >
      <Stack>
        {isStale ? (
          <Alert color="yellow" variant="light" role="alert" icon={<Icon name="alert" />}>
            <Group justify="space-between">
              <Text size="sm">Somebody else has changed these rules meanwhile.</Text>
              <Button
                size="compact-sm"
                variant="default"
                onClick={() => {
                  begin(current);
                  onReload();
                }}
              >
                Show theirs
              </Button>
            </Group>
          </Alert>
        ) : (
          <Problem text={problem} />
        )}
        {drafts.length === 0 ? (
          <Empty icon="shield" title="No rules">
            Only what is above an agent’s own threshold waits for a person.
          </Empty>
        ) : null}
        {drafts.map((draft) => (
          <div key={draft.key} className="rule" data-off={!draft.enabled}>
            <div className="rule-head">
              <Text size="sm">{sentenceOfRule(draft)}</Text>
              <Group gap="xs" wrap="nowrap">
                <Switch
                  size="sm"
                  aria-label={`In force: ${sentenceOfRule(draft)}`}
                  checked={draft.enabled}
                  disabled={isReadOnly}
                  onChange={({ currentTarget }) => change({ ...draft, enabled: currentTarget.checked })}
                />
                {isReadOnly ? null : (
                  <ActionIcon
                    variant="subtle"
                    color="gray"
                    aria-label={`Remove: ${sentenceOfRule(draft)}`}
                    onClick={() => setDrafts(drafts.filter(({ key }) => key !== draft.key))}
                  >
                    <Icon name="trash" size={16} />
                  </ActionIcon>
                )}
              </Group>
            </div>
            {isReadOnly ? null : <RuleFields rule={draft} onChange={change} />}
          </div>
        ))}
        {isReadOnly ? null : (
          <Group justify="flex-end">
            <Button variant="default" disabled={!isChanged || isBusy} onClick={() => begin(current)}>
              Undo
            </Button>
            <Button disabled={!isChanged} loading={isBusy} onClick={() => void save()}>
              Save
            </Button>
          </Group>
        )}
      </Stack>
    </Card>
  );
}
