import type { Collection, Db } from "mongodb";
import { canonicalJson } from "../../domain/audit/canonical.ts";
import { mcOf } from "../../domain/money.ts";
import type { AgentProfile } from "../../domain/agent/state.ts";
import type { OnChain, RailFailure, RailOutcome } from "../../domain/ledger/payment.ts";
import { isDuplicateKey } from "../../lib/duplicate-key.ts";
import type { ChainWatchers } from "../../chain/repairs.ts";
import type { Clock } from "../../payments/ports.ts";
import type { KeyedMacs } from "../../secrets/keyed-macs.ts";
import { COLLECTIONS } from "../../store/documents.ts";
import type { FundingRecord } from "../../store/event-records.ts";
import type { Indexes } from "../../store/indexes.ts";
import type { EventJournal } from "../../store/journal.ts";
import { NO_WALLET } from "./refusals.ts";
import type { Treasuries } from "./treasuries.ts";
import type { WalletRail } from "./wallet-rail.ts";
import { type AgentWallets, type Wallet, walletIn } from "./wallets.ts";

/** A transfer from an organization's treasury to an agent's wallet. */
export interface FundingDocument {
  /** For example `fnd_…`. */
  readonly _id: string;
  readonly organizationId: string;
  readonly profile: AgentProfile;
  readonly amountCents: number;
  /** `person/…`, or `target/…` for a funding that keeps a wallet's target; null if the funding cannot be repeated. */
  readonly idempotencyKey: string | null;
  readonly createdAt: Date;
  /** MAC over the fields above: a change in MongoDB must not move the treasury's money. */
  readonly proof: string;
  readonly status: "pending" | "settled" | "failed";
  readonly failure: RailFailure | null;
  readonly onChain: OnChain | null;
  readonly settledAt: Date | null;
}

export const FUNDING_INDEXES: Indexes = {
  [COLLECTIONS.walletFundings]: [
    {
      key: { organizationId: 1, idempotencyKey: 1 },
      unique: true,
      partialFilterExpression: { idempotencyKey: { $gt: "" } },
      reader: "replays of an idempotency key",
    },
    {
      key: { createdAt: 1 },
      partialFilterExpression: { status: "pending" },
      name: "pending_fundings",
      reader: "fundings that no call follows",
    },
  ],
};

/** Minimum age of a funding before it is swept: the call that began a younger one is still following it. */
const SWEEP_MIN_AGE_MS = 10_000;
const SWEPT_PER_ROUND_MAX = 20;

export interface FundingDependencies {
  readonly db: Db;
  readonly rail: Pick<WalletRail, "spend">;
  readonly wallets: Pick<AgentWallets, "of">;
  readonly treasuries: Pick<Treasuries, "record">;
  readonly journal: Pick<EventJournal, "agentEvent">;
  readonly macs: KeyedMacs;
  readonly clock: Clock;
  /** CAIP-2 id of the chain. */
  readonly chain: string;
  readonly onWarning: ChainWatchers["onWarning"];
}

export type NewFunding = Pick<FundingDocument, "_id" | "profile" | "amountCents" | "idempotencyKey">;

export interface Begun {
  /** `reused`: the key belongs to another funding, which is returned. */
  readonly kind: "begun" | "repeated" | "reused";
  readonly funding: FundingDocument;
}

/**
 * Moves treasuries' money to agents' wallets. Each funding is recorded first, followed by one spend of the treasury,
 * which is made once no matter how many processes request it. Any process completes the fundings that a stopped process
 * left.
 */
export class Fundings {
  readonly #dependencies: FundingDependencies;
  readonly #collection: Collection<FundingDocument>;

  constructor(dependencies: FundingDependencies) {
    this.#dependencies = dependencies;
    const options = { readConcern: { level: "majority" } } as const;
    this.#collection = dependencies.db.collection(COLLECTIONS.walletFundings, options);
  }

  /** Whether the agent has a wallet on this chain and its organization has a treasury. */
  async isPossible({ agentId, organizationId }: AgentProfile): Promise<boolean> {
    const wallet = await this.#dependencies.wallets.of(agentId);
    return wallet?.chainCaip2 === this.#dependencies.chain && (await this.hasTreasury(organizationId));
  }

  async hasTreasury(organizationId: string): Promise<boolean> {
    return (await this.#treasury(organizationId)) !== null;
  }

  async begin({ _id, amountCents, idempotencyKey, profile }: NewFunding): Promise<Begun> {
    const { clock, macs } = this.#dependencies;
    const { organizationId } = profile;
    const facts = { _id, organizationId, profile, amountCents, idempotencyKey, createdAt: clock() };
    const nothingYet = { status: "pending", failure: null, onChain: null, settledAt: null } as const;
    const funding = { ...facts, proof: macs.make(textOf(facts)), ...nothingYet };
    try {
      await this.#collection.insertOne(funding);
      return { kind: "begun", funding };
    } catch (error) {
      if (!isDuplicateKey(error) || idempotencyKey === null) throw error;
      const before = await this.#collection.findOne({ organizationId, idempotencyKey });
      if (before === null) throw error;
      const isSame = before.profile.agentId === profile.agentId && before.amountCents === amountCents;
      return { kind: isSame ? "repeated" : "reused", funding: before };
    }
  }

  /** Advances a funding, and waits up to `withinMs` for its end. Throws if the chain does not answer. */
  async advance(funding: FundingDocument, withinMs: number): Promise<FundingDocument> {
    if (funding.status !== "pending") return funding;
    const { macs, rail, wallets } = this.#dependencies;
    if (!macs.isMac(textOf(funding), funding.proof))
      throw new Error(`${funding._id} is not as the service wrote it`);
    const { amountCents, organizationId, profile } = funding;
    const [wallet, treasury] = await Promise.all([
      wallets.of(profile.agentId),
      this.#treasury(organizationId),
    ]);
    if (wallet === null || treasury === null) return this.#end(funding, { status: "failed", ...NO_WALLET });
    const request = {
      transactionId: `fund/${funding._id}`,
      recipient: wallet.address,
      amountMc: mcOf(amountCents),
    };
    const outcome = await rail.spend(treasury, { request }, withinMs);
    return this.#end(funding, outcome, wallet.address);
  }

  /** Follows fundings that no call follows any longer. */
  async sweep(stopping?: AbortSignal): Promise<void> {
    const before = new Date(this.#dependencies.clock().getTime() - SWEEP_MIN_AGE_MS);
    const left = await this.#collection
      .find({ status: "pending", createdAt: { $lte: before } })
      .sort({ createdAt: 1 })
      .limit(SWEPT_PER_ROUND_MAX)
      .toArray();
    for (const funding of left) {
      if (stopping?.aborted === true) return;
      await this.advance(funding, 0).catch((error: unknown) => {
        const said = error instanceof Error ? error.message : "";
        this.#dependencies.onWarning("a funding is still pending", {
          funding: funding._id,
          error: said,
        });
      });
    }
  }

  /** Begins a funding that a person requested. */
  beginFor(funding: NewFunding): Promise<Begun> {
    const { idempotencyKey } = funding;
    return this.begin({
      ...funding,
      idempotencyKey: idempotencyKey === null ? null : `person/${idempotencyKey}`,
    });
  }

  async #treasury(organizationId: string): Promise<Wallet | null> {
    const record = await this.#dependencies.treasuries.record(organizationId);
    if (record === null || record.chainCaip2 !== this.#dependencies.chain) return null;
    return walletIn(record, { agentId: organizationId, organizationId, isTreasury: true });
  }

  /** Publishes the event before recording the end: a process that dies in between leaves it to the next. */
  async #end(funding: FundingDocument, outcome: RailOutcome, address = ""): Promise<FundingDocument> {
    const settledAt = this.#dependencies.clock();
    if (outcome.status === "settled" && outcome.onChain !== undefined) {
      const { chainCaip2, txHash: onChainTxHash } = outcome.onChain;
      const { _id: id, amountCents } = funding;
      const at = { address, onChainTxHash, chainCaip2, settledAt };
      const record: FundingRecord = { id, amountCents, currency: "USD", ...at };
      await this.#dependencies.journal.agentEvent(funding.profile, {
        _id: `evt_${id}_wallet.funded`,
        type: "wallet.funded",
        createdAt: settledAt,
        data: { funding: record },
      });
      return this.#record(funding, { status: "settled", onChain: outcome.onChain, settledAt });
    }
    if (outcome.status !== "failed") return funding;
    const { code, reason } = outcome;
    return this.#record(funding, { status: "failed", failure: { code, reason } });
  }

  async #record(funding: FundingDocument, change: Partial<FundingDocument>): Promise<FundingDocument> {
    const pending = { _id: funding._id, status: "pending" } as const;
    await this.#collection.updateOne(pending, { $set: change });
    return (await this.#collection.findOne({ _id: funding._id })) ?? { ...funding, ...change };
  }
}

type Facts = Omit<FundingDocument, "proof" | "status" | "failure" | "onChain" | "settledAt">;

const textOf = ({ _id, amountCents, createdAt, idempotencyKey, organizationId, profile }: Facts): string =>
  canonicalJson({
    funding: {
      id: _id,
      agentId: profile.agentId,
      organizationId,
      amountCents,
      idempotencyKey,
      createdAt: createdAt.toISOString(),
    },
  });
