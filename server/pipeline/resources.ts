import type { RaiseRequestDocument } from "../../src/store/raise-documents.ts";
import type {
  AgentDocument,
  ApprovalDocument,
  ProjectDocument,
  TeamDocument,
  TransactionDocument,
} from "../../src/store/documents.ts";
import type { ManagementAccess, ResourceKind } from "../../src/contract/types.ts";
import { refusal } from "../../src/domain/errors.ts";
import type { Result } from "../../src/domain/result.ts";
import { ok, refused } from "../../src/domain/result.ts";
import { covers, type ContainerRef, type Reach, reachOf } from "../../src/domain/binding.ts";
import { bindingOf } from "../../src/identity/binding.ts";
import type { AgentProofs } from "../../src/agents/agent-proofs.ts";
import type { AccessProofs } from "../../src/secrets/access-proofs.ts";
import type { Collections } from "../../src/store/collections.ts";
import type { ManagementPrincipal } from "../../src/identity/principals.ts";

export interface ResourceByKind {
  readonly none: null;
  readonly organization: null;
  readonly list: Reach;
  readonly agent: AgentDocument;
  readonly project: ProjectDocument;
  readonly team: TeamDocument;
  readonly transaction: TransactionDocument;
  readonly approval: ApprovalDocument;
  readonly raiseRequest: RaiseRequestDocument;
  /** Team of the new agent. */
  readonly newAgent: TeamDocument;
  readonly newProject: null;
  /** Project of the new team. */
  readonly newTeam: ProjectDocument;
}

/** Parsed parts of a request that can name its target. */
export interface NamedIn {
  readonly params: { readonly id?: string };
  readonly body: { readonly teamId?: string; readonly projectId?: string } | undefined;
}

/** Records, and the proofs that the service wrote them. */
export interface ResourceRecords {
  readonly collections: Collections;
  readonly accessProofs: AccessProofs;
  readonly agentProofs: Pick<AgentProofs, "genuine">;
}

type Find<S extends ResourceKind> = (
  records: ResourceRecords,
  principal: ManagementPrincipal,
  input: NamedIn,
) => Promise<Result<ResourceByKind[S]>> | Result<ResourceByKind[S]>;

const notFound = () => refused(refusal("NOT_FOUND"));
const outside = () => refused(refusal("OUTSIDE_BINDING"));

/**
 * Returns not found for another organization's record, and forbidden for one of the caller's organization outside its
 * binding.
 */
export function inside<T extends { readonly organizationId: string }>(
  found: T | null,
  principal: ManagementPrincipal,
  containerOf: (found: T) => ContainerRef,
): Result<T> {
  if (found === null || found.organizationId !== principal.organizationId) return notFound();
  return covers(bindingOf(principal), containerOf(found)) ? ok(found) : outside();
}

const projectRef = ({ _id }: ProjectDocument): ContainerRef => ({ projectId: _id, teamId: null });
const teamRef = ({ _id, projectId }: TeamDocument): ContainerRef => ({ projectId, teamId: _id });

async function project(records: ResourceRecords, principal: ManagementPrincipal, id: string) {
  const { accessProofs, collections } = records;
  const found = accessProofs.genuine("project", await collections.projects.findOne({ _id: id }));
  return inside(found, principal, projectRef);
}

async function team(records: ResourceRecords, principal: ManagementPrincipal, id: string) {
  const { accessProofs, collections } = records;
  const found = accessProofs.genuine("team", await collections.teams.findOne({ _id: id }));
  return inside(found, principal, teamRef);
}

const isBound = (principal: ManagementPrincipal): boolean => bindingOf(principal).type !== "organization";

const orgNotReady = ({ organization }: ManagementPrincipal): boolean => organization.status !== "ready";

/** Returns a part that the operation's schema guarantees. */
function required(value: string | undefined): string {
  if (value === undefined) throw new Error("an operation's input does not name its target");
  return value;
}

const FINDERS: { readonly [S in ResourceKind]: Find<S> } = {
  none: () => ok(null),
  organization: (_records, principal) => (isBound(principal) ? outside() : ok(null)),
  list: (_records, principal) => ok(reachOf(bindingOf(principal))),
  async agent({ agentProofs, collections: { agents } }, principal, { params }) {
    const found = agentProofs.genuine(await agents.findOne({ _id: required(params.id) }));
    return inside(found, principal, (agent) => agent);
  },
  async transaction({ collections: { transactions } }, principal, { params }) {
    return inside(await transactions.findOne({ _id: required(params.id) }), principal, (found) => found);
  },
  async approval({ collections: { approvals } }, principal, { params }) {
    return inside(await approvals.findOne({ _id: required(params.id) }), principal, (found) => found);
  },
  async raiseRequest({ collections: { raiseRequests } }, principal, { params }) {
    return inside(await raiseRequests.findOne({ _id: required(params.id) }), principal, (found) => found);
  },
  project: (records, principal, { params }) => project(records, principal, required(params.id)),
  team: (records, principal, { params }) => team(records, principal, required(params.id)),
  newAgent(records, principal, { body }) {
    if (orgNotReady(principal)) return refused(refusal("ORG_NOT_READY"));
    return team(records, principal, required(body?.teamId));
  },
  newProject(_records, principal) {
    if (orgNotReady(principal)) return refused(refusal("ORG_NOT_READY"));
    return isBound(principal) ? outside() : ok(null);
  },
  newTeam(records, principal, { body }) {
    if (orgNotReady(principal)) return refused(refusal("ORG_NOT_READY"));
    const binding = bindingOf(principal);
    if (binding.type === "team") return outside();
    const own = binding.type === "project" ? binding.ids[0] : principal.organization.defaultProjectId;
    return project(records, principal, required(body?.projectId ?? own));
  },
};

/** Finds the target of an operation. Existence and the caller's binding are checked only here. */
export const resolveResource = async (
  access: ManagementAccess,
  records: ResourceRecords,
  principal: ManagementPrincipal,
  input: NamedIn,
): Promise<Result<ResourceByKind[ResourceKind]>> => FINDERS[access.subject](records, principal, input);
