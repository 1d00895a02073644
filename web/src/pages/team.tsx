import { Alert, Button, Stack } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { type ReactElement, useMemo, useState } from "react";
import { valueOf } from "../../../src/client/client.ts";
import type { Input, Output } from "../../../src/client/types.ts";
import { useAction } from "../action.ts";
import { api } from "../api.ts";
import { type Team, useNames } from "../containers.ts";
import { Icon } from "../icons.tsx";
import { type Budget, BudgetEditor } from "../parts/budget-editor.tsx";
import type { ChildNames } from "../parts/budget-rows.tsx";
import { Confirm, useOpened } from "../parts/confirm.tsx";
import { ContainerForm } from "../parts/container-form.tsx";
import { ButtonLink, TextLink } from "../parts/links.tsx";
import { usePages } from "../parts/list.tsx";
import { Page, Waiting, Written } from "../parts/parts.tsx";
import { Failed } from "../parts/problem.tsx";
import { RestrictionsEditor } from "../parts/restrictions-editor.tsx";
import { TeamSpendLimits } from "../parts/spend-limits.tsx";
import { RulesEditor } from "../parts/rules-editor.tsx";
import { EmergencyStop } from "../parts/stop.tsx";
import type { SentRules } from "../rules.ts";
import { useMay, useMe } from "../session.tsx";

type OpenDialog = "edit" | "archive";

export function TeamPage(): ReactElement {
  const { id } = useParams({ from: "/app/teams/$id" });
  const { data, error } = useQuery({
    queryKey: ["teams", id],
    queryFn: async ({ signal }) => valueOf(await api.getTeam({ id }, { signal })).team,
  });
  if (data === undefined) return error === null ? <Waiting /> : <Failed error={error} />;
  return <Known team={data} />;
}

function Known({ team }: { readonly team: Team }): ReactElement {
  const names = useNames();
  const [dialog, openDialog, close] = useOpened<OpenDialog>();
  const { user } = useMe();
  const isAdmin = useMay("admin");
  const isArchived = team.archivedAt !== null;
  const archive = useAction(() => api.archiveTeam({ id: team.id }), { stale: [["teams"], ["budgets"]] });
  return (
    <Page
      title={team.name}
      about={
        <>
          {user.binding.type === "team" ? (
            "A team"
          ) : (
            <>
              A team of{" "}
              <TextLink to="/projects/$id" params={{ id: team.projectId }}>
                <Written text={names.project(team.projectId) || "…"} />
              </TextLink>
            </>
          )}
          {team.description === null ? null : (
            <>
              {" · "}
              <Written text={team.description} />
            </>
          )}
        </>
      }
      actions={
        <>
          <ButtonLink to="/agents" search={{ teamId: team.id }} variant="default">
            Agents
          </ButtonLink>
          {isArchived || !isAdmin ? null : (
            <>
              <Button variant="default" leftSection={<Icon name="edit" />} onClick={() => openDialog("edit")}>
                Edit
              </Button>
              <Button
                variant="default"
                leftSection={<Icon name="archive" />}
                onClick={() => openDialog("archive")}
              >
                Archive
              </Button>
              <EmergencyStop scope={{ teamId: team.id }} what="all agents of this team" />
            </>
          )}
        </>
      }
    >
      {isArchived ? (
        <Alert color="gray" icon={<Icon name="archive" />}>
          This team is archived.
        </Alert>
      ) : (
        <Stack>
          <TeamBudget id={team.id} />
          <TeamRules id={team.id} />
          <RestrictionsEditor level="team" id={team.id} isReadOnly={!isAdmin} />
        </Stack>
      )}
      {dialog === "edit" ? <ContainerForm kind="team" of={team} onClose={close} /> : null}
      {dialog === "archive" ? (
        <Confirm
          title={`Archive ${team.name}?`}
          action="Archive"
          isBusy={archive.isBusy}
          problem={archive.problem}
          onConfirm={() => void archive.run().then((done) => done !== null && close())}
          onClose={close}
        >
          Permanent, and possible only when no agent in it is live.
        </Confirm>
      ) : null}
    </Page>
  );
}

const STALE = [["budgets"], ["agents"]];
const AGENTS = 200;
const TYPED_MS = 250;

/**
 * Names of a team's agents. The list is in the budget's order and is read as far as the user scrolls; the service
 * searches for a typed name.
 */
function useChildNames(teamId: string): ChildNames {
  const [typed, setTyped] = useState("");
  const [debounced] = useDebouncedValue(typed.trim(), TYPED_MS);
  const read = usePages(["agents", "of team", teamId], (cursor, options) =>
    api.listAgents({ query: { teamId, limit: AGENTS, ...cursor } }, options),
  );
  const found = useQuery({
    queryKey: ["agents", "of team", teamId, "found", debounced],
    queryFn: async ({ signal }) =>
      valueOf(await api.listAgents({ query: { teamId, limit: AGENTS, name: debounced } }, { signal })).agents,
    enabled: debounced !== "",
    placeholderData: keepPreviousData,
  });
  const known = useMemo(() => {
    const agents = [...(read.data?.pages ?? []).flatMap((page) => page.agents), ...(found.data ?? [])];
    return new Map(agents.map(({ id, name }) => [id, name]));
  }, [read.data, found.data]);
  const { fetchNextPage, hasNextPage, isFetching } = read;
  return {
    nameOf: (id) => known.get(id) ?? "",
    onVisible: () => {
      if (debounced === "" && hasNextPage && !isFetching) void fetchNextPage();
    },
    typed,
    onTyped: setTyped,
    found: debounced === "" || found.data === undefined ? null : new Set(found.data.map((agent) => agent.id)),
  };
}

const shown = ({ agents, ...budget }: Output<"getTeamBudget">): Budget => ({
  ...budget,
  children: agents.map(({ agentId, budgetCents }) => ({
    id: agentId,
    cents: budgetCents,
  })),
});

function TeamBudget({ id }: { readonly id: string }): ReactElement {
  const client = useQueryClient();
  const isAdmin = useMay("admin");
  const names = useChildNames(id);
  const queryKey = ["budgets", "team", id];
  const { data, error, isPending } = useQuery({
    queryKey,
    queryFn: async ({ signal }) => valueOf(await api.getTeamBudget({ id }, { signal })),
  });
  const save = useAction((body: Input<"setTeamBudget">["body"]) => api.setTeamBudget({ id, body }), {
    stale: STALE,
  });
  if (isPending) return <Waiting />;
  if (error !== null) return <Failed error={error} />;
  return (
    <>
      <BudgetEditor
        about="Of the whole team, and of each of its agents."
        childLabel="Budgets of its agents"
        names={names}
        budget={shown(data)}
        mayClear={false}
        isReadOnly={!isAdmin}
        isBusy={save.isBusy}
        refused={save.refused}
        problem={save.problem}
        onReload={() => {
          save.clear();
          void client.invalidateQueries({ queryKey });
        }}
        onTry={(capCents, children, range) => {
          const agents = [...children].map(([agentId, cents]) => ({ agentId, budgetCents: cents ?? 0 }));
          return api.simulateTeamBudget({ id, body: { capCents, agents, range } });
        }}
        onSave={async (capCents, children, version) => {
          const agents = [...children].map(([agentId, cents]) => ({ agentId, budgetCents: cents ?? 0 }));
          const saved = await save.run({ capCents, agents, version });
          return saved === null ? null : shown(saved);
        }}
      />
      <TeamSpendLimits id={id} budget={data} isReadOnly={!isAdmin} />
    </>
  );
}

function TeamRules({ id }: { readonly id: string }): ReactElement {
  const client = useQueryClient();
  const isAdmin = useMay("admin");
  const queryKey = ["rules", "team", id];
  const { data, error } = useQuery({
    queryKey,
    queryFn: async ({ signal }) => valueOf(await api.getTeamApprovalRules({ id }, { signal })),
  });
  const save = useAction(
    (rules: SentRules, version: number) => api.setTeamApprovalRules({ id, body: { rules, version } }),
    { stale: [["rules"]] },
  );
  if (data === undefined) return error === null ? <Waiting /> : <Failed error={error} />;
  return (
    <RulesEditor
      what="this team"
      current={data}
      isReadOnly={!isAdmin}
      isBusy={save.isBusy}
      refused={save.refused}
      onSave={(rules, version) => save.run(rules, version)}
      onTry={(rules, range) => api.simulateTeamApprovalRules({ id, body: { rules, range } })}
      onReload={() => {
        save.clear();
        void client.invalidateQueries({ queryKey });
      }}
    />
  );
}
