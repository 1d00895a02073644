import { isGrpcServiceError } from "@temporalio/client";
import { loadTemporalDevConfig, type TemporalDevConfig } from "../src/engines/temporal-config.ts";
import { ConfigError } from "../src/lib/config-error.ts";
import { newUuid } from "../src/lib/ids.ts";
import { firstLineOf } from "../src/lib/plain-error.ts";
import type { Connections } from "../src/store/connections.ts";

const CHECK_TIMEOUT_MS = 5_000;

/** gRPC status codes. */
const [INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, UNAUTHENTICATED] = [3, 5, 7, 16];

const PREPARE = "`npm run admin -- prepare`";

/**
 * Refuses a namespace that does not exist, that the credentials may not read or write, or that lacks search attributes.
 * Throws `ConfigError`.
 */
export async function checkNamespace(connections: Connections): Promise<void> {
  await checkReading(connections);
  await checkWriting(connections);
}

/** Checks with a query, which every role in a namespace may run, also on Temporal Cloud. */
async function checkReading(connections: Connections): Promise<void> {
  const { searchAttributes } = await loadTemporalDevConfig();
  const refused = await refusalOf(connections, Object.keys(searchAttributes));
  if (refused === null) return;
  const { temporalNamespace: namespace } = connections.addresses;
  if (refused.code === NOT_FOUND) {
    throw new ConfigError(
      `TEMPORAL_NAMESPACE: Temporal has no namespace ${namespace}; ${PREPARE} creates it.`,
    );
  }
  if (refused.code !== INVALID_ARGUMENT) throw accessRefused(connections, "access to", refused);
  const missing = await missingAttributes(connections, searchAttributes);
  // The query was refused for another reason, which does not affect the service's own queries.
  if (missing.length === 0) return;
  throw new ConfigError(
    `TEMPORAL_NAMESPACE: ${namespace} lacks the search attributes ${missing.join(", ")}; ${PREPARE} registers them.`,
  );
}

/** Checks with a signal to a workflow that does not exist, which changes nothing. */
async function checkWriting(connections: Connections): Promise<void> {
  const { addresses, temporal } = connections;
  const refused = await refusalBy(connections, () =>
    temporal.workflowService.signalWorkflowExecution({
      namespace: addresses.temporalNamespace,
      workflowExecution: { workflowId: `write-check/${newUuid()}` },
      signalName: "check",
    }),
  );
  if (refused === null || ![PERMISSION_DENIED, UNAUTHENTICATED].includes(refused.code)) return;
  throw accessRefused(connections, "writes to", refused);
}

function accessRefused(
  { addresses, temporalSecurity }: Connections,
  what: "access to" | "writes to",
  { reason }: Refusal,
): ConfigError {
  const settings = ["TEMPORAL_NAMESPACE", ...(temporalSecurity?.settings ?? [])].join(", ");
  return new ConfigError(`${settings}: Temporal refuses ${what} ${addresses.temporalNamespace}: ${reason}`);
}

/** Returns the search attributes that queries in the namespace cannot use. */
export async function missingAttributes(
  connections: Connections,
  declared: TemporalDevConfig["searchAttributes"],
): Promise<string[]> {
  const found = await Promise.all(
    Object.keys(declared).map(async (name) =>
      (await refusalOf(connections, [name])) === null ? null : name,
    ),
  );
  return found.filter((name) => name !== null);
}

interface Refusal {
  readonly code: number;
  readonly reason: string;
}

function refusalOf(connections: Connections, names: readonly string[]): Promise<Refusal | null> {
  const { addresses, temporal } = connections;
  const query = names.map((name) => `${name} = 'none'`).join(" AND ");
  return refusalBy(connections, () =>
    temporal.workflowService.countWorkflowExecutions({ namespace: addresses.temporalNamespace, query }),
  );
}

/** Returns the call's refusal; null if it was answered, or failed for a reason unrelated to settings. */
async function refusalBy({ temporal }: Connections, call: () => Promise<unknown>): Promise<Refusal | null> {
  try {
    await temporal.withDeadline(Date.now() + CHECK_TIMEOUT_MS, call);
  } catch (error) {
    if (!isGrpcServiceError(error)) throw error;
    const { code, details } = error;
    if ([INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, UNAUTHENTICATED].includes(code)) {
      return { code, reason: firstLineOf(details) };
    }
  }
  return null;
}
