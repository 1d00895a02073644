import type { AuditSeal } from "../../src/domain/audit/entry.ts";
import { approvalRules } from "../../src/contract/approval-rules.ts";
import { restrictions } from "../../src/contract/restrictions.ts";
import { restrictionsOf, type VersionedRestrictions } from "../../src/containers/restrictions.ts";
import type { RestrictedLevel } from "../../src/domain/rules/restrictions.ts";
import type { ApprovalRule } from "../../src/domain/rules/rules.ts";
import { isGenuine } from "../../src/store/audit-documents.ts";
import type { Collections } from "../../src/store/collections.ts";
import type { RuledDocument } from "../../src/store/documents.ts";

/** Rules and restrictions of a level as they were at one revision (`rulesRevisionOf`). */
export interface PastRules {
  readonly rules: readonly ApprovalRule[];
  /** Null: none were set. */
  readonly restrictions: VersionedRestrictions | null;
}

/** A level of an organization. */
export interface PastLevel {
  readonly level: RestrictedLevel;
  readonly id: string;
  readonly organizationId: string;
}

/** Replacements that are looked through for an older revision. */
const REPLACEMENTS_MAX = 500;

const RULES = { project: "setProjectApprovalRules", team: "setTeamApprovalRules", agent: null } as const;
const RESTRICTIONS = {
  project: "setProjectRestrictions",
  team: "setTeamRestrictions",
  agent: "setAgentRestrictions",
} as const;

/** Versions of both documents; 0: not set. */
interface Versions {
  readonly rules: number;
  readonly restrictions: number;
}

/** Reads past contents: the current ones from the level's record, replaced ones from the audit log. */
export class PastRulesReader {
  readonly #collections: Pick<Collections, "auditLog" | "ruled">;
  readonly #seal: AuditSeal;

  constructor(collections: Pick<Collections, "auditLog" | "ruled">, seal: AuditSeal) {
    this.#collections = collections;
    this.#seal = seal;
  }

  /** Null: they are not recorded. */
  async at(level: PastLevel, revision: number): Promise<PastRules | null> {
    const projection = { approvalRules: 1, restrictions: 1 };
    const found = await this.#collections.ruled[level.level].findOne({ _id: level.id }, { projection });
    if (found === null) return null;
    const now = { rules: found.approvalRules?.version ?? 0, restrictions: found.restrictions?.version ?? 0 };
    const versions = await this.#versionsAt(level, now, revision);
    if (versions === null) return null;
    const [rules, lists] = await Promise.all([
      versions.rules === now.rules ? (found.approvalRules?.rules ?? []) : this.#rules(level, versions.rules),
      versions.restrictions === now.restrictions
        ? currentRestrictions(found)
        : this.#restrictions(level, versions.restrictions),
    ]);
    return rules === null || lists === undefined ? null : { rules, restrictions: lists };
  }

  /** Goes back from the current versions, one replacement after the other, until they add up to the revision. */
  async #versionsAt(level: PastLevel, now: Versions, revision: number): Promise<Versions | null> {
    if (now.rules + now.restrictions === revision) return now;
    const actions = [RULES[level.level], RESTRICTIONS[level.level]].filter((action) => action !== null);
    const replacements = await this.#collections.auditLog
      .find(
        { ...replacementsOf(level), action: { $in: actions } },
        { projection: { action: 1, sequence: 1 } },
      )
      .sort({ at: -1, _id: -1 })
      .limit(REPLACEMENTS_MAX)
      .toArray();
    let versions = now;
    for (const { action } of replacements.toSorted((one, other) => other.sequence - one.sequence)) {
      const replaced = action === RULES[level.level] ? "rules" : "restrictions";
      versions = { ...versions, [replaced]: versionBefore(versions[replaced]) };
      const sum = versions.rules + versions.restrictions;
      if (sum <= revision) return sum === revision ? versions : null;
    }
    return null;
  }

  /** Null: not recorded. */
  async #rules(level: PastLevel, version: number): Promise<readonly ApprovalRule[] | null> {
    if (version === 0) return [];
    const parsed = approvalRules.safeParse(await this.#replacement(level, RULES[level.level], version));
    return parsed.data?.rules ?? null;
  }

  /** Undefined: not recorded. */
  async #restrictions(level: PastLevel, version: number): Promise<VersionedRestrictions | null | undefined> {
    if (version === 0) return null;
    const action = RESTRICTIONS[level.level];
    return restrictions.safeParse(await this.#replacement(level, action, version)).data;
  }

  /** The contents that a replacement put into force, as its entry has them. */
  async #replacement(level: PastLevel, action: string | null, version: number): Promise<unknown> {
    if (action === null) return null;
    const found = await this.#collections.auditLog.findOne({
      ...replacementsOf(level),
      action,
      "after.version": version,
    });
    return found !== null && isGenuine(found, level.organizationId, this.#seal) ? found.after : null;
  }
}

const replacementsOf = ({ id, organizationId }: PastLevel) => ({
  organizationId,
  "resource.id": id,
  "result.code": null,
});

const currentRestrictions = (level: RuledDocument): VersionedRestrictions | null =>
  level.restrictions === undefined ? null : restrictionsOf(level);

/** The first replacement makes version 2. */
const versionBefore = (version: number): number => (version === 2 ? 0 : version - 1);
