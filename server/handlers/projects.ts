import { provenContainer } from "../../src/store/level-records.ts";
import type { ProjectDocument } from "../../src/store/documents.ts";
import { ok } from "../../src/domain/result.ts";
import type { AuditedWrites } from "../../src/audit/notes.ts";
import { WITHOUT_RULES } from "../../src/containers/containers.ts";
import { createdOf, type NewContainer, newContainer, payloadOf } from "../../src/containers/new-container.ts";
import type { Deadline } from "../../src/lib/deadline.ts";
import { definedFields } from "../../src/store/lists.ts";
import type { ManagementPrincipal } from "../../src/identity/principals.ts";
import { projectView } from "../../src/views/views.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

type ProjectHandlers = Pick<
  Handlers,
  "createProject" | "createProjectByTool" | "listProjects" | "getProject" | "updateProject" | "archiveProject"
>;

interface CreateContext {
  readonly audit: AuditedWrites;
  readonly deadline: Deadline;
  readonly principal: ManagementPrincipal;
}

export function projectHandlers(dependencies: HandlerDependencies): ProjectHandlers {
  const { accessProofs, actors, collections, containers, creates, lists, logos } = dependencies;
  const view = (project: ProjectDocument) => projectView(project, (logoHash) => logos.link(logoHash));
  const answer = (project: ProjectDocument) => ({ body: { project: view(project) } });

  /** Creates a project, over REST and MCP alike. */
  async function create(
    { body }: { readonly body: NewContainer },
    { audit, deadline, principal }: CreateContext,
  ) {
    const created = await creates.once({
      kind: "project",
      audit,
      principal,
      deadline,
      idempotencyKey: body.idempotencyKey,
      payload: payloadOf(body),
      parent: null,
      find: (id) => collections.projects.findOne({ _id: id }),
      async prepare(id) {
        const { organizationId } = principal;
        // The ledger starts before it has anything to decide. Once the project has its record, the ledger is never
        // started again.
        await actors.startLedger({ organizationId, projectId: id });
        const record = await newContainer(id, organizationId, body, dependencies);
        return { record: provenContainer(accessProofs, "project", record) };
      },
      async insert({ record }, session) {
        await collections.projects.insertOne(record, { session });
        return { after: createdOf(record) };
      },
    });
    if (!created.ok) return created;
    const { value } = created;
    return ok(value.replayed ? { status: 200 as const, ...answer(value.record) } : answer(value.made.record));
  }

  return {
    createProject: create,
    createProjectByTool: create,

    async listProjects({ query: { cursor, limit, state } }, { principal: { organizationId }, target }) {
      const { projects: within } = target;
      const page = await lists.page<ProjectDocument>({
        collection: collections.projects,
        list: "projects",
        filters: { organizationId, state, within },
        equals: { ...(within === null ? { organizationId } : { _id: within }), ...definedFields({ state }) },
        projection: WITHOUT_RULES,
        limit,
        cursor,
      });
      if (!page.ok) return page;
      const { items, nextCursor } = page.value;
      return ok({ body: { projects: items.map(view), nextCursor } });
    },

    getProject: (_input, { target }) => Promise.resolve(ok(answer(target))),

    async updateProject({ body }, { audit, target }) {
      const changed = await containers.change("project", target, body, audit);
      return changed.ok ? ok(answer(changed.value)) : changed;
    },

    async archiveProject(_input, { audit, target }) {
      const archived = await containers.archive("project", target, audit);
      return archived.ok ? ok(answer(archived.value)) : archived;
    },
  };
}
