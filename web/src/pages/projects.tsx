import { Button, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactElement, useState } from "react";
import { valueOf } from "../../../src/client/client.ts";
import { api } from "../api.ts";
import { type Project, type Team, useTeams } from "../containers.ts";
import { money } from "../format.ts";
import { Icon } from "../icons.tsx";
import { More, usePages } from "../parts/list.tsx";
import { BudgetBar, Card, Empty, Page, State, Waiting, Written } from "../parts/parts.tsx";
import { Failed } from "../parts/problem.tsx";
import { ContainerForm } from "../parts/container-form.tsx";
import { useMay, useMe } from "../session.tsx";

export function Projects(): ReactElement {
  const pages = usePages(["projects", "list"], (cursor, options) =>
    api.listProjects({ query: { ...cursor, limit: 20 } }, options),
  );
  const { data: teams = [] } = useTeams();
  const { binding } = useMe().user;
  const isAdmin = useMay("admin");
  const [isCreating, setCreating] = useState(false);
  const projects = pages.data?.pages.flatMap((page) => page.projects) ?? [];
  return (
    <Page
      title="Projects"
      about="Each project groups teams of agents. A cap limits all agents below it together."
      actions={
        isAdmin ? (
          <Button leftSection={<Icon name="plus" />} onClick={() => setCreating(true)}>
            Create a project
          </Button>
        ) : undefined
      }
    >
      {pages.isPending ? <Waiting lines={3} height={120} /> : null}
      {pages.error === null ? null : <Failed error={pages.error} />}
      {projects.map((project) => (
        <ProjectCard
          key={project.id}
          project={project}
          teams={teams.filter((team) => team.projectId === project.id)}
        />
      ))}
      <More {...pages} />
      {binding.type === "team" ? (
        <Card title="Your teams">
          <TeamTree teams={teams.filter(({ archivedAt }) => archivedAt === null)} />
        </Card>
      ) : null}
      {isCreating ? <ContainerForm kind="project" onClose={() => setCreating(false)} /> : null}
    </Page>
  );
}

function ProjectCard({
  project,
  teams,
}: {
  readonly project: Project;
  readonly teams: readonly Team[];
}): ReactElement {
  const isArchived = project.archivedAt !== null;
  const { data } = useQuery({
    queryKey: ["budgets", "project", project.id],
    queryFn: async ({ signal }) => valueOf(await api.getProjectBudget({ id: project.id }, { signal })),
    enabled: !isArchived,
  });
  const live = teams.filter(({ archivedAt }) => archivedAt === null);
  const capOf = (teamId: string): string => {
    const cap = data?.teams.find((each) => each.teamId === teamId)?.capCents ?? null;
    return cap === null ? "No cap" : `Cap ${money(cap)}`;
  };
  return (
    <Card
      title={
        <Link to="/projects/$id" params={{ id: project.id }} className="row-link container-name">
          <Tile container={project} />
          <Written text={project.name} />
        </Link>
      }
      actions={isArchived ? <State of="archived" /> : undefined}
    >
      <Stack gap="sm">
        {project.description === null ? null : (
          <Text size="sm" c="dimmed" className="break">
            <Written text={project.description} />
          </Text>
        )}
        {data === undefined ? null : (
          <BudgetBar
            label="All teams"
            limitCents={data.capCents}
            spentCents={data.usage.spentCents}
            reservedCents={data.usage.reservedCents}
          />
        )}
        {live.length === 0 ? (
          isArchived ? null : (
            <Empty icon="people" title="No teams yet">
              A team holds agents. Create one on the project’s page.
            </Empty>
          )
        ) : (
          <TeamTree teams={live} capOf={capOf} />
        )}
      </Stack>
    </Card>
  );
}

interface TeamTreeProps {
  readonly teams: readonly Team[];
  readonly capOf?: (teamId: string) => string;
}

const TeamTree = ({ capOf, teams }: TeamTreeProps): ReactElement => (
  <ul className="tree">
    {teams.map((team) => (
      <li key={team.id}>
        <Link to="/teams/$id" params={{ id: team.id }} className="row-link">
          <Written text={team.name} />
        </Link>
        {capOf === undefined ? null : <span className="muted figure">{capOf(team.id)}</span>}
      </li>
    ))}
  </ul>
);

/** Image of a container, or its color. */
export const Tile = ({ container }: { readonly container: Pick<Project, "color" | "logo"> }): ReactElement =>
  container.logo === null ? (
    <svg width="18" height="18" aria-hidden="true" className="icon">
      <rect width="18" height="18" rx="5" fill={container.color ?? "#8b94a3"} />
    </svg>
  ) : (
    <img src={container.logo} width={18} height={18} alt="" className="tile" />
  );
