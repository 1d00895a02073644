import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import { mcOf, usedCents } from "../../src/domain/money.ts";
import { type KeyObject, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Collection, Db } from "mongodb";
import {
  createPublicClient,
  erc20Abi,
  getAddress,
  type Hash,
  http,
  isHex,
  type PublicClient,
  toHex,
} from "viem";
import type { ChainConfig, Signer } from "../../src/chain/config.ts";
import { agentWalletAbi, paymentIdOf } from "../../src/chain/contracts.ts";
import { CHAIN_INDEXES, ChainOutbox, type ChainTransactionDocument } from "../../src/chain/outbox.ts";
import { ChainRpc } from "../../src/chain/rpc.ts";
import { DEMO_OWNER } from "../../src/chain/sandbox.ts";
import { centsOf } from "../../src/chain/units.ts";
import { type AgentDocument, COLLECTIONS } from "../../src/store/documents.ts";
import { createWallets, type Wallets } from "../../src/rails/wallet/index.ts";
import { LIMIT_INDEXES } from "../../src/rails/wallet/wallets.ts";
import { readChain } from "../../server/chain.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import type { Payment, RailOutcome } from "../../src/domain/ledger/payment.ts";
import type { RailPort, RequestPermission } from "../../src/payments/ports.ts";
import type { BudgetPolicy } from "../../src/domain/ledger/policy.ts";
import type { AgentProfile } from "../../src/domain/agent/state.ts";
import { testDatabase } from "../support/mongo.ts";
import { createIndexes } from "../../src/store/indexes.ts";

const MASTER_KEY = MasterKey.parse("a-master-key-for-tests-long-enough-to-be-one", "a test");

/** Settings of a service that trusts agents' records. */
export const TRUSTED = {
  accessProofs: TEST_ACCESS_PROOFS,
  fundingMacs: MASTER_KEY.macs("payment-proofs"),
  isAgentGenuine: (): boolean => true,
  auditTarget: () => Promise.resolve(),
};

export const POLICY: BudgetPolicy = {
  budgetCents: 1_000_000,
  autoApprovalThresholdCents: null,
  perTransactionLimitCents: null,
  dailySpendLimitCents: null,
  hourlyVelocityLimit: null,
  dailyVelocityLimit: null,
};

export const randomAddress = (): `0x${string}` => getAddress(toHex(randomBytes(20)));
export const newId = (prefix: string): string => `${prefix}_${randomBytes(8).toString("hex")}`;

export interface TestAgent {
  readonly profile: AgentProfile;
  readonly wallet: `0x${string}`;
}

export interface InstanceOptions {
  readonly rpcUrl?: string;
  readonly fallbackRpcUrl?: string;
  readonly confirmations?: number;
  readonly clock?: () => Date;
  /** Fees as the chain asks for them, up to so much for a unit of gas, instead of a sandbox's fixed ones. */
  readonly feesUpTo?: bigint;
  /** Another way to the scene's database. */
  readonly db?: Db;
  /** The pockets' float; by default none, so that limits are those of the policies. */
  readonly floatCents?: number;
  readonly isAgentGenuine?: () => boolean;
  /** Another token than the sandbox's. */
  readonly token?: `0x${string}`;
}

/** What one process of a service would have. */
export interface Instance {
  readonly wallets: Omit<Wallets, "rail"> & { readonly rail: UnstoppedRail };
  /** The rail as the service has it. */
  readonly rail: RailPort;
  /** Its own look at what is recorded, with the same key. */
  readonly outbox: ChainOutbox;
  /** What its operator was told. */
  readonly troubles: string[];
  /** What its metrics have counted. */
  readonly repairs: ReadonlyMap<string, number>;
}

/** The rail for agents that nobody stops: what is sent needs no permit. */
export type UnstoppedRail = Omit<RailPort, "send" | "settle"> & {
  send(profile: AgentProfile, payment: Payment): Promise<RailOutcome>;
  settle(
    profile: AgentProfile,
    payment: Payment,
    withinMs: number,
    ask?: RequestPermission,
  ): Promise<RailOutcome | null>;
};

/** A permit that no fence of these tests is above, unless it is laid for that. */
export const PERMIT = 1;

const unstopped = (rail: RailPort): UnstoppedRail => ({
  capabilities: rail.capabilities,
  async send(profile, payment) {
    const outcome = await rail.send(profile, payment, PERMIT);
    if (outcome.status === "fenced") throw new Error("a payment of an agent that nobody stopped is fenced");
    return outcome;
  },
  network: rail.network,
  settle: (profile, payment, withinMs, ask = () => Promise.resolve({ kind: "send", permit: PERMIT })) =>
    rail.settle(profile, payment, withinMs, ask),
  fence: (places) => rail.fence(places),
  query: (payment) => rail.query(payment),
  withhold: (profile, payment) => rail.withhold(profile, payment),
  balance: (profile) => rail.balance(profile),
  detach: (profile) => rail.detach(profile),
});

/** What the chain says, held against what the rail says. */
export interface Audit {
  /** Hashes of the transactions that paid it, by transaction id. */
  readonly spent: ReadonlyMap<string, readonly Hash[]>;
  readonly spentCents: number;
}

/** A service without the rest: one database, so one key, any number of processes, a chain. */
export interface Scene {
  readonly config: ChainConfig;
  readonly signer: Signer;
  readonly pocketKey: KeyObject;
  readonly chain: PublicClient;
  readonly db: Db;
  readonly agents: Collection<AgentDocument>;
  readonly transactions: Collection<ChainTransactionDocument>;
  /** A further process, whose keeper does not run unless it is started. */
  open(options?: InstanceOptions): Instance;
  agent(policy?: BudgetPolicy, organizationId?: string): Promise<TestAgent>;
  /** An agent whose wallet holds so much. */
  funded(cents: number, policy?: BudgetPolicy, organizationId?: string): Promise<TestAgent>;
  fund(agent: TestAgent, cents: number): Promise<void>;
  audit(agents: readonly TestAgent[], payments: readonly Payment[]): Promise<Audit>;
  balanceCents(address: `0x${string}`): Promise<number>;
  /** The nonces that were given out, lowest first. */
  nonces(): Promise<readonly number[]>;
  close(): Promise<void>;
}

export const sharedChainUrl = (): string => {
  const url = process.env["TEST_EVM_RPC_URL"];
  if (url === undefined) throw new Error("TEST_EVM_RPC_URL is not set: run the tests with `npm test`");
  return url;
};

/**
 * `url` is the chain itself; an instance may be given another way to it. `keyOf`: another service, with a database of its
 * own, whose key this one has as well.
 */
export async function openScene(url = sharedChainUrl(), keyOf?: Scene): Promise<Scene> {
  const { close, db } = await testDatabase();
  const { config, pocketKey, signer } = keyOf ?? readChain(url, {}, MASTER_KEY, db);
  const chain = createPublicClient({ transport: http(url), cacheTime: 0, pollingInterval: 25 });
  const agents = db.collection<AgentDocument>(COLLECTIONS.agents);
  const opened: Instance[] = [];

  function open(options: InstanceOptions = {}): Instance {
    const { clock = () => new Date(), confirmations = 1, rpcUrl = url } = options;
    const { feesUpTo, floatCents = 0, token = config.token } = options;
    const fees = feesUpTo === undefined ? {} : { fixedFees: null, maxFeePerGas: feesUpTo };
    const { fallbackRpcUrl = null } = options;
    const at = {
      ...config,
      rpcUrl,
      fallbackRpcUrl,
      confirmations,
      token,
      pocketFloatCents: floatCents,
      ...fees,
    };
    const troubles: string[] = [];
    const onWarning = (message: string, details: Readonly<Record<string, unknown>>): void =>
      void troubles.push(`${message} ${JSON.stringify(details)}`);
    const repairs = new Map<string, number>();
    const onRepair = (what: string, count: number): void =>
      void repairs.set(what, (repairs.get(what) ?? 0) + count);
    const common = { db: options.db ?? db, config: at, signer, pocketKey, clock };
    const { isAgentGenuine = TRUSTED.isAgentGenuine } = options;
    const service = { ...common, ...TRUSTED, isAgentGenuine };
    const wallets = createWallets({ ...service, sandbox: feesUpTo === undefined, onWarning, onRepair });
    const instance = {
      wallets: { ...wallets, rail: unstopped(wallets.rail) },
      rail: wallets.rail,
      outbox: new ChainOutbox({ ...common, rpc: new ChainRpc(at), proofs: TEST_ACCESS_PROOFS }),
      troubles,
      repairs,
    };
    opened.push(instance);
    return instance;
  }

  const first = open();
  await createIndexes(db, CHAIN_INDEXES, LIMIT_INDEXES);
  await first.wallets.sandbox?.prepare();

  async function agent(policy = POLICY, organizationId = "org_1"): Promise<TestAgent> {
    const id = newId("agt");
    const wallet = first.wallets.newWallet(id, DEMO_OWNER);
    const profile = { organizationId, projectId: "prj_1", teamId: "tem_1", agentId: id, name: id };
    await agents.insertOne(recordOf(profile, wallet, policy));
    return { profile, wallet: getAddress(wallet.address) };
  }

  /** With what a busy machine has lost of broadcasts sent again, as the service's keeper does. */
  async function whileResending<T>(work: () => T): Promise<Awaited<T>> {
    const keeper = open({ clock: () => new Date(Date.now() + 60_000) });
    await keeper.wallets.start();
    try {
      return await work();
    } finally {
      await keeper.wallets.stop();
    }
  }

  async function fund({ wallet }: TestAgent, cents: number): Promise<void> {
    const id = newId("mint");
    const mint = () => first.wallets.sandbox?.mint(id, wallet, cents);
    const minted = (await mint()) ?? (await whileResending(mint));
    if (minted === null || minted === undefined) throw new Error("the wallet got no money");
  }

  const balanceCents = async (address: `0x${string}`): Promise<number> => {
    const read = { address: config.token, abi: erc20Abi, functionName: "balanceOf" } as const;
    return centsOf(await chain.readContract({ ...read, args: [address] }), config.tokenDecimals);
  };

  async function audit(of: readonly TestAgent[], payments: readonly Payment[]): Promise<Audit> {
    const address = of.map(({ wallet }) => wallet);
    const events = await chain.getContractEvents({
      address,
      abi: agentWalletAbi,
      eventName: "Spent",
      fromBlock: 0n,
    });
    const spent = new Map<string, Hash[]>();
    let spentCents = 0;
    for (const { args, transactionHash } of events) {
      const payment = payments.find(({ request }) => paymentIdOf(request.transactionId) === args.id);
      if (payment === undefined) throw new Error("money was spent on nothing that was asked for");
      const { amountMc, recipient, transactionId } = payment.request;
      const cents = centsOf(args.amount ?? 0n, config.tokenDecimals);
      if (cents !== usedCents(amountMc) || args.to !== recipient) throw new Error("another payment was made");
      spent.set(transactionId, [...(spent.get(transactionId) ?? []), transactionHash]);
      spentCents += cents;
    }
    return { spent, spentCents };
  }

  const transactions = db.collection<ChainTransactionDocument>(COLLECTIONS.chainTransactions);
  return {
    config,
    signer,
    pocketKey,
    chain,
    db,
    agents,
    transactions,
    open,
    agent,
    fund,
    audit,
    balanceCents,
    async funded(cents, policy, organizationId) {
      const made = await agent(policy, organizationId);
      await fund(made, cents);
      return made;
    },
    async nonces() {
      const found = await transactions
        .find({ nonce: { $gte: 0 } })
        .sort({ nonce: 1 })
        .toArray();
      return found.map(({ nonce }) => nonce ?? -1);
    },
    async close() {
      await Promise.all(opened.map(({ wallets }) => wallets.stop()));
      await close();
    },
  };
}

function recordOf(
  profile: AgentProfile,
  wallet: AgentDocument["wallet"],
  policy: BudgetPolicy,
): AgentDocument {
  const { agentId, name, organizationId, projectId, teamId } = profile;
  const now = new Date();
  const about = { organizationId, projectId, teamId, name, description: null, scopes: null };
  const money = { policy, policyVersion: 1, spentCents: 0, reservedCents: 0, wallet, key: null };
  const account = { accountRevision: 1, accountStatus: "active", accountProof: "" } as const;
  const revisions = { revision: 1, ...account, walletDetached: false };
  const times = { createdAt: now, updatedAt: now, archivedAt: null, ...revisions };
  const createdBy = { type: "user", id: "usr_1" } as const;
  return {
    _id: agentId,
    lifecycle: "active",
    createdBy,
    createdByLineage: null,
    proof: "",
    ...about,
    ...money,
    ...times,
  };
}

/** A payment that its agent's policy has allowed and whose rail is to be called. */
export function newPayment(amountCents: number, recipient: string = randomAddress()): Payment {
  const ids = {
    transactionId: newId("txn"),
    approvalId: newId("apr"),
    keyHash: "k",
    payloadHash: "p",
    fingerprint: "l",
    proof: "",
  };
  const order = {
    amountMc: mcOf(amountCents),
    currency: "USD",
    recipient,
    merchantCategory: null,
    purpose: "a test",
  } as const;
  const nothingYet = {
    denial: null,
    deniedAt: null,
    approval: null,
    onChainTxHash: null,
    chainCaip2: null,
    books: null,
  };
  return {
    request: { ...ids, rail: "wallet", ...order },
    sequence: 1,
    createdAt: 0,
    countedAt: 0,
    day: "2026-01-01",
    status: "pending",
    phase: "sending",
    policyVersion: 1,
    revision: 1,
    ...nothingYet,
  };
}

export const newPayments = (count: number, amountCents: number): readonly Payment[] =>
  Array.from({ length: count }, () => newPayment(amountCents));

/** The hash under which an outcome is on the chain; null where it has none. */
export function hashOf(outcome: RailOutcome | null): Hash | null {
  const hash = outcome !== null && "onChain" in outcome ? outcome.onChain?.txHash : undefined;
  return isHex(hash) ? hash : null;
}

/** Waits, as the settlement's workflow does, until nothing more becomes of a payment. */
export async function ended(
  { wallets }: Instance,
  { profile }: TestAgent,
  payment: Payment,
  withinMs = 120_000,
) {
  const until = performance.now() + withinMs;
  for (;;) {
    const outcome = await wallets.rail.settle(profile, payment, 1_000).catch(() => null);
    if (outcome !== null && outcome.status !== "pending") return outcome;
    if (performance.now() > until) throw new Error(`${payment.request.transactionId} has no end`);
    await sleep(20);
  }
}

/** Waits for something that only the outside shows. */
export async function eventually(
  what: string,
  holds: () => Promise<boolean>,
  withinMs = 120_000,
): Promise<void> {
  const until = performance.now() + withinMs;
  while (!(await holds().catch(() => false))) {
    if (performance.now() > until) throw new Error(`not in time: ${what}`);
    await sleep(20);
  }
}

/** Numbers that follow from a seed, which is printed with a test's title when it is used there. */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
