import { payeeIn, payeeOf } from "../words.ts";
import { Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactElement, ReactNode } from "react";
import { valueOf } from "../../../src/client/client.ts";
import type { Output } from "../../../src/client/types.ts";
import { api } from "../api.ts";
import { money, number } from "../format.ts";
import { Icon, type IconName } from "../icons.tsx";
import { ButtonLink, TextLink } from "../parts/links.tsx";
import { ChargedState } from "../parts/charged.tsx";
import { Card, Empty, Money, Page, Waiting, When, Written } from "../parts/parts.tsx";
import { SpendChart } from "../parts/spend-chart.tsx";
import { Failed } from "../parts/problem.tsx";
import { EmergencyStop } from "../parts/stop.tsx";
import { plusOf, usePending } from "../pending.ts";
import { useMay, useMe } from "../session.tsx";

const RECENT = 8;

export function Home(): ReactElement {
  const { organization, user } = useMe();
  const { data, error, refetch } = useQuery({
    queryKey: ["agents", "summary"],
    queryFn: async ({ signal }) => valueOf(await api.summarizeAgents({}, { signal })),
  });
  const isAdmin = useMay("admin");
  const isNew = data !== undefined && data.counts.active + data.counts.paused === 0;
  return (
    <Page
      title={`Hello, ${user.name.split(" ")[0] ?? user.name}`}
      about={organization.name}
      actions={
        isAdmin && !isNew ? (
          <EmergencyStop scope="organization" what="all agents of the organization" />
        ) : undefined
      }
    >
      {error === null ? null : <Failed error={error} retry={() => void refetch()} />}
      <Next isNew={isNew} />
      <Figures summary={data} />
      {isNew ? null : <SpendChart filters={{}} height={170} />}
      <div className="columns">
        <Recent />
        <Waits />
      </div>
    </Page>
  );
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

type Summary = Output<"summarizeAgents">;

function Figures({ summary }: { readonly summary: Summary | undefined }): ReactElement {
  const pending = usePending();
  const waiting = pending.data?.approvals ?? [];
  const heldCents = sum(waiting.map(({ amountCents }) => amountCents));
  const plus = plusOf(pending.data);
  const paused = summary?.counts.paused ?? 0;
  return (
    <div className="grid">
      <Figure
        label="Waiting for a decision"
        figure={pending.data === undefined ? "–" : `${number(waiting.length)}${plus}`}
        about={waiting.length === 0 ? "Nothing waits" : `${money(heldCents)}${plus} on hold`}
      />
      <Figure
        label="Active agents"
        figure={summary === undefined ? "–" : number(summary.counts.active)}
        about={paused === 0 ? "None is paused" : `${number(paused)} paused`}
      />
      <Figure
        label="Spent and reserved"
        figure={summary === undefined ? "–" : money(summary.spentCents + summary.reservedCents)}
        about={`of ${money(summary?.budgetCents ?? 0)} in agents’ budgets`}
      />
    </div>
  );
}

function Figure({
  about,
  figure,
  label,
}: {
  readonly label: string;
  readonly figure: string;
  readonly about: string;
}): ReactElement {
  return (
    <section className="card stat">
      <Text size="sm" c="dimmed">
        {label}
      </Text>
      <div className="stat-figure">{figure}</div>
      <Text size="sm" c="dimmed">
        {about}
      </Text>
    </section>
  );
}

function Recent(): ReactElement {
  const { data, error, isPending } = useQuery({
    queryKey: ["transactions", "recent"],
    queryFn: async ({ signal }) =>
      valueOf(await api.listTransactions({ query: { limit: RECENT } }, { signal })),
  });
  const all = (
    <TextLink to="/transactions" size="sm">
      All transactions
    </TextLink>
  );
  return (
    <Card title="Latest transactions" actions={all} flush>
      {isPending ? <Waiting /> : null}
      {error === null ? null : <Failed error={error} />}
      {data?.transactions.length === 0 ? (
        <Empty icon="list" title="No transactions yet">
          Every payment that an agent requests appears here, including those that policy denies.
        </Empty>
      ) : null}
      {data === undefined || data.transactions.length === 0 ? null : (
        <table className="rows stacked">
          <thead>
            <tr>
              <th>To</th>
              <th>State</th>
              <th>When</th>
              <th className="right">Amount</th>
            </tr>
          </thead>
          <tbody>
            {data.transactions.map((each) => (
              <tr key={each.id}>
                <td className="main">
                  <Link to="/transactions" search={{ open: each.id }} className="row-link">
                    <Written text={payeeIn(each)} />
                  </Link>
                  <Text size="xs" c="dimmed">
                    <Written text={each.agentName} />
                  </Text>
                </td>
                <td>
                  <ChargedState transaction={each} />
                </td>
                <td className="away">
                  <When iso={each.createdAt} />
                </td>
                <td className="right">
                  <Money cents={each.amountCents} currency={each.currency} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Card>
  );
}

const WAITING_SHOWN = 5;

function Waits(): ReactElement {
  const { data, error, isPending } = usePending();
  const approvals = data?.approvals ?? [];
  return (
    <Card
      title="Approvals"
      flush
      actions={
        <TextLink to="/approvals" size="sm">
          Inbox
        </TextLink>
      }
    >
      {isPending ? <Waiting lines={3} /> : null}
      {error === null ? null : <Failed error={error} />}
      {data !== undefined && approvals.length === 0 ? (
        <Empty icon="check" title="Nothing to decide">
          Payments that need a decision appear here.
        </Empty>
      ) : null}
      {approvals.length === 0 ? null : (
        <table className="rows">
          <tbody>
            {approvals.slice(0, WAITING_SHOWN).map((each) => (
              <tr key={each.id}>
                <td>
                  <Link to="/approvals/$id" params={{ id: each.id }} className="row-link">
                    <Written text={payeeOf(each)} />
                  </Link>
                  <Text size="xs" c="dimmed">
                    <Written text={each.agentName} />
                  </Text>
                </td>
                <td className="right">
                  <Money cents={each.amountCents} currency={each.currency} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Card>
  );
}

function Next({ isNew }: { readonly isNew: boolean }): ReactElement | null {
  const { secondFactorEnrolment } = useMe();
  const isAdmin = useMay("admin");
  const needsFactor = secondFactorEnrolment !== null;
  if (!isNew && !needsFactor) return null;
  return (
    <Card title={isNew ? "Get started" : "Protect your account"}>
      <Stack gap="md">
        {needsFactor ? (
          <Step
            icon="shield"
            title="Enrol a second factor"
            action={
              <ButtonLink to="/settings/security" variant="default">
                Security settings
              </ButtonLink>
            }
          >
            A passkey or an authenticator app. Budgets, keys and members can’t be changed without one.
          </Step>
        ) : null}
        {isNew ? (
          <>
            <Step
              icon="agent"
              title="Create your first agent"
              action={
                isAdmin ? (
                  <ButtonLink to="/agents" search={{ create: true }}>
                    Create an agent
                  </ButtonLink>
                ) : null
              }
            >
              It gets a budget, limits, a wallet and a key. The configuration for its MCP client comes with
              it, to copy.
            </Step>
            <Step icon="inbox" title="Decide its first payment">
              What is above the agent’s threshold waits in the approvals inbox until a person has decided.
            </Step>
          </>
        ) : null}
      </Stack>
    </Card>
  );
}

interface StepProps {
  readonly icon: IconName;
  readonly title: string;
  readonly children: ReactNode;
  readonly action?: ReactNode;
}

const Step = ({ action, children, icon, title }: StepProps): ReactElement => (
  <div className="step">
    <span className="step-icon">
      <Icon name={icon} size={20} />
    </span>
    <div className="step-text">
      <Text fw={600}>{title}</Text>
      <Text size="sm" c="dimmed">
        {children}
      </Text>
    </div>
    {action}
  </div>
);
