import { provenContainer } from "../../src/store/level-records.ts";
import type { ContainerDocument, ProjectDocument, TeamDocument } from "../../src/store/documents.ts";
import { ok } from "../../src/domain/result.ts";
import type { AuditedWrites } from "../../src/audit/notes.ts";
import { WITHOUT_RULES } from "../../src/containers/containers.ts";
import { createdOf, type NewContainer, newContainer, payloadOf } from "../../src/containers/new-container.ts";
import { definedFields } from "../../src/store/lists.ts";
import type { EqualityFilter } from "../../src/store/newest-reads.ts";
import { mostSpecificScope } from "../../src/identity/most-specific-scope.ts";
import type { Deadline } from "../../src/lib/deadline.ts";
import type { ManagementPrincipal } from "../../src/identity/principals.ts";
import { teamView } from "../../src/views/views.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

type TeamHandlers = Pick<
  Handlers,
  "createTeam" | "createTeamByTool" | "listTeams" | "getTeam" | "updateTeam" | "archiveTeam"
>;

interface CreateContext {
  readonly audit: AuditedWrites;
  readonly deadline: Deadline;
  readonly principal: ManagementPrincipal;
  readonly target: ProjectDocument;
}

export function teamHandlers(dependencies: HandlerDependencies): TeamHandlers {
  const { accessProofs, collections, containers, creates, lists, logos } = dependencies;
  const view = (team: TeamDocument) => teamView(team, (logoHash) => logos.link(logoHash));
  const answer = (team: TeamDocument) => ({ body: { team: view(team) } });

  /** Returns the changed team. Its project never changes. */
  const answerChanged = (now: ContainerDocument, { projectId }: TeamDocument) =>
    answer({ ...now, projectId });

  /** Creates a team, over REST and MCP alike. A defaulted project is part of the payload. */
  async function create(
    { body }: { readonly body: NewContainer },
    { audit, deadline, principal, target }: CreateContext,
  ) {
    const { _id: projectId, archivedAt } = target;
    const created = await creates.once({
      kind: "team",
      audit,
      principal,
      deadline,
      idempotencyKey: body.idempotencyKey,
      payload: { ...payloadOf(body), projectId },
      parent: { kind: "project", id: projectId, archivedAt },
      find: (id) => collections.teams.findOne({ _id: id }),
      async prepare(id) {
        const container = await newContainer(id, principal.organizationId, body, dependencies);
        return { record: provenContainer(accessProofs, "team", { ...container, projectId }) };
      },
      capacityRefusal: (session) => containers.teamCapacityRefusal(projectId, session),
      async insert({ record }, session) {
        await collections.teams.insertOne(record, { session });
        return { after: createdOf(record) };
      },
    });
    if (!created.ok) return created;
    const { value } = created;
    return ok(value.replayed ? { status: 200 as const, ...answer(value.record) } : answer(value.made.record));
  }

  return {
    createTeam: create,
    createTeamByTool: create,

    async listTeams({ query: { cursor, limit, projectId, state } }, { principal, target }) {
      const { organizationId } = principal;
      const { bindingFilter } = target;
      const scope = await mostSpecificScope(collections, organizationId, { projectId }, bindingFilter);
      const page = await lists.page<TeamDocument>({
        collection: collections.teams,
        list: "teams",
        filters: { organizationId, projectId, state, bindingFilter },
        equals: scope && { ...teamsIn(scope), ...definedFields({ state }) },
        projection: WITHOUT_RULES,
        limit,
        cursor,
      });
      if (!page.ok) return page;
      const { items, nextCursor } = page.value;
      return ok({ body: { teams: items.map(view), nextCursor } });
    },

    getTeam: (_input, { target }) => Promise.resolve(ok(answer(target))),

    async updateTeam({ body }, { audit, target }) {
      const changed = await containers.change("team", target, body, audit);
      return changed.ok ? ok(answerChanged(changed.value, target)) : changed;
    },

    async archiveTeam(_input, { audit, target }) {
      const archived = await containers.archive("team", target, audit);
      return archived.ok ? ok(answerChanged(archived.value, target)) : archived;
    },
  };
}

/** Returns a scope of teams by the fields of the teams' own records. */
const teamsIn = ({ teamId, ...scope }: EqualityFilter): EqualityFilter =>
  teamId === undefined ? scope : { _id: teamId };
