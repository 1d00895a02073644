import type { Collections } from "../store/collections.ts";
import type { EqualityFilter } from "../store/newest-reads.ts";
import type { BindingFilter } from "../domain/binding.ts";

/** Containers to which a caller's filters limit a list. */
export interface ContainerFilter {
  readonly projectId?: string | undefined;
  readonly teamId?: string | undefined;
  readonly agentId?: string | undefined;
}

type Records = Pick<Collections, "agents" | "projects" | "teams">;

/** Containers of a record, including the record itself. */
type Chain = ContainerFilter & { readonly organizationId: string };

/** Most specific first. Each container's record names all its own containers, and none is ever moved. */
const LEVELS = ["agentId", "teamId", "projectId"] as const;

const SCOPE_FIELDS = { projection: { organizationId: 1, projectId: 1, teamId: 1 } } as const;

const CHAIN_OF: Readonly<
  Record<(typeof LEVELS)[number], (records: Records, id: string) => Promise<Chain | null>>
> = {
  async agentId({ agents }, agentId) {
    const agent = await agents.findOne({ _id: agentId }, SCOPE_FIELDS);
    return (
      agent && {
        organizationId: agent.organizationId,
        projectId: agent.projectId,
        teamId: agent.teamId,
        agentId,
      }
    );
  },
  async teamId({ teams }, teamId) {
    const team = await teams.findOne({ _id: teamId }, SCOPE_FIELDS);
    return team && { organizationId: team.organizationId, projectId: team.projectId, teamId };
  },
  async projectId({ projects }, projectId) {
    const project = await projects.findOne({ _id: projectId }, SCOPE_FIELDS);
    return project && { organizationId: project.organizationId, projectId };
  },
};

/**
 * Returns the most specific of the containers to which an organization's list is limited, by its field in records.
 * Everything in it is in all the others too, so one field suffices. Null if the containers are not nested or one is
 * outside the organization: then no record is in all of them.
 */
export async function mostSpecificScope(
  records: Records,
  organizationId: string,
  filter: ContainerFilter,
  binding: BindingFilter,
): Promise<EqualityFilter | null> {
  const level = LEVELS.find((each) => filter[each] !== undefined);
  const id = level === undefined ? undefined : filter[level];
  if (level === undefined || id === undefined) return boundTo(organizationId, binding);
  const chain = await CHAIN_OF[level](records, id);
  if (chain?.organizationId !== organizationId) return null;
  const isInAll = LEVELS.every((each) => filter[each] === undefined || filter[each] === chain[each]);
  if (!isInAll) return null;
  // The project was named by a caller limited to teams: lists the project's teams that are the caller's.
  if (binding.teamId !== undefined && level === "projectId") {
    const within = { _id: { $in: [...binding.teamId] }, organizationId, projectId: id };
    const teams = await records.teams.find(within, SCOPE_FIELDS).toArray();
    return teams.length === 0 ? null : boundTo(organizationId, { teamId: teams.map(({ _id }) => _id) });
  }
  return isWithin(binding, chain) ? { [level]: id } : null;
}

const isWithin = ({ projectId, teamId }: BindingFilter, chain: Chain): boolean =>
  [projectId?.includes(chain.projectId ?? ""), teamId?.includes(chain.teamId ?? "")].every(
    (isCovered) => isCovered !== false,
  );

/** Uses a plain value for a single id, so that the list reads one range of its index. */
function boundTo(organizationId: string, { projectId, teamId }: BindingFilter): EqualityFilter {
  const [field, ids] =
    teamId === undefined ? (["projectId", projectId] as const) : (["teamId", teamId] as const);
  if (ids === undefined) return { organizationId };
  const [only] = ids;
  return { [field]: ids.length === 1 && only !== undefined ? only : ids };
}
