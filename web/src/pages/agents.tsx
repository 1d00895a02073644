import { Button, Group, SegmentedControl, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactElement, useCallback, useState } from "react";
import { api } from "../api.ts";
import { useNames } from "../containers.ts";
import { Icon } from "../icons.tsx";
import { Card, Empty, Money, Page, State, Waiting, When, Written } from "../parts/parts.tsx";
import { Failed } from "../parts/problem.tsx";
import { TeamSelect } from "../parts/filters.tsx";
import { More, usePages } from "../parts/list.tsx";
import { Table } from "../parts/table.tsx";
import { AgentMark, Usage } from "../parts/agent.tsx";
import { useMay } from "../session.tsx";
import type { Agent } from "../words.ts";
import { CreateAgent } from "./create-agent.tsx";

export function Agents(): ReactElement {
  const { create, state, teamId } = useSearch({ from: "/app/agents" });
  const navigate = useNavigate({ from: "/agents" });
  const isAdmin = useMay("admin");
  const [search, setSearch] = useState("");
  const [debounced] = useDebouncedValue(search, 250);
  const typedName = debounced.trim();
  const filters = { ...(state === undefined ? {} : { state }), ...(teamId === undefined ? {} : { teamId }) };
  const pages = usePages(["agents", "list", filters, typedName], (cursor, options) =>
    api.listAgents(
      {
        query: {
          ...filters,
          ...(typedName === "" ? {} : { name: typedName }),
          with: "lastPayment",
          ...cursor,
          limit: 50,
        },
      },
      options,
    ),
  );
  const agents = pages.data?.pages.flatMap((page) => page.agents) ?? [];
  const open = (isOpen: boolean) =>
    void navigate({ search: { ...filters, ...(isOpen ? { create: true as const } : {}) }, replace: true });
  const newOne = isAdmin ? (
    <Button leftSection={<Icon name="plus" />} onClick={() => open(true)}>
      Create an agent
    </Button>
  ) : undefined;
  return (
    <Page title="Agents" about="Programs that spend, each within its own policy." actions={newOne}>
      <div className="filters">
        <SegmentedControl
          aria-label="State"
          value={state ?? "all"}
          data={[
            { value: "all", label: "All" },
            { value: "active", label: "Active" },
            { value: "paused", label: "Paused" },
            { value: "archived", label: "Archived" },
          ]}
          onChange={(value) =>
            void navigate({
              search: ({ state: _state, ...others }) =>
                value === "active" || value === "paused" || value === "archived"
                  ? { ...others, state: value }
                  : others,
              replace: true,
            })
          }
        />
        <TextInput
          aria-label="Search by name"
          placeholder="Search by name"
          value={search}
          onChange={({ currentTarget }) => setSearch(currentTarget.value)}
        />
        <TeamSelect
          value={teamId ?? null}
          onChange={(value) =>
            void navigate({
              search: ({ teamId: _team, ...others }) =>
                value === null ? others : { ...others, teamId: value },
              replace: true,
            })
          }
        />
      </div>
      <Card flush>
        {pages.isPending ? <Waiting lines={6} /> : null}
        {pages.error === null ? null : <Failed error={pages.error} retry={() => void pages.refetch()} />}
        {pages.data !== undefined && agents.length === 0 ? (
          <Empty
            icon="agent"
            title={Object.keys(filters).length === 0 && typedName === "" ? "No agents yet" : "No such agents"}
            action={newOne}
          >
            An agent gets a budget, limits, a wallet, and one key that it pays with. It can do nothing else.
          </Empty>
        ) : null}
        {agents.length === 0 ? null : <AgentTable agents={agents} />}
        <More {...pages} />
      </Card>
      {create === true && isAdmin ? <CreateAgent onClose={() => open(false)} /> : null}
    </Page>
  );
}

function AgentTable({ agents }: { readonly agents: readonly Agent[] }): ReactElement {
  const names = useNames();
  const cells = useCallback(
    (agent: Agent) => <Cells agent={agent} team={names.team(agent.teamId)} />,
    [names.team],
  );
  return (
    <Table
      items={agents}
      keyOf={({ id }) => id}
      columns={6}
      cells={cells}
      head={
        <>
          <th>Agent</th>
          <th>State</th>
          <th>Team</th>
          <th>Used of its budget</th>
          <th>Last payment</th>
          <th className="right">Left</th>
        </>
      }
    />
  );
}

function Cells({ agent, team }: { readonly agent: Agent; readonly team: string }): ReactElement {
  return (
    <>
      <td className="main">
        <Group gap="sm" wrap="nowrap">
          <AgentMark agent={agent} />
          <div>
            <Link to="/agents/$id" params={{ id: agent.id }} className="row-link">
              <Written text={agent.name} />
            </Link>
            {agent.description === null ? null : (
              <Text size="xs" c="dimmed" className="clamp">
                <Written text={agent.description} />
              </Text>
            )}
          </div>
        </Group>
      </td>
      <td>
        <State of={agent.state} />
      </td>
      <td className="away">
        <Written text={team} />
      </td>
      <td className="wide usage">
        <Usage agent={agent} />
      </td>
      <td className="away">
        {agent.lastPayment ? <When iso={agent.lastPayment.createdAt} /> : <span className="muted">None</span>}
      </td>
      <td className="right away">
        <Money cents={Math.max(0, agent.budgetCents - agent.spentCents - agent.reservedCents)} />
      </td>
    </>
  );
}
