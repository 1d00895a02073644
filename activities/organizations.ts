import type { Db } from "mongodb";
import type { OrganizationInput } from "../src/messages/organization.ts";
import type { ProjectDocument, TeamDocument } from "./documents.ts";
import { COLLECTIONS } from "./documents.ts";

const DEFAULT_NAME = "General";

/** Creates the default project and team (decisions.md section 2), then marks the organization ready. Repeatable. */
export async function provisionOrganization(db: Db, input: OrganizationInput, now: Date): Promise<void> {
  const { organizationId, defaultProjectId, defaultTeamId } = input;
  const container = {
    organizationId,
    name: DEFAULT_NAME,
    description: null,
    color: null,
    logoHash: null,
    createdAt: now,
    archivedAt: null,
  };
  const projects = db.collection<ProjectDocument>(COLLECTIONS.projects);
  const teams = db.collection<TeamDocument>(COLLECTIONS.teams);
  await projects.updateOne({ _id: defaultProjectId }, { $setOnInsert: container }, { upsert: true });
  await teams.updateOne(
    { _id: defaultTeamId },
    { $setOnInsert: { ...container, projectId: defaultProjectId } },
    { upsert: true },
  );
  await db
    .collection<{ _id: string; status: string; readyAt: Date | null }>("organizations")
    .updateOne({ _id: organizationId }, { $set: { status: "ready", readyAt: now } });
}
