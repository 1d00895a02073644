import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactElement, type SyntheticEvent, useState } from "react";
import { valueOf } from "../../../src/client/client.ts";
import { changesOf, useAction } from "../action.ts";
import { api } from "../api.ts";
import { money, number } from "../format.ts";
import { Icon } from "../icons.tsx";
import { BudgetBar, Card, Fact, Facts, Waiting } from "../parts/parts.tsx";
import { PolicyFields } from "../parts/policy-fields.tsx";
import { Failed, Problem } from "../parts/problem.tsx";
import { AgentSpendLimits } from "../parts/spend-limits.tsx";
import { Try } from "../parts/try.tsx";
import { WalletTarget } from "../parts/wallet-target.tsx";
import { POLICY_FIELDS, type PolicyField, type PolicyValues, readPolicy, typedPolicy } from "../policy.ts";
import type { Policy } from "../words.ts";

interface EditorProps {
  readonly agentId: string;
  readonly isReadOnly: boolean;
  readonly hasWallet: boolean;
}

export function PolicyEditor({ agentId, hasWallet, isReadOnly }: EditorProps): ReactElement {
  const { data, error } = useQuery({
    queryKey: ["agents", agentId, "policy"],
    queryFn: async ({ signal }) => valueOf(await api.getAgentBudgetPolicy({ id: agentId }, { signal })),
  });
  if (data === undefined) return error === null ? <Waiting /> : <Failed error={error} />;
  return (
    <div className="columns">
      <Form agentId={agentId} current={data} isReadOnly={isReadOnly} />
      <Stack>
        <Now policy={data} />
        <AgentSpendLimits id={agentId} policy={data} isReadOnly={isReadOnly} />
        {hasWallet ? <WalletTarget agentId={agentId} policy={data} isReadOnly={isReadOnly} /> : null}
      </Stack>
    </div>
  );
}

function Now({ policy }: { readonly policy: Policy }): ReactElement {
  const { usage } = policy;
  return (
    <Card title="Used so far">
      <Stack>
        <BudgetBar
          label="Budget"
          limitCents={policy.budgetCents}
          spentCents={usage.spentCents}
          reservedCents={usage.reservedCents}
        />
        {policy.dailySpendLimitCents === null ? null : (
          <BudgetBar
            label="Today"
            limitCents={policy.dailySpendLimitCents}
            spentCents={usage.todayCents}
            reservedCents={0}
          />
        )}
        <Facts>
          <Fact label="Left">{money(usage.remainingCents)}</Fact>
          <Fact label="Payments in the last hour">{number(usage.lastHourCount)}</Fact>
          <Fact label="Payments today">{number(usage.todayCount)}</Fact>
        </Facts>
      </Stack>
    </Card>
  );
}

interface FormProps extends Omit<EditorProps, "hasWallet"> {
  readonly current: Policy;
}

/**
 * Form that starts from the version it was opened with. A version that somebody else saves meanwhile is not overwritten
 * silently.
 */
function Form({ agentId, current, isReadOnly }: FormProps): ReactElement {
  const client = useQueryClient();
  const [base, setBase] = useState(current);
  const [typed, setTyped] = useState(() => typedPolicy(current));
  const [errors, setErrors] = useState<Partial<Record<PolicyField, string>>>({});
  const [theirs, setTheirs] = useState<Policy | null>(null);
  const checkConflict = async (): Promise<void> => {
    const now = await api.getAgentBudgetPolicy({ id: agentId });
    if (now.ok) setTheirs(now.value);
  };
  const save = useAction(
    (changes: Partial<PolicyValues>, version: number) =>
      api.updateAgentBudgetPolicy({ id: agentId, body: { ...changes, version } }),
    {
      stale: [["agents"], ["budgets"]],
      fields: POLICY_FIELDS.map(({ name }) => name),
      onRefused: ({ code }) => code === "VERSION_CONFLICT" && void checkConflict(),
    },
  );
  const read = readPolicy(typed);
  const changes = read.ok ? changesOf<PolicyValues>(base, read.values) : {};
  const isChanged = !read.ok || Object.keys(changes).length > 0;
  // A field without edits shows the value in force.
  if (!isChanged && theirs === null && base.version < current.version) {
    setBase(current);
    setTyped(typedPolicy(current));
  }
  /** Starts from a saved policy. Text typed after sending is kept as a change of the saved values. */
  const begin = (policy: Policy, sent?: typeof typed): void => {
    setBase(policy);
    setTyped((now) => (sent === undefined || now === sent ? typedPolicy(policy) : now));
    setTheirs(null);
    setErrors({});
    save.clear();
  };
  const send = async (version: number): Promise<void> => {
    if (!read.ok) return setErrors(read.errors);
    setErrors({});
    const sent = typed;
    const saved = await save.run(changes, version);
    if (saved !== null) begin(saved, sent);
  };
  const isConflict = save.refused?.code === "VERSION_CONFLICT";
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    void send(base.version);
  };
  return (
    <Card title="Policy" about="Checked on every payment, in this order.">
      <form onSubmit={submit} noValidate>
        <Stack>
          {theirs === null ? <Problem text={isConflict ? "" : save.problem} /> : null}
          {theirs === null ? null : (
            <Conflict
              base={base}
              theirs={theirs}
              mine={read.ok ? read.values : base}
              isBusy={save.isBusy}
              onTheirs={() => {
                begin(theirs);
                void client.invalidateQueries({ queryKey: ["agents"] });
              }}
              onMine={() => {
                const { version } = theirs;
                setTheirs(null);
                void send(version);
              }}
            />
          )}
          <PolicyFields
            value={typed}
            onChange={setTyped}
            errors={{ ...fieldProblems(save.at), ...errors }}
            disabled={isReadOnly}
          />
          {isReadOnly ? (
            <Text size="sm" c="dimmed">
              Owners and admins change it.
            </Text>
          ) : (
            <Group justify="flex-end">
              <Button variant="default" disabled={!isChanged || save.isBusy} onClick={() => begin(current)}>
                Discard changes
              </Button>
              <Try
                isDisabled={theirs !== null}
                onTry={(range) => {
                  setErrors(read.ok ? {} : read.errors);
                  return read.ok
                    ? api.simulateAgentBudgetPolicy({ id: agentId, body: { ...changes, range } })
                    : null;
                }}
              />
              <Button type="submit" disabled={!isChanged || theirs !== null} loading={save.isBusy}>
                Save
              </Button>
            </Group>
          )}
        </Stack>
      </form>
    </Card>
  );
}

const fieldProblems = (
  at: (path: string) => string | undefined,
): Partial<Record<PolicyField, string | undefined>> =>
  Object.fromEntries(POLICY_FIELDS.map(({ name }) => [name, at(name)]));

interface ConflictProps {
  readonly base: PolicyValues;
  readonly theirs: Policy;
  readonly mine: PolicyValues;
  readonly isBusy: boolean;
  readonly onTheirs: () => void;
  readonly onMine: () => void;
}

const valueText = (kind: "amount" | "count", value: number | null, none: string | null): string =>
  value === null ? (none ?? "None") : kind === "amount" ? money(value) : number(value);

/** Another user has changed the policy since it was read here. A person chooses which version counts. */
function Conflict({ base, isBusy, mine, onMine, onTheirs, theirs }: ConflictProps): ReactElement {
  const shown = POLICY_FIELDS.filter(({ name }) => base[name] !== theirs[name] || base[name] !== mine[name]);
  return (
    <Alert
      color="yellow"
      icon={<Icon name="alert" />}
      title="Somebody else has changed this policy in the meantime"
      role="alert"
    >
      <Stack gap="sm">
        <table className="rows compare">
          <thead>
            <tr>
              <th>What</th>
              <th>Theirs, in force now</th>
              <th>Mine</th>
            </tr>
          </thead>
          <tbody>
            {shown.map(({ kind, label, name, none }) => {
              const isMine = base[name] !== mine[name];
              return (
                <tr key={name}>
                  <td>{label}</td>
                  <td>{valueText(kind, theirs[name], none)}</td>
                  <td>
                    {isMine ? (
                      <strong>{valueText(kind, mine[name], none)}</strong>
                    ) : (
                      <span className="muted">as theirs</span>
                    )}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
        <Group>
          <Button size="compact-md" variant="default" onClick={onTheirs} disabled={isBusy}>
            Keep theirs
          </Button>
          <Button size="compact-md" onClick={onMine} loading={isBusy}>
            Save mine over it
          </Button>
        </Group>
      </Stack>
    </Alert>
  );
}
