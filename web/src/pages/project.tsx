import { Alert, Button, Group, Stack } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { type ReactElement, useState } from "react";
import { valueOf } from "../../../src/client/client.ts";
import type { Input, Output } from "../../../src/client/types.ts";
import { useAction } from "../action.ts";
import { api } from "../api.ts";
import { type Project, useNames } from "../containers.ts";
import { Icon } from "../icons.tsx";
import { type Budget, BudgetEditor } from "../parts/budget-editor.tsx";
import { Confirm, useOpened } from "../parts/confirm.tsx";
import { ContainerForm } from "../parts/container-form.tsx";
import { Page, Waiting, Written } from "../parts/parts.tsx";
import { Failed } from "../parts/problem.tsx";
import { RestrictionsEditor } from "../parts/restrictions-editor.tsx";
import { CalendarEditor } from "../parts/calendar-editor.tsx";
import { ProjectSpendLimits } from "../parts/spend-limits.tsx";
import { RulesEditor } from "../parts/rules-editor.tsx";
import { EmergencyStop } from "../parts/stop.tsx";
import type { SentRules } from "../rules.ts";
import { useMay } from "../session.tsx";
import { Tile } from "./projects.tsx";

type OpenDialog = "edit" | "archive" | "team";

export function ProjectPage(): ReactElement {
  const { id } = useParams({ from: "/app/projects/$id" });
  const { data, error } = useQuery({
    queryKey: ["projects", id],
    queryFn: async ({ signal }) => valueOf(await api.getProject({ id }, { signal })).project,
  });
  if (data === undefined) return error === null ? <Waiting /> : <Failed error={error} />;
  return <Known project={data} />;
}

function Known({ project }: { readonly project: Project }): ReactElement {
  const [dialog, openDialog, close] = useOpened<OpenDialog>();
  const isAdmin = useMay("admin");
  const isArchived = project.archivedAt !== null;
  const archive = useAction(() => api.archiveProject({ id: project.id }), { stale: [["projects"]] });
  const actions =
    isArchived || !isAdmin ? undefined : (
      <>
        <Button leftSection={<Icon name="plus" />} onClick={() => openDialog("team")}>
          Create a team
        </Button>
        <Button variant="default" leftSection={<Icon name="edit" />} onClick={() => openDialog("edit")}>
          Edit
        </Button>
        <Button variant="default" leftSection={<Icon name="archive" />} onClick={() => openDialog("archive")}>
          Archive
        </Button>
        <EmergencyStop scope={{ projectId: project.id }} what="all agents of this project" />
      </>
    );
  return (
    <Page
      title={project.name}
      about={
        <Group gap="xs">
          <Tile container={project} />
          {project.description === null ? "A project" : <Written text={project.description} />}
        </Group>
      }
      actions={actions}
    >
      {isArchived ? (
        <Alert color="gray" icon={<Icon name="archive" />}>
          This project is archived.
        </Alert>
      ) : (
        <Stack>
          <ProjectBudget id={project.id} />
          <CalendarEditor projectId={project.id} isReadOnly={!isAdmin} />
          <ProjectRules id={project.id} />
          <RestrictionsEditor level="project" id={project.id} isReadOnly={!isAdmin} />
        </Stack>
      )}
      {dialog === "edit" ? <ContainerForm kind="project" of={project} onClose={close} /> : null}
      {dialog === "team" ? <ContainerForm kind="team" projectId={project.id} onClose={close} /> : null}
      {dialog === "archive" ? (
        <Confirm
          title={`Archive ${project.name}?`}
          action="Archive"
          isBusy={archive.isBusy}
          problem={archive.problem}
          onConfirm={() => void archive.run().then((done) => done !== null && close())}
          onClose={close}
        >
          Permanent, and possible only when no team in it is live.
        </Confirm>
      ) : null}
    </Page>
  );
}

const STALE = [["budgets"], ["agents"]];

const shown = ({ teams, ...budget }: Output<"getProjectBudget">): Budget => ({
  ...budget,
  children: teams.map(({ capCents, teamId }) => ({
    id: teamId,
    cents: capCents,
  })),
});

function ProjectBudget({ id }: { readonly id: string }): ReactElement {
  const client = useQueryClient();
  const names = useNames();
  const [typed, setTyped] = useState("");
  const isAdmin = useMay("admin");
  const queryKey = ["budgets", "project", id];
  const { data, error } = useQuery({
    queryKey,
    queryFn: async ({ signal }) => valueOf(await api.getProjectBudget({ id }, { signal })),
  });
  const save = useAction((body: Input<"setProjectBudget">["body"]) => api.setProjectBudget({ id, body }), {
    stale: STALE,
  });
  if (data === undefined) return error === null ? <Waiting /> : <Failed error={error} />;
  return (
    <>
      <BudgetEditor
        about="Of the whole project, and of each of its teams."
        childLabel="Caps of its teams"
        names={{
          nameOf: names.team,
          typed,
          onTyped: setTyped,
          found: foundIn(data.teams, names.team, typed),
        }}
        budget={shown(data)}
        mayClear
        isReadOnly={!isAdmin}
        isBusy={save.isBusy}
        refused={save.refused}
        problem={save.problem}
        onReload={() => {
          save.clear();
          void client.invalidateQueries({ queryKey });
        }}
        onTry={(capCents, children, range) => {
          const teams = [...children].map(([teamId, cents]) => ({ teamId, capCents: cents }));
          return api.simulateProjectBudget({ id, body: { capCents, teams, range } });
        }}
        onSave={async (capCents, children, version) => {
          const teams = [...children].map(([teamId, cents]) => ({ teamId, capCents: cents }));
          const saved = await save.run({ capCents, teams, version });
          return saved === null ? null : shown(saved);
        }}
      />
      <ProjectSpendLimits id={id} budget={data} isReadOnly={!isAdmin} />
    </>
  );
}

/** Returns the ids of the teams whose names contain the text; null without a search. */
function foundIn(
  teams: Output<"getProjectBudget">["teams"],
  nameOf: (id: string) => string,
  typed: string,
): ReadonlySet<string> | null {
  const text = typed.trim().toLowerCase();
  if (text === "") return null;
  const ids = teams.map(({ teamId }) => teamId);
  return new Set(ids.filter((id) => nameOf(id).toLowerCase().includes(text)));
}

function ProjectRules({ id }: { readonly id: string }): ReactElement {
  const client = useQueryClient();
  const isAdmin = useMay("admin");
  const queryKey = ["rules", "project", id];
  const { data, error } = useQuery({
    queryKey,
    queryFn: async ({ signal }) => valueOf(await api.getProjectApprovalRules({ id }, { signal })),
  });
  const save = useAction(
    (rules: SentRules, version: number) => api.setProjectApprovalRules({ id, body: { rules, version } }),
    { stale: [["rules"]] },
  );
  if (data === undefined) return error === null ? <Waiting /> : <Failed error={error} />;
  return (
    <RulesEditor
      what="this project"
      current={data}
      isReadOnly={!isAdmin}
      isBusy={save.isBusy}
      refused={save.refused}
      onSave={(rules, version) => save.run(rules, version)}
      onTry={(rules, range) => api.simulateProjectApprovalRules({ id, body: { rules, range } })}
      onReload={() => {
        save.clear();
        void client.invalidateQueries({ queryKey });
      }}
    />
  );
}
