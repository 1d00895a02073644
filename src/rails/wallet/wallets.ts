import { LRUCache } from "lru-cache";
import type { Collection, Db } from "mongodb";
import { type Address, getAddress } from "viem";
import type { SpendingLimit } from "../../domain/wallet/spending-limit.ts";
import { mirroredLimit } from "../../domain/wallet/spending-limit.ts";
import type { BudgetPolicy } from "../../domain/ledger/policy.ts";
import { MAX_CENTS } from "../../domain/money.ts";
import { caip2Of, type ChainConfig } from "../../chain/config.ts";
import { walletAddress } from "../../chain/contracts.ts";
import { type AgentDocument, COLLECTIONS, type WalletRecord } from "../../store/documents.ts";
import type { Indexes } from "../../store/indexes.ts";

export interface Wallet {
  /** The organization's id for a treasury. */
  readonly agentId: string;
  readonly isTreasury: boolean;
  readonly organizationId: string;
  readonly address: Address;
  readonly chainCaip2: string;
  readonly owner: Address;
  readonly spender: Address;
  readonly factory: Address;
}

/** A wallet's intended limit, and the version of the policy that it mirrors. */
export interface TargetLimit extends SpendingLimit {
  readonly policyVersion: number;
}

/** The limit that a ledger last requested. Stored apart from the agent's record, which lags behind its actor. */
interface WalletLimitDocument extends TargetLimit {
  readonly _id: string;
  /** Latest time for setting a limit that is not on the chain and that no payment needs. */
  readonly dueAt?: Date;
  /** Agent and organization of a wallet marked as due. */
  readonly agentId?: string;
  readonly organizationId?: string;
}

export const LIMIT_INDEXES: Indexes = {
  [COLLECTIONS.walletLimits]: [
    {
      key: { dueAt: 1 },
      partialFilterExpression: { dueAt: { $exists: true } },
      reader: "limits that wallets do not have yet",
    },
  ],
};

/** Maximum number of due limits taken at once. */
export interface DueBounds {
  readonly ofOrganization: number;
  readonly inAll: number;
}

/** Cached wallets; each is read once. */
const CACHED_WALLETS_MAX = 50_000;

export class AgentWallets {
  readonly #agents: Collection<AgentDocument>;
  readonly #limits: Collection<WalletLimitDocument>;
  /** A wallet never changes, so a cached one stays valid. */
  readonly #kept = new LRUCache<string, Wallet>({ max: CACHED_WALLETS_MAX });

  readonly #isGenuine: (agent: AgentDocument) => boolean;

  constructor(db: Db, isGenuine: (agent: AgentDocument) => boolean) {
    this.#isGenuine = isGenuine;
    this.#agents = db.collection(COLLECTIONS.agents);
    this.#limits = db.collection(COLLECTIONS.walletLimits);
  }

  /**
   * Returns an agent's wallet; null if the agent has none. Throws for an agent without a record: its create has not
   * been committed. Throws as well if something other than the service has changed the record: what was paid is unknown
   * then, and nothing is signed.
   */
  async of(agentId: string): Promise<Wallet | null> {
    const known = this.#kept.get(agentId);
    if (known !== undefined) return known;
    const agent = await this.#agents.findOne({ _id: agentId });
    if (agent === null) throw new Error(`agent ${agentId} has no record`);
    if (!this.#isGenuine(agent))
      throw new Error(`the record of agent ${agentId} is not as the service wrote it`);
    // Agents created before wallets existed have no such field.
    const record = agent.wallet ?? null;
    if (record === null) return null;
    const wallet = walletIn(record, { agentId, organizationId: agent.organizationId, isTreasury: false });
    this.#kept.set(agentId, wallet);
    return wallet;
  }

  /** Returns the wallet at an address; null if no agent's, for example a treasury. Queried too rarely for an index. */
  async at(address: string): Promise<Wallet | null> {
    const agent = await this.#agents.findOne({ "wallet.address": address }, { projection: { _id: 1 } });
    return agent === null ? null : this.of(agent._id);
  }

  /** Returns the newest known limit, from whichever of the two records has it. */
  async targetLimit({ address, agentId, isTreasury }: Wallet): Promise<TargetLimit> {
    if (isTreasury) return UNLIMITED;
    const [requested, agent] = await Promise.all([
      this.#limits.findOne({ _id: address }),
      this.#agents.findOne({ _id: agentId }, { projection: { policy: 1, policyVersion: 1 } }),
    ]);
    if (agent === null) throw new Error(`agent ${agentId} has lost its record`);
    if (requested !== null && requested.policyVersion >= agent.policyVersion) return requested;
    return { ...mirroredLimit(agent.policy), policyVersion: agent.policyVersion };
  }

  /** Stores the limit of a policy, unless that of a newer policy is stored. */
  async want({ address }: Wallet, policy: BudgetPolicy, policyVersion: number): Promise<void> {
    const older = { _id: address, policyVersion: { $lt: policyVersion } };
    const target = { ...mirroredLimit(policy), policyVersion };
    try {
      await this.#limits.updateOne(older, { $set: target }, { upsert: true });
    } catch (error) {
      // A newer one is stored: the upsert conflicted with its id.
      const newest = await this.#limits.findOne({ _id: address });
      if (newest === null || newest.policyVersion < policyVersion) throw error;
    }
  }

  /** Marks a wallet's limit as not on the chain yet, unless it is already marked: successive changes share one mark. */
  async markDue({ address, agentId, organizationId }: Wallet, dueAt: Date): Promise<void> {
    const unmarked = { _id: address, dueAt: { $exists: false } };
    await this.#limits.updateOne(unmarked, { $set: { agentId, organizationId, dueAt } });
  }

  /** Removes the mark, unless a newer policy has been mirrored since. */
  async unmark({ address }: Wallet, policyVersion: number): Promise<void> {
    const marked = { _id: address, policyVersion: { $lte: policyVersion }, dueAt: { $exists: true } };
    await this.#limits.updateOne(marked, { $unset: { agentId: "", organizationId: "", dueAt: "" } });
  }

  async markedOf(wallets: readonly Wallet[]): Promise<readonly Wallet[]> {
    const among = { _id: { $in: wallets.map(({ address }) => address) }, dueAt: { $exists: true } };
    const found = await this.#limits.find(among, { projection: { _id: 1 } }).toArray();
    const marked = new Set(found.map(({ _id }) => _id));
    return wallets.filter(({ address }) => marked.has(address));
  }

  /**
   * Returns agents whose wallets' limits are due: organizations take turns, the longest waiting first. The limits are
   * postponed, so neither another process nor the next round takes them while they are being set, and a failing one
   * does not block the others.
   */
  async takeDue(now: Date, postponedTo: Date, bounds: DueBounds): Promise<readonly string[]> {
    const first = { $firstN: { n: bounds.ofOrganization, input: { _id: "$_id", agentId: "$agentId" } } };
    const organizations = await this.#limits
      .aggregate<{ readonly wallets: readonly { readonly _id: string; readonly agentId: string }[] }>([
        { $match: { dueAt: { $lte: now } } },
        { $sort: { dueAt: 1 } },
        { $group: { _id: "$organizationId", wallets: first, oldest: { $first: "$dueAt" } } },
        { $sort: { oldest: 1 } },
        { $limit: bounds.inAll },
      ])
      .toArray();
    const turns = Array.from({ length: bounds.ofOrganization }, (_nothing, turn) =>
      organizations.flatMap(({ wallets }) => wallets.slice(turn, turn + 1)),
    );
    const taken = turns.flat().slice(0, bounds.inAll);
    if (taken.length === 0) return [];
    await this.#limits.updateMany(
      { _id: { $in: taken.map(({ _id }) => _id) }, dueAt: { $exists: true } },
      { $set: { dueAt: postponedTo } },
    );
    return taken.map(({ agentId }) => agentId);
  }
}

/** Limit of a treasury, where only the ceiling set by its owner binds the service. */
const UNLIMITED: TargetLimit = { capCents: MAX_CENTS, periodSeconds: 0, policyVersion: 1 };

/** Throws where the record names a wallet of another agent or organization. */
export function walletIn(
  record: WalletRecord,
  of: Pick<Wallet, "agentId" | "organizationId" | "isTreasury">,
): Wallet {
  const wallet = { ...of, chainCaip2: record.chainCaip2, ...addressesOf(record) };
  if (walletAddress(wallet) === wallet.address) return wallet;
  const what = of.isTreasury ? "organization" : "agent";
  throw new Error(`the record of ${what} ${of.agentId} names a wallet that is not the ${what}'s`);
}

const addressesOf = ({ address, factory, owner, spender }: WalletRecord) => ({
  address: getAddress(address),
  owner: getAddress(owner),
  spender: getAddress(spender),
  factory: getAddress(factory),
});

/** Returns a new agent's wallet. The address is derived from agent, owner, spender and factory: nothing is sent. */
export function newWallet(
  config: ChainConfig,
  spender: Address,
  owner: string,
  agentId: string,
): WalletRecord {
  const { chainId, factory } = config;
  const checked = getAddress(owner);
  const address = walletAddress({ factory, owner: checked, spender, agentId });
  return { address, chainCaip2: caip2Of(chainId), owner: checked, spender, factory };
}
