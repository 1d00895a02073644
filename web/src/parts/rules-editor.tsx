import { ActionIcon, Alert, Button, Group, Menu, Stack, Switch, Text } from "@mantine/core";
import { type ReactElement, useState } from "react";
import type { Refused } from "../../../src/client/types.ts";
import { sentence, sentenceOf } from "../api.ts";
import { Icon } from "../icons.tsx";
import { useOrganization } from "../organization.ts";
import { KINDS, newRule, RuleFields, sentenceOfRule } from "../rule-types.tsx";
import { type Draft, draftsOf, isComplete, type Rule, sentOf, type SentRules } from "../rules.ts";
import { Card, Empty } from "./parts.tsx";
import { Problem } from "./problem.tsx";
import { type Range, type Simulated, Try } from "./try.tsx";

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
  /** Returns the rules then in force; null if they were refused. */
  readonly onSave: (rules: SentRules, version: number) => Promise<Rules | null>;
  readonly onTry: (rules: SentRules, range: Range) => Simulated;
  readonly onReload: () => void;
}

/**
 * Returns the drafts after `sent` was saved as `saved`, in the same order. A draft unchanged since sending becomes the
 * saved rule; a changed one gets the saved rule's id, so that it is not created again.
 */
const rebased = (now: readonly Draft[], sent: readonly Draft[], saved: readonly Draft[]): readonly Draft[] =>
  now.map((draft) => {
    const at = sent.findIndex(({ key }) => key === draft.key);
    const as = saved[at];
    if (as === undefined) return draft;
    // The key stays, so that a person typing in the row keeps the cursor.
    return sent[at] === draft ? { ...as, key: draft.key } : { ...draft, id: as.id };
  });

const same = (one: readonly Draft[], other: readonly Draft[]): boolean =>
  JSON.stringify(sentOf(one)) === JSON.stringify(sentOf(other));

/** Path of an issue shown at its field. */
const IN_A_RULE = /^rules\.[0-9]+\.params\./;

/** Editor of a container's rules, which are replaced as a whole. */
export function RulesEditor(props: EditorProps): ReactElement {
  const timezone = useOrganization().data?.timezone ?? null;
  const { current, isBusy, isReadOnly, onReload, onSave, onTry, refused, what } = props;
  const [base, setBase] = useState(current);
  const [drafts, setDrafts] = useState(() => draftsOf(current.rules));
  /** Key of the fields that keep typed text; a new round resets them. */
  const [round, setRound] = useState(0);
  /** Drafts sent last, whose positions a refusal refers to. */
  const [sent, setSent] = useState(drafts);
  const isChanged = !same(drafts, draftsOf(base.rules));
  const begin = (rules: Rules): void => {
    setBase(rules);
    setDrafts(draftsOf(rules.rules));
    setRound((now) => now + 1);
  };
  // Rules without edits show those in force.
  if (!isChanged && base.version < current.version) begin(current);
  const change = (draft: Draft): void =>
    setDrafts((now) => now.map((each) => (each.key === draft.key ? draft : each)));
  const save = async (): Promise<void> => {
    setSent(drafts);
    const saved = await onSave(sentOf(drafts), base.version);
    if (saved === null) return;
    setBase(saved);
    // Keeps edits made after sending, as changes of the saved rules.
    setDrafts((now) => rebased(now, drafts, draftsOf(saved.rules)));
  };
  const issues = refused?.issues ?? [];
  const problemAt = (draft: Draft) => (param: string) => {
    const path = `rules.${sent.indexOf(draft)}.params.${param}`;
    const found = issues.find((issue) => `${issue.path}.`.startsWith(`${path}.`));
    return found === undefined ? undefined : sentence(found.message);
  };
  const shown = issues.map(({ path }) => path).filter((path) => IN_A_RULE.test(path));
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
          <Menu.Item key={value} onClick={() => setDrafts((now) => [...now, newRule(value, timezone)])}>
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
  return (
    <Card
      title="Approval rules"
      about={`In addition to each agent’s own threshold: which payments of ${what} wait for approval.`}
      actions={add}
    >
      <Stack>
        {isStale ? (
          <Alert color="yellow" variant="light" role="alert" icon={<Icon name="alert" />}>
            <Group justify="space-between">
              <Text size="sm">Somebody else has changed these rules in the meantime.</Text>
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
          <Problem text={refused === null ? "" : sentenceOf(refused, shown)} />
        )}
        {drafts.length === 0 ? (
          <Empty icon="shield" title="No rules">
            Only payments above an agent’s own threshold wait for approval.
          </Empty>
        ) : null}
        {drafts.map((draft) => (
          <div key={draft.key} className="rule" data-off={!draft.enabled}>
            <div className="rule-head">
              <Text size="sm">{sentenceOfRule(draft)}</Text>
              <Group gap="xs" wrap="nowrap">
                <Switch
                  size="sm"
                  aria-label={`Enabled: ${sentenceOfRule(draft)}`}
                  checked={draft.enabled}
                  disabled={isReadOnly}
                  onChange={({ currentTarget }) => change({ ...draft, enabled: currentTarget.checked })}
                />
                {isReadOnly ? null : (
                  <ActionIcon
                    variant="subtle"
                    color="gray"
                    aria-label={`Remove: ${sentenceOfRule(draft)}`}
                    onClick={() => setDrafts((now) => now.filter(({ key }) => key !== draft.key))}
                  >
                    <Icon name="trash" size={16} />
                  </ActionIcon>
                )}
              </Group>
            </div>
            {draft.enabled ? null : (
              <Switch
                size="xs"
                label="Only tell what it would have held"
                checked={draft.shadow === true}
                disabled={isReadOnly}
                onChange={({ currentTarget }) => change({ ...draft, shadow: currentTarget.checked })}
              />
            )}
            {isReadOnly ? null : (
              <RuleFields key={round} rule={draft} onChange={change} problemAt={problemAt(draft)} />
            )}
          </div>
        ))}
        {isReadOnly ? null : (
          <Group justify="flex-end">
            <Button variant="default" disabled={!isChanged || isBusy} onClick={() => begin(current)}>
              Discard changes
            </Button>
            <Try isDisabled={!drafts.every(isComplete)} onTry={(range) => onTry(sentOf(drafts), range)} />
            <Button
              disabled={!isChanged || !drafts.every(isComplete)}
              loading={isBusy}
              onClick={() => void save()}
            >
              Save
            </Button>
          </Group>
        )}
      </Stack>
    </Card>
  );
}
