import type { ClientSession, Collection, Db } from "mongodb";
import { canonicalJson } from "../../domain/audit/canonical.ts";
import type { AgentProfile } from "../../domain/agent/state.ts";
import type { ChainWatchers } from "../../chain/repairs.ts";
import type { ChainRpc } from "../../chain/rpc.ts";
import { centsOf } from "../../chain/units.ts";
import { newId } from "../../lib/ids.ts";
import type { Clock } from "../../payments/ports.ts";
import type { KeyedMacs } from "../../secrets/keyed-macs.ts";
import { type AgentDocument, COLLECTIONS } from "../../store/documents.ts";
import type { Indexes } from "../../store/indexes.ts";
import type { Fundings } from "./fundings.ts";
import type { AgentWallets } from "./wallets.ts";

/** Balance at which an agent's wallet is kept from its organization's treasury. */
interface TargetDocument {
  /** The agent's id. */
  readonly _id: string;
  readonly profile: AgentProfile;
  readonly cents: number;
  /** MAC over profile and cents. */
  readonly proof: string;
  /** Number of the next funding. Two processes that check at once begin the same one. */
  readonly next: number;
  readonly dueAt: Date;
}

export const TARGET_INDEXES: Indexes = {
  [COLLECTIONS.walletTargets]: [{ key: { dueAt: 1 }, reader: "wallets that are due for a look" }],
};

const CHECK_INTERVAL_MS = 30_000;
/** Pause after a failed funding: the treasury has too little, or its owner allows no more for now. */
const FAILURE_PAUSE_MS = 600_000;
const PER_ROUND_MAX = 50;

/** A funding that no person requested. */
export interface TargetFunding {
  readonly profile: AgentProfile;
  /** Unique forever. */
  readonly key: string;
  readonly amountCents: number;
  readonly targetCents: number;
  readonly at: Date;
}

export interface TargetDependencies {
  readonly db: Db;
  readonly fundings: Pick<Fundings, "advance" | "begin">;
  readonly wallets: Pick<AgentWallets, "of">;
  readonly rpc: Pick<ChainRpc, "balanceAt">;
  readonly tokenDecimals: number;
  readonly macs: KeyedMacs;
  readonly clock: Clock;
  readonly audit: (funding: TargetFunding) => Promise<void>;
  readonly onWarning: ChainWatchers["onWarning"];
}

/**
 * Keeps agents' wallets at their configured balances: the shortfall is funded from the treasury, one funding at a time.
 * An agent that is not active gets nothing.
 */
export class WalletTargets {
  readonly #dependencies: TargetDependencies;
  readonly #targets: Collection<TargetDocument>;
  readonly #agents: Collection<AgentDocument>;

  constructor(dependencies: TargetDependencies) {
    const { db } = dependencies;
    this.#dependencies = dependencies;
    this.#targets = db.collection(COLLECTIONS.walletTargets);
    this.#agents = db.collection(COLLECTIONS.agents);
  }

  /** Null if the agent has no target. */
  async of(agentId: string): Promise<number | null> {
    const cents = (await this.#targets.findOne({ _id: agentId }))?.cents ?? 0;
    return cents === 0 ? null : cents;
  }

  async set(profile: AgentProfile, cents: number | null, session?: ClientSession): Promise<void> {
    const { clock, macs } = this.#dependencies;
    const _id = profile.agentId;
    const within = session === undefined ? {} : { session };
    if (cents === null) {
      // The number stays, so that a funding in flight is not begun again.
      const none = { $set: { profile, cents: 0, proof: macs.make(textOf(profile, 0)) } };
      await this.#targets.updateOne({ _id }, none, within);
      return;
    }
    const change = { profile, cents, proof: macs.make(textOf(profile, cents)), dueAt: clock() };
    const changed = { $set: change, $setOnInsert: { next: 1 } };
    await this.#targets.updateOne({ _id }, changed, { ...within, upsert: true });
  }

  /** Checks the wallets that are due, the longest waiting first. */
  async keep(stopping?: AbortSignal): Promise<void> {
    const now = this.#dependencies.clock();
    const due = await this.#targets
      .find({ dueAt: { $lte: now }, cents: { $gt: 0 } })
      .sort({ dueAt: 1 })
      .limit(PER_ROUND_MAX)
      .toArray();
    for (const target of due) {
      if (stopping?.aborted === true) return;
      const pauseMs = await this.#keep(target).catch((error: unknown) => {
        const said = error instanceof Error ? error.message : "";
        this.#dependencies.onWarning("a wallet could not be kept at its target", {
          agentId: target._id,
          error: said,
        });
        return CHECK_INTERVAL_MS;
      });
      const dueAt = new Date(now.getTime() + pauseMs);
      await this.#targets.updateOne({ _id: target._id, dueAt: target.dueAt }, { $set: { dueAt } });
    }
  }

  /** Resolves to the time until the next check. */
  async #keep({ _id, cents, next, profile, proof }: TargetDocument): Promise<number> {
    const { audit, fundings, macs, rpc, tokenDecimals, wallets } = this.#dependencies;
    if (profile.agentId !== _id || !macs.isMac(textOf(profile, cents), proof))
      throw new Error("the target is not as the service wrote it");
    const agent = await this.#agents.findOne({ _id }, { projection: { lifecycle: 1 } });
    const wallet = await wallets.of(_id);
    if (agent?.lifecycle !== "active" || wallet === null || wallet.organizationId !== profile.organizationId)
      return CHECK_INTERVAL_MS;
    const held = centsOf(await rpc.balanceAt(wallet.address, "latest"), tokenDecimals);
    const idempotencyKey = `target/${_id}/${String(next)}`;
    if (held >= cents) return CHECK_INTERVAL_MS;
    const begun = await fundings.begin({
      _id: newId("fnd"),
      profile,
      amountCents: cents - held,
      idempotencyKey,
    });
    const { amountCents, createdAt: at } = begun.funding;
    // Audited before any money moves; an entry that could not be written is written at the next check.
    await audit({ profile, key: idempotencyKey, amountCents, targetCents: cents, at });
    const { status } = await fundings.advance(begun.funding, 0);
    if (status === "pending") return CHECK_INTERVAL_MS;
    await this.#targets.updateOne({ _id, next }, { $set: { next: next + 1 } });
    return status === "failed" ? FAILURE_PAUSE_MS : CHECK_INTERVAL_MS;
  }
}

const textOf = ({ agentId, name, organizationId, projectId, teamId }: AgentProfile, cents: number): string =>
  canonicalJson({ walletTarget: { agentId, name, organizationId, projectId, teamId, cents } });
