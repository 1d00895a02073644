import { TemporalCalls } from "../../src/actors/calls.ts";
import { TemporalActors } from "../../src/actors/temporal.ts";
import {
  type CreatedOrganization,
  type CreateOrganizationInput,
  createOrganizationWithOwner,
} from "../../src/identity/create-organization.ts";
import { AccessProofs } from "../../src/secrets/access-proofs.ts";
import { verifyMasterKey } from "../../src/secrets/verify-master-key.ts";
import type { Passwords } from "../../src/identity/passwords.ts";
import type { Connections } from "../../src/store/connections.ts";
import { AdminError, connected } from "./connecting.ts";

/** Timeout for provisioning. */
const PROVISIONING_TIMEOUT_MS = 60_000;

/**
 * `create-organization`: creates the organization, its owner, its default project and team. Returns when the
 * organization is ready. Repeated after a crash, it completes the same organization.
 */
export const createOrganization = (
  env: NodeJS.ProcessEnv,
  input: CreateOrganizationInput,
  occasion: "command" | "trial" = "command",
): Promise<CreatedOrganization> =>
  connected(env, async (connections, masterKey) => {
    await verifyMasterKey(connections.db, masterKey);
    const accessProofs = new AccessProofs(masterKey.macs("access-proofs"));
    return await createOrganizationOn(connections, accessProofs, input, occasion);
  });

export async function createOrganizationOn(
  connections: Connections,
  accessProofs: AccessProofs,
  input: CreateOrganizationInput,
  occasion: "command" | "trial" = "command",
  passwords?: Passwords,
): Promise<CreatedOrganization> {
  const created = await createOrganizationWithOwner(
    connections.db,
    accessProofs,
    input,
    undefined,
    occasion,
    passwords,
  );
  if (!created.ok) {
    const issues = (created.refusal.issues ?? []).map(({ path, message }) => `${path}: ${message}`);
    throw new AdminError(issues.length === 0 ? created.refusal.message : issues.join(" "));
  }
  await provision(connections, created.value);
  return created.value;
}

async function provision({ addresses, temporal }: Connections, created: CreatedOrganization): Promise<void> {
  const { organizationId, projectId, teamId } = created;
  const actors = new TemporalActors(new TemporalCalls(temporal, addresses.taskQueue));
  const input = { organizationId, defaultProjectId: projectId, defaultTeamId: teamId };
  if (await actors.provision(input, PROVISIONING_TIMEOUT_MS)) return;
  const seconds = PROVISIONING_TIMEOUT_MS / 1_000;
  throw new AdminError(
    `The organization is not ready after ${seconds} s; does a worker run? Repeat the command to keep waiting.`,
  );
}
