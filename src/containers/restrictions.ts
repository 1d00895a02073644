import type { ClientSession } from "mongodb";
import {
  type AgentDocument,
  type ContainerDocument,
  type RuledDocument,
  rulesRevisionOf,
  type StoredRestrictions,
} from "../store/documents.ts";
import { refusal } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import { NO_RESTRICTIONS, type Restrictions } from "../domain/rules/restrictions.ts";
import { type AuditedWrites, changed, type Outcome, unchanged } from "../audit/notes.ts";
import type { LedgerGateway } from "../payments/ports.ts";
import type { Collections } from "../store/collections.ts";
import type { AccessProofs } from "../secrets/access-proofs.ts";
import type { KeyedMutex } from "../lib/keyed-mutex.ts";
import { contentHash } from "../lib/ids.ts";
import { followedByLedger, REVISION } from "./approval-rules.ts";

export interface VersionedRestrictions extends Restrictions {
  readonly version: number;
}

/** Version before any restrictions are set. */
const FIRST_VERSION = 1;

export const restrictionsOf = (level: Pick<RuledDocument, "restrictions"> | null): VersionedRestrictions => ({
  ...(level?.restrictions?.lists ?? NO_RESTRICTIONS),
  version: level?.restrictions?.version ?? FIRST_VERSION,
});

export type RestrictedTarget =
  | { readonly level: "project" | "team"; readonly record: ContainerDocument }
  | { readonly level: "agent"; readonly record: AgentDocument };

export interface RestrictionListsDependencies {
  readonly collections: Pick<Collections, "ruled">;
  readonly accessProofs: AccessProofs;
  readonly ledgers: LedgerGateway;
  readonly mutex: KeyedMutex;
}

/** Restrictions of projects and teams, in their records, and of agents, in separate records; replaced as a whole. */
export class RestrictionLists {
  readonly #dependencies: RestrictionListsDependencies;

  constructor(dependencies: RestrictionListsDependencies) {
    this.#dependencies = dependencies;
  }

  async of({ level, record }: RestrictedTarget): Promise<VersionedRestrictions> {
    if (level !== "agent") return restrictionsOf(record);
    return restrictionsOf(await this.#dependencies.collections.ruled.agent.findOne({ _id: record._id }));
  }

  /**
   * Replaces the restrictions if they are at `version`, in one transaction. Resolves once the ledger accepts no payment
   * and no approval that was judged by older ones.
   */
  async replace(
    target: RestrictedTarget,
    { version, ...lists }: VersionedRestrictions,
    { transaction }: AuditedWrites,
  ): Promise<Result<VersionedRestrictions>> {
    const { level, record } = target;
    const { _id, archivedAt, organizationId } = record;
    const archived = refusal(level === "agent" ? "AGENT_ARCHIVED" : "CONTAINER_ARCHIVED");
    if (archivedAt !== null) return refused(archived);
    const restrictions = this.#stored(level, _id, lists, version + 1);
    const replace = async (session: ClientSession): Promise<Outcome<Result<number>>> => {
      const levels = this.#dependencies.collections.ruled[level];
      const found = await levels.findOne({ _id }, { session });
      if (found?.["archivedAt"]) return unchanged(refused(archived));
      const before = restrictionsOf(found);
      if (before.version !== version) return unchanged(refused(refusal("STALE_RESTRICTIONS")));
      // A concurrent replacement conflicts with this transaction and is repeated.
      const change = { $set: { restrictions }, $setOnInsert: { organizationId } };
      const options = { session, projection: REVISION, returnDocument: "after" } as const;
      const upsert = level === "agent";
      const replaced = await levels.findOneAndUpdate({ _id }, change, { ...options, upsert });
      const revision = rulesRevisionOf(replaced ?? { restrictions });
      return changed(ok(revision), { before, after: restrictionsOf({ restrictions }) });
    };
    const replaced = await this.#dependencies.mutex.run(_id, () => transaction(replace));
    if (!replaced.ok) return replaced;
    await this.#follow(target, replaced.value);
    return ok(restrictionsOf({ restrictions }));
  }

  async #follow({ level, record }: RestrictedTarget, version: number): Promise<void> {
    const { ledgers } = this.#dependencies;
    if (level !== "agent") return followedByLedger(ledgers, level, record, version);
    await ledgers.submit(record, { kind: "follow_restrictions", agentId: record._id, version });
  }

  /** Restrictions with the same hash are identical, since prepared ones are cached by it (src/payments/rules). */
  #stored(
    level: RestrictedTarget["level"],
    _id: string,
    lists: Restrictions,
    version: number,
  ): StoredRestrictions {
    const head = { version, contentHash: contentHash(lists) };
    const record = { _id, restrictions: head };
    return { lists, ...head, proof: this.#dependencies.accessProofs.make(`${level}Restrictions`, record) };
  }
}
