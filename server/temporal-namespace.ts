import { isGrpcServiceError } from "@temporalio/client";
import { loadTemporalDevConfig, type TemporalDevConfig } from "../src/engines/temporal-config.ts";
import { ConfigError } from "../src/lib/config-error.ts";
import { firstLineOf } from "../src/lib/plain-error.ts";
import type { Connections } from "../src/store/connections.ts";

const CHECK_TIMEOUT_MS = 5_000;

/** gRPC status codes. */
const [INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, UNAUTHENTICATED] = [3, 5, 7, 16];

const PREPARE = "`npm run admin -- prepare`";

/**
 * Refuses a namespace that does not exist, that the credentials may not use, or that lacks search attributes. Checks
 * with a query, which every role in a namespace may run, also on Temporal Cloud. Throws `ConfigError`.
 */
export async function checkNamespace(connections: Connections): Promise<void> {
  const { searchAttributes } = await loadTemporalDevConfig();
  const refused = await refusalOf(connections, Object.keys(searchAttributes));
  if (refused === null) return;
  const { addresses, temporalSecurity } = connections;
  const { temporalNamespace: namespace } = addresses;
  if (refused.code === NOT_FOUND) {
    throw new ConfigError(
      `TEMPORAL_NAMESPACE: Temporal has no namespace ${namespace}; ${PREPARE} creates it.`,
    );
  }
  if (refused.code !== INVALID_ARGUMENT) {
    const settings = ["TEMPORAL_NAMESPACE", ...(temporalSecurity?.settings ?? [])].join(", ");
    throw new ConfigError(`${settings}: Temporal refuses access to ${namespace}: ${refused.reason}`);
  }
  const missing = await missingAttributes(connections, searchAttributes);
  // The query was refused for another reason, which does not affect the service's own queries.
  if (missing.length === 0) return;
  throw new ConfigError(
    `TEMPORAL_NAMESPACE: ${namespace} lacks the search attributes ${missing.join(", ")}; ${PREPARE} registers them.`,
  );
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

/** Returns the query's refusal; null if it was answered, or failed for a reason unrelated to settings. */
async function refusalOf(
  { addresses: { temporalNamespace: namespace }, temporal }: Connections,
  names: readonly string[],
): Promise<Refusal | null> {
  const query = names.map((name) => `${name} = 'none'`).join(" AND ");
  try {
    await temporal.withDeadline(Date.now() + CHECK_TIMEOUT_MS, () =>
      temporal.workflowService.countWorkflowExecutions({ namespace, query }),
    );
  } catch (error) {
    if (!isGrpcServiceError(error)) throw error;
    const { code, details } = error;
    if ([INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, UNAUTHENTICATED].includes(code)) {
      return { code, reason: firstLineOf(details) };
    }
  }
  return null;
}
