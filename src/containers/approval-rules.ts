import type { ClientSession, Collection } from "mongodb";
import { type ContainerDocument, rulesRevisionOf, type StoredRules } from "../store/documents.ts";
import { refusal, type ValidationIssue } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import type { ApprovalRule } from "../domain/rules/rules.ts";
import { type AuditedWrites, changed, type Outcome, unchanged } from "../audit/notes.ts";
import type { LedgerGateway } from "../payments/ports.ts";
import type { Collections } from "../store/collections.ts";
import type { AccessProofs } from "../secrets/access-proofs.ts";
import type { KeyedMutex } from "../lib/keyed-mutex.ts";
import { contentHash, newId } from "../lib/ids.ts";
import type { ContainerKind } from "./containers.ts";

export interface RulesOfContainer {
  readonly rules: readonly ApprovalRule[];
  readonly version: number;
}

type WithoutId<R> = R extends { readonly id: string }
  ? Omit<R, "id"> & { readonly id?: string | undefined }
  : never;
/** A rule in a request, with its id if it already exists. */
export type SentRule = WithoutId<ApprovalRule>;

/** Version before any rules are set. */
const FIRST_VERSION = 1;

export function rulesOf({ approvalRules }: Pick<ContainerDocument, "approvalRules">): RulesOfContainer {
  if (approvalRules === undefined) return { rules: [], version: FIRST_VERSION };
  const { rules, version } = approvalRules;
  return { rules, version };
}

/** Projection to the fields that determine a level's revision. */
export const REVISION = { "approvalRules.version": 1, "restrictions.version": 1 } as const;

/** Resolves once the container's ledger accepts no payment that was judged by an older revision. */
export async function followedByLedger(
  ledgers: LedgerGateway,
  kind: ContainerKind,
  target: ContainerDocument,
  version: number,
): Promise<void> {
  const { _id, organizationId } = target;
  const projectId = kind === "project" ? _id : String(target["projectId"]);
  const teamId = kind === "project" ? null : _id;
  await ledgers.submit({ organizationId, projectId }, { kind: "follow_rules", teamId, version });
}

export interface ApprovalRulesDependencies {
  readonly collections: Pick<Collections, "containers">;
  readonly accessProofs: AccessProofs;
  readonly ledgers: LedgerGateway;
  readonly mutex: KeyedMutex;
}

/** Approval rules of projects and teams: one array in the container's record, replaced as a whole. */
export class ApprovalRules {
  readonly #containers: Collections["containers"];
  readonly #accessProofs: AccessProofs;
  readonly #ledgers: LedgerGateway;
  readonly #mutex: KeyedMutex;

  constructor({ accessProofs, collections, ledgers, mutex }: ApprovalRulesDependencies) {
    this.#accessProofs = accessProofs;
    this.#containers = collections.containers;
    this.#ledgers = ledgers;
    this.#mutex = mutex;
  }

  /**
   * Replaces the rules if they are at `version`, in one transaction. Refuses an archived container first, then a stale
   * version, then a rule with an id that the container does not have. Resolves once the project's ledger accepts no
   * payment that was judged by older rules.
   */
  async replace(
    kind: ContainerKind,
    target: ContainerDocument,
    { rules, version }: { readonly rules: readonly SentRule[]; readonly version: number },
    { transaction }: AuditedWrites,
  ): Promise<Result<RulesOfContainer>> {
    const known = rulesOf(target);
    if (target.archivedAt !== null) return refused(refusal("CONTAINER_ARCHIVED"));
    if (known.version !== version) return refused(refusal("STALE_APPROVAL_RULES"));
    const issues = unknownIds(rules, known.rules);
    if (issues.length > 0) return refused(refusal("VALIDATION_FAILED", undefined, { issues }));
    const { _id } = target;
    const approvalRules = this.#stored(kind, _id, rules.map(withId), version + 1);
    // Rules that were never set are missing in the record, which null matches.
    const isAtVersion = { "approvalRules.version": version === FIRST_VERSION ? null : version };
    const current = { _id, archivedAt: null, ...isAtVersion };
    const replace = async (session: ClientSession): Promise<Outcome<Result<number>>> => {
      const change = { $set: { approvalRules } };
      const options = { session, projection: REVISION, returnDocument: "after" } as const;
      const replaced = await this.#of(kind).findOneAndUpdate(current, change, options);
      if (replaced === null) return unchanged(refused(await this.#overtaken(kind, _id, session)));
      // `known` is the state before: the update required the version that was read.
      return changed(ok(rulesRevisionOf(replaced)), { before: known, after: rulesOf({ approvalRules }) });
    };
    const replaced = await this.#mutex.run(_id, () => transaction(replace));
    if (!replaced.ok) return replaced;
    await followedByLedger(this.#ledgers, kind, target, replaced.value);
    return ok(rulesOf({ approvalRules }));
  }

  /** Returns the refusal after another user changed the container since it was read; archived precedes stale. */
  async #overtaken(kind: ContainerKind, _id: string, session: ClientSession) {
    const now = await this.#of(kind).findOne({ _id }, { projection: { archivedAt: 1 }, session });
    return refusal(now?.archivedAt ? "CONTAINER_ARCHIVED" : "STALE_APPROVAL_RULES");
  }

  #of(kind: ContainerKind): Collection<ContainerDocument> {
    return this.#containers[kind];
  }

  /** Rules with the same hash are identical, since prepared rules are cached by it (src/payments/rules). */
  #stored(kind: ContainerKind, _id: string, rules: readonly ApprovalRule[], version: number): StoredRules {
    const head = { _id, approvalRules: { version, contentHash: contentHash(rules) } };
    return { rules, ...head.approvalRules, proof: this.#accessProofs.make(`${kind}Rules`, head) };
  }
}

function unknownIds(rules: readonly SentRule[], known: readonly ApprovalRule[]): ValidationIssue[] {
  const ids = new Set(known.map(({ id }) => id));
  return rules.flatMap(({ id }, index) =>
    id === undefined || ids.has(id)
      ? []
      : [{ path: `rules.${index}.id`, message: "must be the id of a rule that is there" }],
  );
}

/** Puts the id first, where readers of the rules look for it. */
export const withId = ({ id = newId("rule"), ...rule }: SentRule): ApprovalRule => ({ id, ...rule });
