import { LRUCache } from "lru-cache";
import type { Collection, Db } from "mongodb";
import { type Address, getAddress } from "viem";
import type { SpendingLimit } from "../../domain/wallet/spending-limit.ts";
import { mirroredLimit } from "../../domain/wallet/spending-limit.ts";
import type { BudgetPolicy } from "../../domain/ledger/policy.ts";
import { caip2Of, type ChainConfig } from "../../chain/config.ts";
import { walletAddress } from "../../chain/contracts.ts";
import { type AgentDocument, COLLECTIONS, type WalletRecord } from "../../store/documents.ts";

/** An agent's wallet, ready for use. */
export interface Wallet {
  readonly agentId: string;
  readonly address: Address;
  readonly chainCaip2: string;
  readonly owner: Address;
  readonly spender: Address;
  readonly factory: Address;
}

/** The limit that a wallet is to have, and the version of the policy that it mirrors. */
export interface TargetLimit extends SpendingLimit {
  readonly policyVersion: number;
}

/** The limit that a ledger requested last. Beside the agent's record, which follows its actor more slowly. */
interface WalletLimitDocument extends TargetLimit {
  readonly _id: string;
}

/** Cached wallets; each is read once. */
const CACHED_WALLETS_MAX = 50_000;

/** The wallets of agents, and the limits that they are to have. */
export class AgentWallets {
  readonly #agents: Collection<AgentDocument>;
  readonly #limits: Collection<WalletLimitDocument>;
  /** A wallet never changes, so what was found once stays good. */
  readonly #kept = new LRUCache<string, Wallet>({ max: CACHED_WALLETS_MAX });

  constructor(db: Db) {
    this.#agents = db.collection(COLLECTIONS.agents);
    this.#limits = db.collection(COLLECTIONS.walletLimits);
  }

  /**
   * Null for an agent that has none. Throws for one that has no record yet: its create has not been committed. Throws, too,
   * where the record names a wallet that is not this agent's own, which is a forgery: nothing is known then of what
   * was paid, and nothing is signed.
   */
  async of(agentId: string): Promise<Wallet | null> {
    const known = this.#kept.get(agentId);
    if (known !== undefined) return known;
    const agent = await this.#agents.findOne({ _id: agentId }, { projection: { wallet: 1 } });
    if (agent === null) throw new Error(`agent ${agentId} has no record`);
    // Agents from before there were wallets have no such field.
    const record = agent.wallet ?? null;
    if (record === null) return null;
    const wallet = { agentId, chainCaip2: record.chainCaip2, ...addressesOf(record) };
    if (walletAddress(wallet) !== wallet.address) {
      throw new Error(`the record of agent ${agentId} names a wallet that is not the agent's`);
    }
    this.#kept.set(agentId, wallet);
    return wallet;
  }

  /** The wallet at an address; null: no agent's, such as a treasury. Rarely queried, so there is no index for it. */
  async at(address: string): Promise<Wallet | null> {
    const agent = await this.#agents.findOne({ "wallet.address": address }, { projection: { _id: 1 } });
    return agent === null ? null : this.of(agent._id);
  }

  /** The newest known limit, from whichever of the two records has it. */
  async targetLimit({ address, agentId }: Wallet): Promise<TargetLimit> {
    const [requested, agent] = await Promise.all([
      this.#limits.findOne({ _id: address }),
      this.#agents.findOne({ _id: agentId }, { projection: { policy: 1, policyVersion: 1 } }),
    ]);
    if (agent === null) throw new Error(`agent ${agentId} has lost its record`);
    if (requested !== null && requested.policyVersion >= agent.policyVersion) return requested;
    return { ...mirroredLimit(agent.policy), policyVersion: agent.policyVersion };
  }

  /** Remembers what a policy asks for, unless a newer one was remembered already. */
  async want({ address }: Wallet, policy: BudgetPolicy, policyVersion: number): Promise<void> {
    const older = { _id: address, policyVersion: { $lt: policyVersion } };
    const target = { ...mirroredLimit(policy), policyVersion };
    try {
      await this.#limits.updateOne(older, { $set: target }, { upsert: true });
    } catch (error) {
      // A newer one is there: the upsert met its id.
      const newest = await this.#limits.findOne({ _id: address });
      if (newest === null || newest.policyVersion < policyVersion) throw error;
    }
  }
}

const addressesOf = ({ address, factory, owner, spender }: WalletRecord) => ({
  address: getAddress(address),
  owner: getAddress(owner),
  spender: getAddress(spender),
  factory: getAddress(factory),
});

/** The wallet of a new agent: its address follows from whose it is, and nothing has to be sent for it. */
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
