import { readLiveRuntimeFile } from "../../src/engines/runtime-file.ts";
import { TemporalActors } from "../actors/temporal.ts";
import {
  type CreatedOrganization,
  type CreateOrganizationInput,
  createOrganizationWithOwner,
} from "../auth/create-organization.ts";
import { readAddresses, readConfig, readTaskQueue } from "../config.ts";
import { type Addresses, connect, type Connections } from "../connections.ts";

/** Why an admin command did nothing, in a line for the operator. */
export class AdminError extends Error {
  override readonly name = "AdminError";
}

/** How long provisioning may take before the command gives up waiting for it. */
const PROVISIONING_MS = 60_000;

/**
 * `create-organization` (decisions.md section 2): the organization, its owner, its default project and team. Answers
 * when the organization is ready. Repeated after a crash it finishes the same organization.
 */
export async function createOrganization(
  env: NodeJS.ProcessEnv,
  input: CreateOrganizationInput,
): Promise<CreatedOrganization> {
  const connections = await connect(await addressesOf(env));
  try {
    const created = await createOrganizationWithOwner(connections.db, input);
    if (!created.ok) {
      const issues = (created.refusal.issues ?? []).map(({ path, message }) => `${path}: ${message}`);
      throw new AdminError(issues.length === 0 ? created.refusal.message : issues.join(" "));
    }
    await provision(connections, created.value);
    return created.value;
  } finally {
    await connections.close();
  }
}

/** The service that runs on the DATA_DIR, or the engines that the environment names. */
async function addressesOf(env: NodeJS.ProcessEnv): Promise<Addresses> {
  if (env["MONGODB_URI"] !== undefined && env["TEMPORAL_ADDRESS"] !== undefined) return readAddresses(env);
  const { dataDir } = readConfig(env, "127.0.0.1");
  const running = await readLiveRuntimeFile(dataDir);
  if (running === null) {
    throw new AdminError(
      `No service runs on ${dataDir}; start it with \`npm start\`, or set DATA_DIR to its folder.`,
    );
  }
  return {
    mongodbUri: running.mongodb.uri,
    temporalAddress: running.temporal.address,
    temporalNamespace: running.temporal.namespace,
    taskQueue: readTaskQueue(env),
    evmRpcUrl: running.chain.rpcUrl,
  };
}

async function provision({ addresses, temporal }: Connections, created: CreatedOrganization): Promise<void> {
  const { organizationId, projectId, teamId } = created;
  const actors = new TemporalActors(temporal, addresses.taskQueue);
  const input = { organizationId, defaultProjectId: projectId, defaultTeamId: teamId };
  if (await actors.provision(input, PROVISIONING_MS)) return;
  const seconds = PROVISIONING_MS / 1_000;
  throw new AdminError(
    `The organization is not ready after ${seconds} s; does a worker run? The same command again goes on waiting.`,
  );
}
