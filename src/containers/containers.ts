import type { ClientSession, Collection } from "mongodb";
import type { ContainerDocument } from "../store/documents.ts";
import { type Refusal, refusal } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import { type AuditedWrites, changed, type Outcome, unchanged } from "../audit/notes.ts";
import type { Collections } from "../store/collections.ts";
import { definedFields } from "../store/lists.ts";
import type { KeyedMutex } from "../lib/keyed-mutex.ts";
import type { Logos } from "./logos.ts";

/** Maximum live teams of a project: each read of its budget reads them all, and a replacement names them all. */
export const LIVE_TEAMS_MAX = 1_000;

/** Maximum teams ever created in a project, including archived ones: its ledger keeps the spend of each. */
const TEAMS_EVER_MAX = 2_000;

export type ContainerKind = "project" | "team";

/** A container in which something is created. */
export interface Parent {
  readonly kind: ContainerKind;
  readonly id: string;
  readonly archivedAt: Date | null;
}

export interface ContainerFields {
  readonly name?: string | undefined;
  readonly description?: string | null | undefined;
  readonly color?: string | null | undefined;
  /** A data URL. */
  readonly logo?: string | null | undefined;
}

export interface ContainersDependencies {
  readonly collections: Collections;
  readonly logos: Logos;
  readonly mutex: KeyedMutex;
  readonly clock: () => Date;
}

/**
 * Existing projects and teams. A create in a container writes to the container's own record in the same transaction
 * (`enter`), and so does its archival: the database lets one of the two commit first, and the other sees its effect. So
 * an archived container never contains anything live.
 */
export class Containers {
  readonly #dependencies: ContainersDependencies;

  constructor(dependencies: ContainersDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Writes to a container's record in the transaction that creates something inside; returns false if it is archived.
   */
  async enter({ id, kind }: Parent, session: ClientSession): Promise<boolean> {
    // The counter makes this a write; an update without a change would not conflict with an archival.
    const entered = await this.#of(kind).updateOne(
      { _id: id, archivedAt: null },
      { $inc: { childrenCreated: 1 } },
      { session },
    );
    return entered.matchedCount === 1;
  }

  /**
   * Returns the refusal of one more team. Within the creating transaction, after `enter` has made concurrent creates
   * conflict, it is exact; without a session it is only a check in advance.
   */
  async teamCapacityRefusal(projectId: string, session?: ClientSession): Promise<Refusal | null> {
    const { projects, teams } = this.#dependencies.collections;
    const live = { projectId, archivedAt: null };
    const count = await teams.countDocuments(live, { ...definedFields({ session }), limit: LIVE_TEAMS_MAX });
    if (count >= LIVE_TEAMS_MAX) return refusal("TOO_MANY_TEAMS");
    const project = await projects.findOne({ _id: projectId }, definedFields({ session }));
    const others = (project?.childrenCreated ?? 0) - (session === undefined ? 0 : 1);
    return others < TEAMS_EVER_MAX ? null : refusal("PROJECT_FULL");
  }

  /** Changes the given fields; null clears one. Refuses any change of an archived container, even an empty one. */
  async change(
    kind: ContainerKind,
    target: ContainerDocument,
    { logo, ...fields }: ContainerFields,
    { transaction }: AuditedWrites,
  ): Promise<Result<ContainerDocument>> {
    if (target.archivedAt !== null) return refused(refusal("CONTAINER_ARCHIVED"));
    const { logos, mutex } = this.#dependencies;
    const logoHash = typeof logo === "string" ? await logos.keep(target.organizationId, logo) : logo;
    const $set = definedFields({ ...fields, logoHash });
    const { _id } = target;
    const alive = { _id, archivedAt: null };
    const change = async (session: ClientSession): Promise<Outcome<Result<ContainerDocument>>> => {
      const before = await this.#of(kind).findOneAndUpdate(alive, { $set }, { session });
      if (before === null) return unchanged(refused(refusal("CONTAINER_ARCHIVED")));
      const after = { ...before, ...$set };
      return changed(ok(after), { before: shownOf(before), after: shownOf(after) });
    };
    return mutex.run(_id, () => transaction(change));
  }

  /** Permanently archives a container without live children; an archived one stays unchanged. */
  async archive(
    kind: ContainerKind,
    target: ContainerDocument,
    { transaction }: AuditedWrites,
  ): Promise<Result<ContainerDocument>> {
    const { clock, mutex } = this.#dependencies;
    const { _id } = target;
    const containers = this.#of(kind);
    const archive = async (session: ClientSession): Promise<Outcome<Result<ContainerDocument>>> => {
      const archived = await containers.findOneAndUpdate(
        { _id, archivedAt: null },
        { $set: { archivedAt: clock(), state: "archived" } },
        { session, returnDocument: "after" },
      );
      if (archived === null) return unchanged(ok(await this.#read(kind, _id, session)));
      if (!(await this.#hasLiveChildren(kind, _id, session))) return changed(ok(archived), ARCHIVED);
      await session.abortTransaction();
      return unchanged(refused(refusal("CONTAINER_NOT_EMPTY")));
    };
    return mutex.run(_id, () => transaction(archive));
  }

  /** A paused agent is live, since it can be resumed. */
  async #hasLiveChildren(kind: ContainerKind, id: string, session: ClientSession): Promise<boolean> {
    const { agents, teams } = this.#dependencies.collections;
    const options = { session, projection: { _id: 1 } };
    const child =
      kind === "team"
        ? await agents.findOne({ teamId: id, lifecycle: { $in: ["active", "paused"] } }, options)
        : await teams.findOne({ projectId: id, archivedAt: null }, options);
    return child !== null;
  }

  async #read(kind: ContainerKind, _id: string, session: ClientSession): Promise<ContainerDocument> {
    const found = await this.#of(kind).findOne({ _id }, { session });
    if (found === null) throw new Error(`${kind} ${_id} has lost its record`);
    return found;
  }

  #of(kind: ContainerKind): Collection<ContainerDocument> {
    return this.#dependencies.collections.containers[kind];
  }
}

const ARCHIVED = { before: { state: "active" }, after: { state: "archived" } };

/** Returns the fields of a change for the audit log; the logo's hash stands for the logo. */
const shownOf = ({ color, description, logoHash, name }: ContainerDocument) => ({
  name,
  description,
  color,
  logoHash,
});

/** Projection of lists, which show no rules or restrictions; these may be many times larger than the rest. */
export const WITHOUT_RULES = { approvalRules: 0, restrictions: 0 } as const;
