import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "mongodb";
import type { Connections } from "../../../src/store/connections.ts";
import { AdminError, connected } from "../connecting.ts";
import type { MasterKey } from "../../../src/secrets/master-key.ts";
import { verifyMasterKey } from "../../../src/secrets/verify-master-key.ts";
import { findMasterKey, requireMasterKey } from "../master-key.ts";
import { compareAccess } from "./access.ts";
import { compareAgent } from "./agents.ts";
import type { AgentSources } from "./sources.ts";
import { compareProject } from "./ledgers.ts";
import { type Difference, signatureOf } from "./difference.ts";
import { RAILS } from "../../../src/domain/ledger/payment.ts";
import type { CardIssuerKind } from "../../../src/payments/card-issuer.ts";
import { CardConnections } from "../../../src/rails/card/connections.ts";
import { cardIssuers } from "../../../src/rails/card/issuers.ts";
import { Sealer } from "../../../src/secrets/sealer.ts";
import { readCardNetworkUrl } from "../../config.ts";
import { RAIL_FOLDERS } from "../../../src/rails/rails.ts";
import { RecordProofs } from "./proofs.ts";
import { SourceReader, type Focus, type OrganizationSources } from "./reader.ts";
import { recordRepairs, type Repaired, repairAll } from "./repair.ts";

export interface ReconcileOptions {
  /** Null for all organizations. */
  readonly organizationId: string | null;
  readonly repair: boolean;
  /** Maximum time for which work in flight may look like a difference. */
  readonly patienceMs: number;
  readonly onProgress: (line: string) => void;
  /** Set only by tests. */
  readonly cardIssuers?: readonly CardIssuerKind[];
}

/** Delay before the second look. Each further delay doubles. */
const FIRST_RECHECK_DELAY_MS = 1_000;
const AGENTS_PER_PROGRESS = 500;

export interface Reconciled {
  readonly organizations: number;
  readonly agents: number;
  readonly payments: number;
  readonly projects: number;
  /** All differences found, repaired or not. */
  readonly differences: readonly Difference[];
  readonly repaired: readonly Repaired[];
  readonly left: readonly Difference[];
  /** Comparisons that could not be made, with the reasons. */
  readonly notes: readonly string[];
}

/**
 * `reconcile`: compares agents' actors and projects' ledgers with each other and with the records, and all payments
 * with what the rails executed. Writes only with `repair`.
 */
export const reconcile = (env: NodeJS.ProcessEnv, options: ReconcileOptions): Promise<Reconciled> =>
  connected(env, (connections) => reconcileOn(connections, env, options));

export async function reconcileOn(
  connections: Connections,
  env: NodeJS.ProcessEnv,
  options: ReconcileOptions,
): Promise<Reconciled> {
  const masterKey = await masterKeyFor(connections.db, env, options);
  const pocketKey = masterKey?.deriveFirst("pocket-keys") ?? null;
  const kinds = options.cardIssuers ?? cardIssuers(readCardNetworkUrl(env));
  const cardConnections =
    masterKey === null
      ? null
      : new CardConnections({
          db: connections.db,
          sealer: new Sealer(masterKey),
          kinds,
          clock: () => new Date(),
        });
  const proofs = masterKey === null ? null : new RecordProofs(masterKey);
  const accessProofs = proofs?.access ?? null;
  const reader = new SourceReader(connections, env, { accessProofs, pocketKey, cardConnections });
  const all = await reader.organizations();
  const { organizationId } = options;
  if (organizationId !== null && !all.includes(organizationId))
    throw new AdminError(`There is no organization ${organizationId}.`);
  const results: OrganizationResult[] = [];
  for (const id of organizationId === null ? all : [organizationId]) {
    const run = new OrganizationRun(reader, proofs, id, options);
    const found = await run.all();
    if (masterKey === null || proofs === null || !options.repair) results.push(found);
    else
      results.push(await repaired({ db: connections.db, masterKey, proofs, organizationId: id }, run, found));
  }
  const sum = (count: (result: OrganizationResult) => number): number =>
    results.reduce((total, result) => total + count(result), 0);
  return {
    organizations: results.length,
    agents: sum(({ agents }) => agents),
    payments: sum(({ payments }) => payments),
    projects: sum(({ projects }) => projects),
    differences: results.flatMap(({ differences }) => differences),
    repaired: results.flatMap((result) => result.repaired),
    left: results.flatMap(({ left }) => left),
    notes: [...(proofs === null ? [WITHOUT_PROOFS] : []), ...results.flatMap(({ notes }) => notes)],
  };
}

const WITHOUT_PROOFS =
  "MASTER_KEY is not set: people, keys, containers and their rules, agents' keys and scopes, and what is recorded of ended payments, were not checked against their proofs.";

type OrganizationResult = Omit<Reconciled, "organizations">;

interface RepairedIn {
  readonly db: Db;
  readonly masterKey: MasterKey;
  readonly proofs: RecordProofs;
  readonly organizationId: string;
}

/**
 * Returns the master key before anything is read, since no repair is made without its audit entry. Null if there is
 * none and none is needed.
 */
async function masterKeyFor(
  db: Db,
  env: NodeJS.ProcessEnv,
  { repair }: ReconcileOptions,
): Promise<MasterKey | null> {
  const masterKey = repair ? await requireMasterKey(env) : await findMasterKey(env);
  if (masterKey !== null) await verifyMasterKey(db, masterKey);
  return masterKey;
}

/** Repairs behind the audit entry, then compares again what could not be repaired, since that may have been a consequence. */
async function repaired(
  { db, masterKey, organizationId, proofs }: RepairedIn,
  run: OrganizationRun,
  found: OrganizationResult,
): Promise<OrganizationResult> {
  await recordRepairs(db, masterKey, organizationId, found.differences);
  const outcome = await repairAll(db, proofs, found.differences);
  const left = outcome.repaired.length === 0 ? outcome.left : await run.certain(outcome.left);
  return { ...found, ...outcome, left };
}

/**
 * Comparison of one organization: one look at everything, then further looks at the differences until each is confirmed
 * or gone.
 */
class OrganizationRun {
  readonly #reader: SourceReader;
  readonly #proofs: RecordProofs | null;
  readonly #organizationId: string;
  readonly #options: ReconcileOptions;

  constructor(
    reader: SourceReader,
    proofs: RecordProofs | null,
    organizationId: string,
    options: ReconcileOptions,
  ) {
    this.#reader = reader;
    this.#proofs = proofs;
    this.#organizationId = organizationId;
    this.#options = options;
  }

  async all(): Promise<OrganizationResult> {
    const total = await this.#reader.countAgents(this.#organizationId);
    let asked = 0;
    const sources = await this.#reader.sources(this.#organizationId, null, () => {
      asked += 1;
      if (asked % AGENTS_PER_PROGRESS === 0 || asked === total)
        this.#say(`${String(asked)} of ${String(total)} agents read`);
    });
    refuseSilence(sources.agents);
    const differences = await this.certain(differencesIn(sources, this.#proofs));
    const { agents, onRails, payments, projects } = sources;
    return {
      agents: agents.length,
      payments: payments.length,
      projects: projects.length,
      differences,
      repaired: [],
      left: differences,
      notes: onRails.flatMap(([, found]) => (typeof found === "string" ? [found] : [])),
    };
  }

  /**
   * Returns the differences that a second look confirms. A difference that work in flight can cause must persist for
   * `patienceMs`.
   */
  async certain(found: readonly Difference[]): Promise<readonly Difference[]> {
    let suspects = found;
    const certain: Difference[] = [];
    const end = Date.now() + this.#options.patienceMs;
    for (let pauseMs = FIRST_RECHECK_DELAY_MS; suspects.length > 0; pauseMs *= 2) {
      const isLast = Date.now() + pauseMs >= end;
      this.#say(`${String(suspects.length)} differences are checked again`);
      await sleep(Math.max(0, Math.min(pauseMs, end - Date.now())));
      const known = new Set(suspects.map(signatureOf));
      const focus = focusOn(suspects);
      const sources = await this.#reader.sources(this.#organizationId, focus, () => undefined);
      const again = differencesIn(sources, this.#proofs).filter((each) => known.has(signatureOf(each)));
      certain.push(...again.filter(({ mayBeInFlight }) => isLast || !mayBeInFlight));
      suspects = isLast ? [] : again.filter(({ mayBeInFlight }) => mayBeInFlight);
    }
    return certain;
  }

  #say(line: string): void {
    this.#options.onProgress(`${this.#organizationId}: ${line}`);
  }
}

/** Throws if no actor answers at all, since then the actors are not what is wrong. */
function refuseSilence(agents: readonly AgentSources[]): void {
  if (agents.length === 0 || agents.some(({ actor }) => actor !== "silent")) return;
  throw new AdminError("No actor answers. Check that a worker of the current build runs on this task queue.");
}

function differencesIn(
  { access, agents, onRails, payments, projects }: OrganizationSources,
  proofs: RecordProofs | null,
): Difference[] {
  const paidBy = new Map(payments.map(({ agentId, id }) => [id, agentId]));
  const railDifferences = onRails.flatMap(([{ advice, kind }, found]) => {
    if (typeof found === "string") return [];
    return found.map((finding): Difference => ({
      ...finding,
      kind,
      of: "payment",
      agentId: paidBy.get(finding.id) ?? null,
      projectId: null,
      advice,
      repair: null,
    }));
  });
  return [
    ...agents.flatMap((sources) => compareAgent(sources, proofs)),
    ...projects.flatMap(compareProject),
    ...(proofs === null ? [] : compareAccess(access, proofs.access)),
    ...railDifferences,
  ];
}

const isByRail = ({ kind }: Difference): boolean =>
  RAILS.some((rail) => RAIL_FOLDERS[rail].reconciliations.some((each) => each.kind === kind));

function focusOn(suspects: readonly Difference[]): Focus {
  const ids = (select: (suspect: Difference) => string | null): ReadonlySet<string> =>
    new Set(suspects.map(select).filter((id) => id !== null));
  return {
    agentIds: ids(({ agentId }) => agentId),
    projectIds: ids(({ projectId }) => projectId),
    paymentIds: ids((suspect) => (isByRail(suspect) ? suspect.id : null)),
  };
}
