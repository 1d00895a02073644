import { setTimeout as sleep } from "node:timers/promises";
import { isGrpcServiceError } from "@temporalio/client";
import proto from "@temporalio/proto";
import type { Db } from "mongodb";
import { addMissingAttributes } from "../../src/engines/search-attributes.ts";
import { loadTemporalDevConfig, type TemporalDevConfig } from "../../src/engines/temporal-config.ts";
import { createLogger } from "../../src/lib/logger.ts";
import { firstLineOf } from "../../src/lib/plain-error.ts";
import { type Connections, withRights } from "../../src/store/connections.ts";
import { readConfig } from "../config.ts";
import { ensureIndexes } from "../indexes.ts";
import { missingAttributes } from "../temporal-namespace.ts";
import { AdminError, connected } from "./connecting.ts";

const CALL_TIMEOUT_MS = 10_000;

/**
 * Timeout for all frontends to learn of a new namespace or search attribute: they refresh their caches every 10 to 60
 * s.
 */
const KNOWN_TIMEOUT_MS = 120_000;
const KNOWN_INTERVAL_MS = 500;

const SECONDS_PER_DAY = 86_400;

/** gRPC status codes. */
const [NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED, UNIMPLEMENTED, UNAUTHENTICATED] = [5, 6, 7, 12, 16];
const NOT_ALLOWED: readonly (number | null)[] = [PERMISSION_DENIED, UNIMPLEMENTED, UNAUTHENTICATED];

const codeOf = (error: unknown): number | null => (isGrpcServiceError(error) ? error.code : null);

export interface Prepared {
  readonly namespace: string;
  readonly namespaceCreated: boolean;
  readonly searchAttributesAdded: readonly string[];
  readonly indexesCreated: number;
}

/** `prepare`: readies the engines for a first start or for a newer version. Does nothing if nothing is missing. */
export const prepare = (env: NodeJS.ProcessEnv): Promise<Prepared> =>
  connected(env, async (connections) => {
    const { retention } = readConfig(env, "127.0.0.1");
    const config = await loadTemporalDevConfig();
    const { addresses, db, temporal } = connections;
    const namespaceCreated = await temporal.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
      ensureNamespace(connections, config),
    );
    const searchAttributesAdded = await ensureAttributes(connections, config);
    const before = await countIndexes(db);
    const logger = createLogger({ level: "silent", file: null });
    await withRights(db, () => ensureIndexes(addresses.mongodbUri, retention, logger));
    return {
      namespace: addresses.temporalNamespace,
      namespaceCreated,
      searchAttributesAdded,
      indexesCreated: (await countIndexes(db)) - before,
    };
  });

/**
 * Creates the namespace if it is missing. Returns whether it was created. Credentials that may not look it up are
 * assumed to belong to an existing namespace.
 */
async function ensureNamespace(
  { addresses: { temporalNamespace: namespace }, temporal: { workflowService } }: Connections,
  { namespace: { retentionDays } }: TemporalDevConfig,
): Promise<boolean> {
  try {
    await workflowService.describeNamespace({ namespace });
    return false;
  } catch (error) {
    const code = codeOf(error);
    if (NOT_ALLOWED.includes(code)) return false;
    if (code !== NOT_FOUND) throw error;
  }
  try {
    const seconds = retentionDays * SECONDS_PER_DAY;
    const workflowExecutionRetentionPeriod = proto.google.protobuf.Duration.fromObject({ seconds });
    await workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod });
    return true;
  } catch (error) {
    const code = codeOf(error);
    if (code === ALREADY_EXISTS) return false;
    if (!NOT_ALLOWED.includes(code)) throw error;
    throw new AdminError(
      `TEMPORAL_NAMESPACE: there is no ${namespace}, and these credentials may not create it (${firstLineOf(error)}); create it as an administrator, such as by \`temporal operator namespace create --namespace ${namespace}\`, then run this again.`,
    );
  }
}

async function ensureAttributes(
  connections: Connections,
  { searchAttributes }: TemporalDevConfig,
): Promise<readonly string[]> {
  const { addresses, temporalOperator } = connections;
  const { temporalNamespace: namespace } = addresses;
  const untilMs = performance.now() + KNOWN_TIMEOUT_MS;
  let added: readonly string[] = [];
  for (;;) {
    try {
      added = [...added, ...(await addMissingAttributes(temporalOperator, namespace, searchAttributes))];
      if ((await missingAttributes(connections, searchAttributes)).length === 0) return added;
    } catch (error) {
      const code = codeOf(error);
      if (NOT_ALLOWED.includes(code)) return refuseMissing(connections, searchAttributes, error);
      // This frontend does not know the new namespace yet.
      if (code !== NOT_FOUND) throw error;
    }
    if (performance.now() > untilMs)
      throw new AdminError(
        `TEMPORAL_NAMESPACE: Temporal does not know all search attributes of ${namespace} yet; run this again.`,
      );
    await sleep(KNOWN_INTERVAL_MS);
  }
}

/** Throws if a search attribute is missing. Credentials that may not register attributes suffice if none is. */
async function refuseMissing(
  connections: Connections,
  searchAttributes: TemporalDevConfig["searchAttributes"],
  error: unknown,
): Promise<readonly string[]> {
  const missing = await missingAttributes(connections, searchAttributes);
  if (missing.length === 0) return [];
  const { temporalNamespace: namespace } = connections.addresses;
  const flags = missing.map((name) => `--name ${name} --type ${searchAttributes[name] ?? ""}`).join(" ");
  throw new AdminError(
    `TEMPORAL_NAMESPACE: ${namespace} lacks search attributes, and these credentials may not register them (${firstLineOf(error)}); register them as an administrator: \`temporal operator search-attribute create --namespace ${namespace} ${flags}\`.`,
  );
}

async function countIndexes(db: Db): Promise<number> {
  const collections = await db.listCollections({ type: "collection" }, { nameOnly: true }).toArray();
  const indexes = await Promise.all(
    collections
      .filter(({ name }) => !name.startsWith("system."))
      .map(({ name }) => db.collection(name).indexes()),
  );
  return indexes.flat().length;
}
