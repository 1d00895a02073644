import type { RaiseDecision, RaiseRequestDocument } from "../store/raise-documents.ts";
import type { AgentDocument } from "../store/documents.ts";
import { ActorUnavailable } from "../actors/actor-unavailable.ts";
import type { Ledgers } from "../actors/ledgers.ts";
import type { TemporalActors } from "../actors/temporal.ts";
import type { AuditNotes } from "../audit/notes.ts";
import type { ContainerBudgets } from "./container-budgets.ts";
import { refusal } from "../domain/errors.ts";
import { NO_RAISE_BASIS, type RaiseBasis } from "../domain/ledger/raises.ts";
import type { Resolver } from "../domain/ledger/payment.ts";
import { mcOf } from "../domain/money.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import { isDuplicateKey } from "../lib/duplicate-key.ts";
import { newUuid, payloadHash, shortHash } from "../lib/ids.ts";
import type { AccessProofs } from "../secrets/access-proofs.ts";
import type { Collections } from "../store/collections.ts";

const DAY_MS = 86_400_000;

/** Maximum raises that an agent may request in 24 hours. */
const REQUESTS_PER_DAY = 5;

/** Age up to which an interrupted grant is applied by the next reader. */
const APPLIED_WITHIN_MS = DAY_MS;

/** Version that no policy has: a grant based on it applies nothing, and is answered as granted if it was applied. */
const NO_VERSION = 0;

/** Age up to which a grant that met another change of limits is decided again on the new limits. */
const DECIDED_AGAIN_WITHIN_MS = 3_000;

export interface RaiseOrder {
  readonly amountCents: number;
  readonly reason: string;
  readonly transactionId?: string | undefined;
  readonly idempotencyKey: string;
}

/** End of a grant; missing for each limit's own window. */
export type GrantedUntil = Pick<RaiseDecision, "endsAt">;

export interface RaiseRequestsDependencies {
  readonly collections: Pick<Collections, "raiseRequests" | "transactions">;
  readonly accessProofs: AccessProofs;
  readonly ledgers: Pick<Ledgers, "submit" | "submitRecorded">;
  readonly actors: Pick<TemporalActors, "account">;
  readonly containerBudgets: Pick<ContainerBudgets, "record">;
  readonly clock: () => Date;
}

/** Agents' requests for higher limits; at most one per agent is pending. */
export class RaiseRequests {
  readonly #dependencies: RaiseRequestsDependencies;

  constructor(dependencies: RaiseRequestsDependencies) {
    this.#dependencies = dependencies;
  }

  /** Requests a raise. A repeated request returns its raise in the current state. */
  async request(
    agent: AgentDocument,
    order: RaiseOrder,
  ): Promise<Result<{ readonly request: RaiseRequestDocument; readonly replayed: boolean }>> {
    const { clock, collections } = this.#dependencies;
    const { amountCents, idempotencyKey, reason, transactionId = null } = order;
    const keyHash = shortHash(idempotencyKey);
    const hash = payloadHash([amountCents, reason, transactionId]);
    const known = await collections.raiseRequests.findOne({ agentId: agent._id, keyHash });
    if (known !== null) return this.#replayed(known, hash);
    const isForeign =
      transactionId !== null &&
      (await collections.transactions.findOne({ _id: transactionId, agentId: agent._id })) === null;
    if (isForeign) return refused(refusal("NOT_FOUND", "You have made no payment with this transactionId."));
    const open = await collections.raiseRequests.findOne({ openOf: agent._id });
    if (open !== null && (await this.finished(open)).status === "pending")
      return refused(refusal("RAISE_PENDING"));
    const now = clock();
    const exhausted = await this.#exhausted(agent, now);
    if (exhausted !== null) return exhausted;
    const asked = { agentId: agent._id, now: now.getTime(), raiseMc: mcOf(amountCents) };
    const account = await this.#dependencies.actors.account(agent.projectId, asked);
    if (account === null) throw new ActorUnavailable("the ledger has no such account");
    const { shortfalls } = account;
    if (shortfalls.length === 0) return refused(refusal("RAISE_NOT_NEEDED"));
    const { _id: agentId, name: agentName, organizationId, projectId, teamId } = agent;
    const request = this.#proven({
      _id: newUuid(),
      organizationId,
      projectId,
      teamId,
      agentId,
      agentName,
      amountCents,
      reason,
      transactionId,
      keyHash,
      payloadHash: hash,
      shortfalls,
      status: "pending",
      decision: null,
      raised: [],
      feedback: null,
      resolvedBy: null,
      resolvedAt: null,
      createdAt: now,
      openOf: agentId,
    });
    try {
      await collections.raiseRequests.insertOne(request);
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
      const first = await collections.raiseRequests.findOne({ agentId, keyHash });
      return first === null ? refused(refusal("RAISE_PENDING")) : this.#replayed(first, hash);
    }
    return ok({ request, replayed: false });
  }

  async #replayed(known: RaiseRequestDocument, hash: string) {
    if (known.payloadHash !== hash) return refused(refusal("IDEMPOTENCY_KEY_REUSED"));
    return ok({ request: await this.finished(known), replayed: true });
  }

  async #exhausted({ _id: agentId }: AgentDocument, now: Date) {
    const since = new Date(now.getTime() - DAY_MS);
    const newest = await this.#dependencies.collections.raiseRequests
      .find({ agentId, createdAt: { $gt: since } })
      .sort({ createdAt: -1 })
      .limit(REQUESTS_PER_DAY)
      .toArray();
    const oldest = newest[REQUESTS_PER_DAY - 1];
    if (oldest === undefined) return null;
    const retryAfterSeconds = Math.ceil((oldest.createdAt.getTime() - since.getTime()) / 1_000);
    return refused(refusal("RAISE_LIMIT_REACHED", undefined, { retryAfterSeconds }));
  }

  /**
   * Grants a raise. The person's decision is recorded under the request's id before the ledger applies it, so that the
   * next reader finishes it if the process dies in between. The decision names the limits that it was based on: a
   * command that a stalled server submits after one of them was set, or after a later grant, raises nothing.
   */
  async grant(
    request: RaiseRequestDocument,
    by: Resolver,
    { endsAt }: GrantedUntil,
    audit: Pick<AuditNotes, "begin" | "change">,
  ): Promise<Result<RaiseRequestDocument>> {
    const { clock } = this.#dependencies;
    const genuine = this.#genuine(request);
    if (genuine.status !== "pending") return refused(refusal("RAISE_ALREADY_RESOLVED"));
    const at = clock();
    const isFresh = () => clock().getTime() - at.getTime() < DECIDED_AGAIN_WITHIN_MS;
    let open = genuine;
    for (let attempt = 1; ; attempt += 1) {
      const decision = open.decision ?? { by, at, endsAt, basis: await this.#basis(open) };
      if (attempt === 1) await audit.begin({ before: null, after: grantEntry(open, decision) });
      // The basis of a new decision may have been read long after the person's decision.
      else if (!isFresh()) return refused(refusal("STALE_BUDGET"));
      const decided = open.decision === null ? await this.#change(open, { decision }) : open;
      if (decided === null) return refused(refusal("RAISE_ALREADY_RESOLVED"));
      const { refusedAs, request: known } = await this.#finish(decided, decision);
      if (refusedAs === "raise_stale" && known.status === "pending" && known.decision === null && isFresh())
        open = known;
      else if (refusedAs !== null)
        return refused(refusal(refusedAs === "raise_stale" ? "STALE_BUDGET" : "RAISE_IMPOSSIBLE"));
      else if (known.status === "granted") {
        audit.change(null, { ...grantEntry(known, decision), raised: known.raised });
        return ok(known);
      } else
        return refused(refusal(known.closedBy === "AGENT_ARCHIVED" ? "AGENT_ARCHIVED" : "RAISE_NOT_NEEDED"));
    }
  }

  async #basis({ agentId, projectId }: RaiseRequestDocument): Promise<RaiseBasis> {
    const { actors, clock } = this.#dependencies;
    const account = await actors.account(projectId, { agentId, now: clock().getTime() });
    return account?.raiseBasis ?? NO_RAISE_BASIS;
  }

  async refuse(
    request: RaiseRequestDocument,
    by: Resolver,
    feedback: string,
    audit: Pick<AuditNotes, "begin" | "change">,
  ): Promise<Result<RaiseRequestDocument>> {
    const known = await this.finished(this.#genuine(request));
    if (known.status !== "pending") return refused(refusal("RAISE_ALREADY_RESOLVED"));
    const entry = { agentId: known.agentId, amountCents: known.amountCents };
    await audit.begin({ before: null, after: entry });
    const resolved = { feedback, resolvedBy: by, resolvedAt: this.#dependencies.clock() };
    const refusedOne = await this.#change(known, { ...resolved, status: "refused" });
    if (refusedOne === null) return refused(refusal("RAISE_ALREADY_RESOLVED"));
    audit.change(null, entry);
    return ok(refusedOne);
  }

  /** Returns the request; finishes an interrupted grant first. One too old to be applied is then open again. */
  async finished(request: RaiseRequestDocument): Promise<RaiseRequestDocument> {
    const { decision, status } = request;
    if (status !== "pending" || decision === null) return request;
    const age = this.#dependencies.clock().getTime() - decision.at.getTime();
    const basis = { ...decision.basis, ...(age > APPLIED_WITHIN_MS && { policyVersion: NO_VERSION }) };
    return (await this.#finish(this.#genuine(request), { ...decision, basis })).request;
  }

  /** Applies a decision. `refusedAs`: the ledger raised nothing, and the request is open again. */
  async #finish(
    request: RaiseRequestDocument,
    { basis, by, endsAt }: RaiseDecision,
  ): Promise<{
    readonly request: RaiseRequestDocument;
    readonly refusedAs: "raise_impossible" | "raise_stale" | null;
  }> {
    const { clock, containerBudgets, ledgers } = this.#dependencies;
    const { _id: raiseId, agentId, amountCents } = request;
    const command = { kind: "grant_raise", agentId, raiseId, amountMc: mcOf(amountCents), basis } as const;
    const until = endsAt === "window" ? {} : { endsAt: endsAt?.getTime() ?? null };
    const { reply } = await ledgers.submitRecorded(request, { ...command, ...until });
    const resolved = { resolvedBy: by, resolvedAt: clock() };
    switch (reply.kind) {
      case "raised": {
        await containerBudgets.record(request, reply.caps);
        const { raised } = reply.grant;
        const granted = await this.#resolved(request, { ...resolved, status: "granted", raised });
        await ledgers.submit(request, { kind: "confirm_raise", agentId, raiseId });
        return { request: granted, refusedAs: null };
      }
      case "no_account":
      case "raise_not_needed": {
        const closedBy = reply.kind === "no_account" ? "AGENT_ARCHIVED" : "RAISE_NOT_NEEDED";
        const closed = await this.#resolved(request, { ...resolved, status: "closed", closedBy });
        return { request: closed, refusedAs: null };
      }
      case "raise_impossible":
      case "raise_stale": {
        const known = await this.#resolved(request, { decision: null });
        return { request: known, refusedAs: known.status === "pending" ? reply.kind : null };
      }
      default:
        throw new Error(`a ledger answered ${reply.kind} to a grant`);
    }
  }

  /** Returns the changed request, whether this call changed it or another one finished it first. */
  async #resolved(
    request: RaiseRequestDocument,
    change: Partial<RaiseRequestDocument>,
  ): Promise<RaiseRequestDocument> {
    const { raiseRequests } = this.#dependencies.collections;
    const changed = await this.#change(request, change);
    return changed ?? (await raiseRequests.findOne({ _id: request._id })) ?? request;
  }

  /** Replaces the record if it is unchanged; null if it is not. */
  async #change(
    request: RaiseRequestDocument,
    change: Partial<RaiseRequestDocument>,
  ): Promise<RaiseRequestDocument | null> {
    const { raiseRequests } = this.#dependencies.collections;
    const { _id, proof } = request;
    const { openOf, ...rest } = { ...request, ...change };
    const isOpen = rest.status === "pending" && openOf !== undefined;
    const changed = this.#proven({ ...rest, ...(isOpen ? { openOf } : {}) });
    return raiseRequests.findOneAndReplace({ _id, proof }, changed, { returnDocument: "after" });
  }

  #proven(request: Omit<RaiseRequestDocument, "proof">): RaiseRequestDocument {
    return this.#dependencies.accessProofs.proven("raiseRequest", request);
  }

  /** Returns the request if it is genuine; one that something else has changed raises nothing. */
  #genuine(request: RaiseRequestDocument): RaiseRequestDocument {
    const genuine = this.#dependencies.accessProofs.genuine("raiseRequest", request);
    if (genuine === null) throw new Error(`the raise request ${request._id} is not as the service wrote it`);
    return genuine;
  }
}

const grantEntry = ({ agentId, amountCents }: RaiseRequestDocument, { endsAt }: RaiseDecision) => ({
  agentId,
  amountCents,
  endsAt: endsAt instanceof Date ? endsAt.toISOString() : endsAt,
});
