import type { Collection, Db } from "mongodb";
import { type Address, isAddress } from "viem";
import type { DepositWatch, Recipients } from "../../chain/deposits.ts";
import type { ChainWatchers } from "../../chain/repairs.ts";
import { type AgentDocument, COLLECTIONS, profileOf } from "../../store/documents.ts";
import type { DepositRecord } from "../../store/event-records.ts";
import type { EventJournal } from "../../store/journal.ts";
import type { Pockets } from "../pocket/pocket.ts";
import type { Treasuries } from "./treasuries.ts";

/** Deposits into organizations' treasuries. */
export const treasuryDeposits = (
  treasuries: Pick<Treasuries, "all">,
  journal: Pick<EventJournal, "organizationEvent">,
): Recipients => ({
  cursorName: "",
  all: () => treasuries.all(),
  publish: (organizationId, _from, deposit) =>
    journal.organizationEvent(organizationId, depositEvent("funding.deposited", deposit)),
});

export interface WalletDepositsDependencies {
  readonly db: Db;
  /** CAIP-2 id of the chain. */
  readonly chain: string;
  readonly treasuries: Pick<Treasuries, "all">;
  readonly pockets: Pick<Pockets, "addressOf">;
  readonly journal: Pick<EventJournal, "agentEvent">;
  readonly isAgentGenuine: (agent: AgentDocument) => boolean;
  readonly onWarning: ChainWatchers["onWarning"];
}

/**
 * Deposits into agents' wallets, those of archived agents included: a merchant may refund at any time. Transfers from
 * the organization's own treasury are fundings with events of their own, and those from the agent's pocket bring
 * nothing. A deposit raises the wallet's balance and no budget, since no transfer names the payment that it refunds.
 */
export class WalletDeposits implements Recipients {
  readonly cursorName = "/wallets";
  readonly #dependencies: WalletDepositsDependencies;
  readonly #agents: Collection<AgentDocument>;

  constructor(dependencies: WalletDepositsDependencies) {
    this.#dependencies = dependencies;
    this.#agents = dependencies.db.collection(COLLECTIONS.agents);
  }

  async all(): Promise<ReadonlyMap<Address, string>> {
    const { chain } = this.#dependencies;
    const found = await this.#agents
      .find({ "wallet.chainCaip2": chain }, { projection: { "wallet.address": 1 } })
      .toArray();
    // Recorded with checksums, which would take a second for 10,000 addresses.
    return new Map(
      found.flatMap(({ _id, wallet }) =>
        wallet !== null && isAddress(wallet.address, { strict: false })
          ? [[wallet.address, _id] as const]
          : [],
      ),
    );
  }

  async publish(agentId: string, from: Address, deposit: DepositRecord): Promise<void> {
    const { isAgentGenuine, journal, onWarning, pockets, treasuries } = this.#dependencies;
    const agent = await this.#agents.findOne({ _id: agentId });
    if (agent === null || !isAgentGenuine(agent)) {
      onWarning("a deposit into a wallet was not published: its record is not as the service wrote it", {
        agentId,
        deposit: deposit.id,
      });
      return;
    }
    if (from === pockets.addressOf(agentId)) return;
    if ((await treasuries.all()).get(from) === agent.organizationId) return;
    await journal.agentEvent(profileOf(agent), depositEvent("wallet.funded", deposit));
  }
}

const depositEvent = <T extends "funding.deposited" | "wallet.funded">(type: T, deposit: DepositRecord) => ({
  _id: `evt_${deposit.id}_${type}`,
  type,
  createdAt: deposit.settledAt,
  data: { deposit },
});

/**
 * Interval of reading the wallets' deposits. A read takes one call for each 200 agents, so 50 for 10,000, and
 * providers count calls.
 */
const WALLETS_READ_INTERVAL_MS = 30_000;

/** Returns the watch's step, which skips the chain unless the watch is behind or the interval has passed. */
export function atIntervals(
  watch: Pick<DepositWatch, "step">,
): () => Promise<{ readonly isBehind: boolean }> {
  let dueAtMs = 0;
  return async () => {
    if (performance.now() < dueAtMs) return { isBehind: false };
    const { isBehind } = await watch.step();
    if (!isBehind) dueAtMs = performance.now() + WALLETS_READ_INTERVAL_MS;
    return { isBehind };
  };
}
