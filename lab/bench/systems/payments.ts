import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "mongodb";
import { createOrganization } from "../../../server/admin/create-organization.ts";
import { connectMongo } from "../../../src/store/connections.ts";
import {
  type AccountSnapshot,
  SNAPSHOT_QUERY,
  type SnapshotPage,
  type SnapshotQueryInput,
  ledgerWorkflowId,
} from "../../../src/messages/ledger.ts";
import { type Case, SPREAD_AGENTS } from "../cases.ts";
import { Child } from "../child.ts";
import { Histories } from "../histories.ts";
import type { ServiceConfig } from "../processes/service.ts";
import { auditPayments, capturedByProcessor, auditedDecisions } from "./payments-audit.ts";
import { CAPPED_TEAMS, createTeam, differingUse, setCaps } from "./caps.ts";
import { createAgents, type PayingAgent, signIn } from "./payments-agents.ts";
import { allDelivered, deliveredPayments, Receiver, strand } from "./receiver.ts";
import { prepareWallets, spentOnChain } from "./wallets.ts";
import { makeIdleAgents } from "./idle-agents.ts";
import { openPages } from "./pages.ts";
import { Runaway } from "./runaway.ts";
import { type Patience, SlowShops } from "./slow-shops.ts";
import { startWaiting } from "./waiting.ts";
import type { Site, System } from "./system.ts";
import { ORDER, portOf, serviceEnvironment, TRANSFER } from "./system.ts";

/** Longer than the actor leaves a confirmation out before it acts by itself (10 s). */
const SETTLE_MS = 30_000;
const SETTLE_POLL_MS = 500;
/** Records follow a little behind, and their confirmations after them. */
const RECORDED_MS = 1_500;
/** The most that a ledger answers. */
const ACCOUNTS_AT_ONCE = 1_000;
/** Maximum time to make a project's idle agents. */
const MADE_MS = 900_000;

/** Differences between the rails that agents pay on. */
interface Paying {
  readonly name: string;
  /**
   * Pays in an organization of its own on the service that the payments by card are measured on, where that runs: two starts of the same
   * code differ by more than what is measured.
   */
  readonly sharesPaymentsService?: boolean;
  /** Teams that the agents are in by turns. */
  readonly teams: number;
  readonly auditsPaymentDecisions?: boolean;
  readonly order: Readonly<Record<string, unknown>>;
  /** Prepares agents for paying; returns the number of payments that it made. */
  readonly prepare: (
    agents: readonly PayingAgent[],
    port: number,
    token: string,
    place: PaidIn,
  ) => Promise<number>;
  /** Returns further disagreements with what was spent; none by default. */
  readonly used?: (
    spentCents: number,
    port: number,
    token: string,
    place: PaidIn,
  ) => Promise<readonly string[]>;
  /** Returns the approved payments in the rail's own books, by name. */
  readonly onRail: (db: Db, organizationId: string, site: Site) => Promise<Readonly<Record<string, number>>>;
  /** Endpoint of its webhooks; none by default. */
  readonly hooks?: Hooks;
  /** Starts work beside it. */
  readonly begin?: typeof startWaiting;
  readonly settings?: NodeJS.ProcessEnv;
  /** Agents that do something else beside those that are measured, while these are. */
  readonly rival?: (port: number, all: readonly PayingAgent[]) => Rival;
}

interface Rival {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Payments of ORDER that it has made. */
  readonly paid: number;
}

interface Hooks {
  readonly receiver: Receiver;
  /** Done before any payment of the bench. */
  readonly open: (scene: Scene) => Promise<void>;
  /** Waits until nothing is left to deliver that was published. */
  readonly settle: (db: Db) => Promise<void>;
}

interface Scene {
  readonly db: Db;
  readonly port: number;
  readonly token: string;
  readonly agents: readonly PayingAgent[];
}

/** Place of the agents. */
interface PaidIn {
  readonly organizationId: string;
  readonly projectId: string;
  readonly teamIds: readonly string[];
}

const BY_CARD: Paying = {
  name: "payments",
  teams: 1,
  order: ORDER,
  prepare: () => Promise.resolve(0),
  onRail: capturedByProcessor,
};

/** The service without audit entries for decisions on payments, to measure their cost. */
const UNAUDITED: Paying = { ...BY_CARD, name: "unaudited", auditsPaymentDecisions: false };

/** Payloads of this bench's Temporal are in the clear otherwise, as embedded. */
const ENCRYPTED: Paying = {
  ...BY_CARD,
  name: "encrypted",
  settings: { TEMPORAL_PAYLOAD_ENCRYPTION: "true" },
};

const FROM_WALLETS: Paying = {
  name: "wallet",
  teams: 1,
  order: TRANSFER,
  prepare: prepareWallets,
  onRail: (db, _organizationId, { evmRpcUrl }) => spentOnChain(db, evmRpcUrl),
};

/** Payments under a cap over each team and one over the project, none of which is ever reached. */
const UNDER_CAPS: Paying = {
  ...BY_CARD,
  name: "capped",
  sharesPaymentsService: true,
  teams: CAPPED_TEAMS,
  prepare: async (_agents, port, token, place) => {
    await setCaps(port, token, place);
    return 0;
  },
  used: differingUse,
};

/** (b) The service itself, whole: payments by card over REST. */
export const startPayments = (site: Site): Promise<System> => startPaying(site, BY_CARD);

export const startUnauditedPayments = (site: Site): Promise<System> => startPaying(site, UNAUDITED);

/** Payments whose payloads are encrypted in Temporal. */
export const startEncryptedPayments = (site: Site): Promise<System> => startPaying(site, ENCRYPTED);

/** Payments from agents' wallets on the local chain, answered once they are final. */
export const startWalletPayments = (site: Site): Promise<System> => startPaying(site, FROM_WALLETS);

/** Payments by card under caps on both levels, over all teams. */
export const startCappedPayments = (site: Site): Promise<System> => startPaying(site, UNDER_CAPS);

/** Payments in a project with many more agents, which are idle. */
export const startPaymentsAmong = (site: Site, count: number): Promise<System> =>
  startPaying(site, {
    ...BY_CARD,
    name: `among_${String(count)}`,
    prepare: async (_agents, _port, _token, { organizationId, projectId, teamIds: [teamId = ""] }) => {
      const name = `bench_among_${String(count)}`;
      const { db, mongo } = await connectMongo(String(serviceEnvironment(site, name)["MONGODB_URI"]));
      const made = await makeIdleAgents({
        db,
        temporal: site.temporal,
        taskQueue: String(serviceEnvironment(site, name)["TEMPORAL_TASK_QUEUE"]),
        place: { organizationId, projectId, teamId },
        count,
        withinMs: MADE_MS,
      });
      await mongo.close();
      if (made.length < count) throw new Error(`only ${String(made.length)} agents were made in time`);
      return 0;
    },
  });

/** Payments while the hot agent sends 200 at a time. */
export const startPaymentsBesideRunaway = (site: Site): Promise<System> =>
  startPaying(site, {
    ...BY_CARD,
    name: "runaway",
    sharesPaymentsService: true,
    // The hot agent is the one that runs away.
    rival: (port, all) => new Runaway(port, ORDER, all.slice(SPREAD_AGENTS)),
  });

/** Payments while callers of the same agents buy from shops that never finish. */
export const startPaymentsBesideShops = (site: Site, patience: Patience): Promise<System> =>
  startPaying(site, {
    ...BY_CARD,
    name: `shops_${patience}`,
    sharesPaymentsService: true,
    rival: (port, all) => new SlowShops(port, all, patience),
  });

/** Payments with an endpoint for every event. */
export async function startNotifiedPayments(site: Site): Promise<System> {
  const receiver = await Receiver.start(site, "delivered", "answers");
  return startPaying(site, {
    ...BY_CARD,
    name: "delivered",
    hooks: {
      receiver,
      open: async ({ port, token }) => void (await receiver.subscribe(port, token, ["*"])),
      settle: allDelivered,
    },
    onRail: async (db, organizationId) => ({
      ...(await capturedByProcessor(db, organizationId)),
      ...(await deliveredPayments(db, receiver)),
    }),
  });
}

/** Payments beside deliveries that never end, since their receiver accepts requests and answers none. */
export async function startPaymentsBesideStuck(site: Site): Promise<System> {
  const receiver = await Receiver.start(site, "stuck", "hangs");
  return startPaying(site, {
    ...BY_CARD,
    name: "stuck",
    hooks: { receiver, open: (scene) => strand(receiver, scene), settle: () => Promise.resolve() },
  });
}

/** Payments beside calls that wait for a person to decide on payments of an agent of their own. */
export const startPaymentsBesideWaiting = (site: Site): Promise<System> =>
  startPaying(site, { ...BY_CARD, name: "waiting", begin: startWaiting });

/** Payments beside open pages that follow changes. */
export const startPaymentsBesidePages = (site: Site): Promise<System> =>
  startPaying(site, {
    ...BY_CARD,
    name: "streamed",
    begin: openPages,
    settings: { TRUSTED_PROXIES: "loopback" },
  });

async function startPaying(site: Site, paying: Paying): Promise<System> {
  const { begin, onRail, hooks, auditsPaymentDecisions = true, name, order, prepare, rival, used } = paying;
  const { temporal } = site;
  const host = await hostOf(site, paying);
  const { child, env } = host;
  const port = portOf(child.port);
  const {
    agents: all,
    owner,
    place,
    token,
  } = await createOrganizationWithAgents(env, port, paying.teams, name);
  const prepared = await prepare(all, port, token, place);
  const { mongo, db } = await connectMongo(String(env["MONGODB_URI"]));
  await hooks?.open({ db, port, token, agents: all });
  const [teamId = ""] = place.teamIds;
  const beside = begin === undefined ? null : await begin({ port, teamId, token });
  const audited = beside === null ? all : [...all, ...beside.agents];
  const histories = new Histories(temporal);
  const aside = rival?.(port, all) ?? null;
  const agentsOf = (agents: Case["agents"]) =>
    agents === "spread" ? all.slice(0, SPREAD_AGENTS) : all.slice(SPREAD_AGENTS);
  const ledgerId = ledgerWorkflowId(place.projectId);
  const ledger = temporal.workflow.getHandle(ledgerId);
  /** The accounts of these agents. */
  const accountsOf = async (agents: readonly PayingAgent[]): Promise<AccountSnapshot[]> => {
    const accounts: AccountSnapshot[] = [];
    for (let hasMore = true; hasMore;) {
      const input: SnapshotQueryInput = { after: accounts.at(-1)?.agentId ?? null, limit: ACCOUNTS_AT_ONCE };
      const page = await ledger.query<SnapshotPage, [SnapshotQueryInput]>(SNAPSHOT_QUERY, input);
      accounts.push(...page.accounts);
      hasMore = page.hasMore;
    }
    return accounts.filter(({ agentId }) => agents.some(({ id }) => id === agentId));
  };

  return {
    port,
    pid: child.pid,
    ...(hooks === undefined ? {} : { receiverPid: hooks.receiver.pid }),
    templates: async (agents) => {
      if (agents === "spread") await aside?.start();
      else await aside?.stop();
      return agentsOf(agents).map(({ apiKey }) => ({
        path: "/v1/payments",
        headers: { authorization: `Bearer ${apiKey}` },
        body: order,
      }));
    },
    async settle(agents, isQuick) {
      await aside?.stop();
      await settle(() => accountsOf(aside === null ? agentsOf(agents) : all), isQuick);
      if (!isQuick) await hooks?.settle(db);
    },
    course: () => histories.courseOf([ledgerId]),
    async audit(answered) {
      const wrong = (await beside?.finish(await signIn(port, owner))) ?? [];
      if (beside !== null) await settle(() => accountsOf(beside.agents), false);
      const accounts = await accountsOf(audited);
      const payments = answered + prepared + (beside?.payments ?? 0) + (aside?.paid ?? 0);
      const { organizationId } = place;
      const books = {
        ...(await onRail(db, organizationId, site)),
        ...(auditsPaymentDecisions ? await auditedDecisions(db, organizationId) : {}),
      };
      const found = await auditPayments(db, organizationId, accounts, { answered: payments, onRail: books });
      if (used === undefined) return [...wrong, ...found];
      const spentCents = payments * ORDER.amountCents;
      // The session that the caps were set with may be over by now.
      return [...wrong, ...found, ...(await used(spentCents, port, await signIn(port, owner), place))];
    },
    async stop() {
      await mongo.close();
      await host.leave();
      await hooks?.receiver.stop();
    },
  };
}

/** A process of the service, and its configuration. */
interface Host {
  readonly child: Child;
  readonly env: NodeJS.ProcessEnv;
  /** Stops it, where no other client is on it. */
  leave(): Promise<void>;
}

/** Processes on which others pay, too, with how many do. */
const shared = new WeakMap<Site, { readonly host: Host; users: number }>();

async function hostOf(site: Site, paying: Paying): Promise<Host> {
  const { hooks, sharesPaymentsService = false, auditsPaymentDecisions = true, name } = paying;
  const isShared = sharesPaymentsService || name === BY_CARD.name;
  const known = isShared ? shared.get(site) : undefined;
  if (known !== undefined) {
    known.users += 1;
    return known.host;
  }
  const env = {
    ...serviceEnvironment(site, `bench_${name}`),
    ...hooks?.receiver.settings,
    ...paying.settings,
  };
  const logFile = join(site.dataDir, "logs", `${name}.log`);
  const config: ServiceConfig = { env, logFile, auditsPaymentDecisions };
  const { profileDir } = site;
  const child = await Child.start({ entry: "processes/payments.ts", config, profileDir });
  const use = { host: { child, env, leave }, users: 1 };
  async function leave(): Promise<void> {
    use.users -= 1;
    if (use.users === 0) await child.stop();
  }
  if (isShared) shared.set(site, use);
  return use.host;
}

export async function createOrganizationWithAgents(
  env: NodeJS.ProcessEnv,
  port: number,
  teams: number,
  name = "owner",
) {
  const owner = { email: `${name}@example.com`, password: "correct horse battery staple" };
  const { organizationId, projectId, teamId } = await createOrganization(env, {
    name: "Bench",
    ownerEmail: owner.email,
    ownerPassword: owner.password,
    plan: "enterprise",
    restPerMinute: 1_000_000,
  });
  const teamIds = [teamId];
  const token = await signIn(port, owner);
  while (teamIds.length < teams)
    teamIds.push(await createTeam(port, token, projectId, `Team ${String(teamIds.length + 1)}`));
  const created = await createAgents({ port, owner, teamIds, count: SPREAD_AGENTS + 1 });
  return { ...created, owner, place: { organizationId, projectId, teamIds } };
}

/** Waits until the ledger has seen everything through: nothing open; unless in a hurry, records written too. */
async function settle(
  accountsOf: () => Promise<readonly AccountSnapshot[]>,
  isQuick: boolean,
): Promise<void> {
  const deadline = Date.now() + SETTLE_MS;
  for (;;) {
    const accounts = await accountsOf();
    // The ledger writes an account's stale record by itself after 10 s.
    const isWaiting = accounts.some(({ open }) => open.length > 0);
    if (!isWaiting) break;
    if (Date.now() > deadline) throw new Error("the ledger does not come to rest");
    await sleep(SETTLE_POLL_MS);
  }
  if (!isQuick) await sleep(RECORDED_MS);
}
