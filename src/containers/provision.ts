import { provenContainer } from "../store/level-records.ts";
import type { Db } from "mongodb";
import { auditValue } from "../domain/audit/canonical.ts";
import type { AuditRecord } from "../domain/audit/entry.ts";
import type { OrganizationInput } from "../messages/organization.ts";
import type { AuditLog } from "../audit/chain/appender.ts";
import type { ProjectDocument, TeamDocument } from "../store/documents.ts";
import { COLLECTIONS } from "../store/documents.ts";
import type { AccessProofs } from "../secrets/access-proofs.ts";
import type { LedgerStarter, Treasuries } from "../payments/ports.ts";

const DEFAULT_NAME = "General";

export interface ProvisioningDependencies {
  readonly accessProofs: AccessProofs;
  readonly auditLog: AuditLog;
  readonly db: Db;
  readonly ledgerStarter: LedgerStarter;
  readonly treasuries: Treasuries;
}

/**
 * Creates the default project, team and treasury, then marks the organization ready. Repeatable. Throws without any
 * effect if the organization does not exist or has other defaults, since the ids come through Temporal.
 */
export async function provisionOrganization(
  { accessProofs, auditLog, db, ledgerStarter, treasuries }: ProvisioningDependencies,
  input: OrganizationInput,
  now: Date,
): Promise<void> {
  const { organizationId, defaultProjectId, defaultTeamId } = input;
  const organizations = db.collection<ProvisionedOrganization>("organizations");
  const organization = await organizations.findOne({ _id: organizationId, defaultProjectId, defaultTeamId });
  if (organization === null) throw new Error(`no organization ${organizationId} has these defaults`);
  const container = {
    organizationId,
    name: DEFAULT_NAME,
    description: null,
    color: null,
    logoHash: null,
    createdAt: now,
    archivedAt: null,
    state: "active" as const,
  };
  await ledgerStarter.startLedger({ organizationId, projectId: defaultProjectId });
  const projects = db.collection<ProjectDocument>(COLLECTIONS.projects);
  const teams = db.collection<TeamDocument>(COLLECTIONS.teams);
  const { _id: projectId, ...project } = provenContainer(accessProofs, "project", {
    _id: defaultProjectId,
    ...container,
  });
  const inProject = { _id: defaultTeamId, ...container, projectId };
  const { _id: teamId, ...team } = provenContainer(accessProofs, "team", inProject);
  await projects.updateOne({ _id: projectId }, { $setOnInsert: project }, { upsert: true });
  await teams.updateOne({ _id: teamId }, { $setOnInsert: team }, { upsert: true });
  await treasuries.record(organizationId);
  // First entry of the organization's chain, before anything else can happen in it.
  await auditLog.append(creationOf(organization));
  await organizations.updateOne(
    { _id: organizationId },
    { $set: { status: "ready", readyAt: now, isAudited: true } },
  );
}

/** Fields of an organization's record that provisioning reads; the server writes them. */
interface ProvisionedOrganization {
  readonly _id: string;
  readonly defaultProjectId: string;
  readonly defaultTeamId: string;
  readonly name: string;
  readonly plan: string;
  readonly restPerMinute: number | null;
  readonly mcpPerMinute: number | null;
  readonly createdAt: Date;
  readonly createdBy?: "command" | "set-up";
  readonly status: string;
  readonly readyAt: Date | null;
  readonly isAudited?: true;
}

function creationOf(organization: ProvisionedOrganization): AuditRecord {
  const { _id, createdAt, createdBy = "set-up", mcpPerMinute, name, plan, restPerMinute } = organization;
  const surface = createdBy === "command" ? "admin" : "service";
  return {
    organizationId: _id,
    entryKey: "created",
    at: createdAt.getTime(),
    action: "createOrganization",
    actor: { type: "system", id: createdBy },
    resource: { type: "organization", id: _id },
    from: { address: null, surface, via: createdBy === "command" ? "create-organization" : "POST /v1/setup" },
    result: { status: null, code: null },
    before: null,
    after: auditValue({ name, plan, restPerMinute, mcpPerMinute }),
    decision: null,
  };
}
