import type { Collections } from "../store/collections.ts";
import { definedFields } from "../store/lists.ts";

/** Containers that a list is limited to: by its caller's filters, or by the binding of a key. */
export interface ContainerFilter {
  readonly projectId?: string | undefined;
  readonly teamId?: string | undefined;
  readonly agentId?: string | undefined;
}

type Records = Pick<Collections, "agents" | "projects" | "teams">;

/** Containers of a record, itself included. */
type Chain = ContainerFilter & { readonly organizationId: string };

/** The most specific first. The record of each names all its containers, and none is ever moved. */
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
 * The most specific of the containers that a list of an organization is limited to, by the field in which records name it: what it
 * contains is in all the others, too, so that one field is enough. Null where they are not nested in one another, or one of them
 * is not the organization's: then no record is in all of them.
 */
export async function mostSpecificScope(
  records: Records,
  organizationId: string,
  filter: ContainerFilter,
  binding: ContainerFilter,
): Promise<Readonly<Record<string, string>> | null> {
  const named: ContainerFilter = { ...binding, ...definedFields(filter) };
  const isOutside = LEVELS.some((level) => binding[level] !== undefined && named[level] !== binding[level]);
  if (isOutside) return null;
  const level = LEVELS.find((each) => named[each] !== undefined);
  const id = level === undefined ? undefined : named[level];
  if (level === undefined || id === undefined) return { organizationId };
  const chain = await CHAIN_OF[level](records, id);
  if (chain?.organizationId !== organizationId) return null;
  const isInAll = LEVELS.every((each) => named[each] === undefined || named[each] === chain[each]);
  return isInAll ? { [level]: id } : null;
}
