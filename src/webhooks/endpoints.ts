import { randomBytes } from "node:crypto";
import type { ClientSession } from "mongodb";
import type {
  EndpointDocument,
  ReplayRecord,
  SealedSecret,
  WebhookCollections,
} from "../store/webhook-documents.ts";
import { dropQueued } from "./delivery/outcomes.ts";
import type { WebhookWorkflows } from "./delivery/ports.ts";
import { fitsScope, SCOPE_IDS_ISSUE, type updateWebhook } from "../contract/operations/webhooks.ts";
import type { InputOf } from "../contract/types.ts";
import { refusal } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import type { WebhookScope } from "../domain/webhooks/subscription.ts";
import type { GuardedFetch } from "../lib/guarded-fetch/guarded-fetch.ts";
import { newWebhookSecret } from "./signature.ts";
import { type AuditedWrites, changed, unchanged } from "../audit/notes.ts";
import type { SessionPrincipal } from "../identity/session-principal.ts";
import type { Collections } from "../store/collections.ts";
import { newId } from "../lib/ids.ts";
import { definedFields } from "../store/lists.ts";
import type { AccessProofs } from "../secrets/access-proofs.ts";
import type { Sealer } from "../secrets/sealer.ts";
import type { KeyedMutex } from "../lib/keyed-mutex.ts";

/** Time during which the previous secret still signs after a rotation. */
const DAY_MS = 86_400_000;
export const ROTATION_MS = DAY_MS;
/** Maximum endpoints per organization: each event is delivered to all that subscribe to it. */
export const ENDPOINTS_MAX = 50;
/** Sealing purpose of signing secrets. */
export const SECRET_PURPOSE = "webhook-secret";

export interface WebhookEndpointsDependencies {
  readonly accessProofs: Pick<AccessProofs, "changed" | "genuine" | "proven">;
  readonly webhooks: WebhookCollections;
  readonly collections: Pick<Collections, "agents" | "organizations" | "projects" | "teams">;
  readonly guard: Pick<GuardedFetch, "judge">;
  readonly sealer: Sealer;
  readonly workflows: Pick<WebhookWorkflows, "startReplay" | "startSecretExpiry">;
  readonly clock: () => Date;
  readonly mutex: KeyedMutex;
  readonly retentionDays: number;
}

export type EndpointChange = InputOf<typeof updateWebhook>["body"];

export interface EndpointChoice {
  readonly name: string;
  readonly url: string;
  readonly eventTypes: readonly string[];
  readonly scopeType: WebhookScope;
  readonly scopeIds: readonly string[];
  readonly description: string | null;
}

/** An endpoint with a secret that is shown only once. */
export interface WithSecret {
  readonly endpoint: EndpointDocument;
  readonly secret: string;
}

const notFound = () => refused(refusal("NOT_FOUND"));
const invalid = (path: string, message: string) =>
  refused(refusal("VALIDATION_FAILED", undefined, { issues: [{ path, message }] }));

export class WebhookEndpoints {
  readonly #dependencies: WebhookEndpointsDependencies;

  constructor(dependencies: WebhookEndpointsDependencies) {
    this.#dependencies = dependencies;
  }

  async find(organizationId: string, id: string): Promise<Result<EndpointDocument>> {
    const { accessProofs, webhooks } = this.#dependencies;
    const found = accessProofs.genuine(
      "webhook",
      await webhooks.endpoints.findOne({ _id: id, organizationId }),
    );
    return found === null ? notFound() : ok(found);
  }

  /** Creates an endpoint. Concurrent calls never exceed the maximum. */
  async create(
    { organizationId, userId }: SessionPrincipal,
    { eventTypes, scopeIds, ...choice }: EndpointChoice,
    { transaction }: AuditedWrites,
  ): Promise<Result<WithSecret>> {
    const { accessProofs, clock, mutex, webhooks } = this.#dependencies;
    const wrong = await this.#dependencies.guard.judge(choice.url);
    if (wrong !== null) return invalid("url", wrong);
    if (!(await this.#exist(organizationId, choice.scopeType, scopeIds))) return notFound();
    const now = clock();
    const { sealed, secret } = this.#newSecret();
    const endpoint: EndpointDocument = accessProofs.proven("webhook", {
      _id: newId("whe"),
      organizationId,
      ...choice,
      eventTypes: [...eventTypes],
      scopeIds: [...scopeIds],
      isActive: true,
      disabled: null,
      consecutiveFailures: 0,
      secret: sealed,
      previousSecret: null,
      replay: null,
      createdBy: userId,
      createdAt: now,
      updatedAt: now,
    });
    const write = () =>
      transaction<Result<WithSecret>>(async (session) => {
        if (!(await this.#hasCapacity(organizationId, session))) {
          await session.abortTransaction();
          return unchanged(refused(refusal("TOO_MANY_WEBHOOKS")));
        }
        await webhooks.endpoints.insertOne(endpoint, { session });
        const on = { type: "webhook_endpoint", id: endpoint._id };
        return changed(ok({ endpoint, secret }), { on, after: auditedFields(endpoint) });
      });
    return mutex.run(`webhooks/${organizationId}`, write);
  }

  /** Changes an endpoint; of two concurrent changes the later wins, field by field. */
  async update(
    organizationId: string,
    id: string,
    change: EndpointChange,
    audit: AuditedWrites,
  ): Promise<Result<EndpointDocument>> {
    if (change.url !== undefined) {
      const wrong = await this.#dependencies.guard.judge(change.url);
      if (wrong !== null) return invalid("url", wrong);
    }
    const found = await this.find(organizationId, id);
    if (!found.ok) return found;
    const scopeType = change.scopeType ?? found.value.scopeType;
    const kept = scopeType === found.value.scopeType ? found.value.scopeIds : [];
    const scopeIds = change.scopeIds ?? kept;
    if (!fitsScope({ scopeType, scopeIds })) return invalid("scopeIds", SCOPE_IDS_ISSUE.error);
    if (!(await this.#exist(organizationId, scopeType, scopeIds))) return notFound();
    const { isActive, ...fields } = change;
    const scope =
      change.scopeType === undefined && change.scopeIds === undefined ? {} : { scopeType, scopeIds };
    return this.#write({ _id: id, organizationId }, { ...definedFields(fields), ...scope }, isActive, audit);
  }

  /** Removes an endpoint with its secrets; queued deliveries are not sent. */
  async remove(
    organizationId: string,
    id: string,
    { transaction }: AuditedWrites,
  ): Promise<Result<EndpointDocument>> {
    const { webhooks } = this.#dependencies;
    return transaction<Result<EndpointDocument>>(async (session) => {
      const endpoint = await webhooks.endpoints.findOneAndDelete({ _id: id, organizationId }, { session });
      if (endpoint === null) return unchanged(notFound());
      await dropQueued(webhooks, id, session);
      return changed(ok(endpoint), { before: auditedFields(endpoint) });
    });
  }

  /**
   * Replaces an endpoint's secret. The two newest secrets sign; the one before the last rotation is erased at once. Of
   * two concurrent rotations, one is refused.
   */
  async rotate(
    organizationId: string,
    id: string,
    { transaction }: AuditedWrites,
  ): Promise<Result<WithSecret>> {
    const { accessProofs, clock, webhooks, workflows } = this.#dependencies;
    const found = await this.find(organizationId, id);
    if (!found.ok) return found;
    const { secret: old } = found.value;
    const { sealed, secret } = this.#newSecret();
    const now = clock();
    const expiresAt = new Date(now.getTime() + ROTATION_MS);
    // Started first, so that a failed rotation leaves no old secret behind, and an error loses no new one.
    await workflows.startSecretExpiry({
      endpointId: id,
      secretId: old.id,
      expiresAt: expiresAt.getTime(),
    });
    const unrotated = { _id: id, organizationId, "secret.id": old.id };
    const rotated = { secret: sealed, previousSecret: { ...old, expiresAt }, updatedAt: now };
    return transaction<Result<WithSecret>>(async (session) => {
      const before = accessProofs.genuine(
        "webhook",
        await webhooks.endpoints.findOne(unrotated, { session }),
      );
      if (before === null) return unchanged(refused(refusal("REQUEST_IN_PROGRESS")));
      const $set = accessProofs.changed("webhook", before, rotated);
      await webhooks.endpoints.updateOne({ _id: id }, { $set }, { session });
      return changed(ok({ endpoint: { ...before, ...$set }, secret }));
    });
  }

  /** Starts to send what the endpoint missed between `since` and now. One replay at a time. */
  async replay(
    organizationId: string,
    id: string,
    since: Date,
    { transaction }: AuditedWrites,
  ): Promise<Result<ReplayRecord>> {
    const { clock, retentionDays, webhooks, workflows } = this.#dependencies;
    const found = await this.find(organizationId, id);
    if (!found.ok) return found;
    if (!found.value.isActive) return refused(refusal("WEBHOOK_DISABLED"));
    const until = clock();
    if (since > until) return invalid("since", "must not be in the future");
    // Earlier deliveries are gone, so it is unknown which arrived.
    if (until.getTime() - since.getTime() > retentionDays * DAY_MS) {
      return invalid(
        "since",
        `must lie within the last ${retentionDays} days, for which deliveries are kept`,
      );
    }
    const replay: ReplayRecord = {
      id: newId("whr"),
      since,
      until,
      state: "running",
      examined: 0,
      queued: 0,
      position: null,
      endedAt: null,
    };
    const idle = { _id: id, organizationId, "replay.state": { $ne: "running" } } as const;
    const begin = () =>
      transaction(async (session) => {
        const { matchedCount } = await webhooks.endpoints.updateOne(idle, { $set: { replay } }, { session });
        return matchedCount === 0 ? unchanged(false) : changed(true);
      });
    // The transaction's snapshot may still contain a replay that has just ended, so it is tried again.
    const isBegun = (await begin()) || (!(await this.#isReplaying(organizationId, id)) && (await begin()));
    if (!isBegun) return refused(refusal("REPLAY_IN_PROGRESS"));
    try {
      await workflows.startReplay({ organizationId, endpointId: id, replayId: replay.id });
    } catch (error) {
      // No process continues this replay, so no request should wait for it.
      const ended = { ...replay, state: "stopped", endedAt: clock() } as const;
      await webhooks.endpoints.updateOne({ _id: id, "replay.id": replay.id }, { $set: { replay: ended } });
      throw error;
    }
    return ok(replay);
  }

  /** Whether a replay is running. Restarts its workflow: the requesting process may have died before it began. */
  async #isReplaying(organizationId: string, endpointId: string): Promise<boolean> {
    const found = await this.find(organizationId, endpointId);
    const replay = found.ok ? found.value.replay : null;
    if (replay?.state !== "running") return false;
    await this.#dependencies.workflows.startReplay({ organizationId, endpointId, replayId: replay.id });
    return true;
  }

  async #write(
    own: { readonly _id: string; readonly organizationId: string },
    fields: Partial<EndpointDocument>,
    isActive: boolean | undefined,
    { transaction }: AuditedWrites,
  ): Promise<Result<EndpointDocument>> {
    const { accessProofs, clock, mutex, webhooks } = this.#dependencies;
    const write = () =>
      transaction<Result<EndpointDocument>>(async (session) => {
        const before = accessProofs.genuine("webhook", await webhooks.endpoints.findOne(own, { session }));
        if (before === null) return unchanged(notFound());
        const turned = isActive === undefined || isActive === before.isActive ? {} : turn(isActive, clock());
        // Enabling an active endpoint also resets its count.
        const counted = isActive === true ? { consecutiveFailures: 0 } : {};
        const change = { ...fields, ...turned, ...counted, updatedAt: clock() };
        const $set = accessProofs.changed("webhook", before, change);
        const after = await webhooks.endpoints.findOneAndUpdate(
          own,
          { $set },
          { session, returnDocument: "after" },
        );
        if (before.isActive && isActive === false) await dropQueued(webhooks, before._id, session);
        if (after === null) return unchanged(notFound());
        return changed(ok(after), { before: auditedFields(before), after: auditedFields(after) });
      });
    return mutex.run(own._id, write);
  }

  /**
   * Whether there is room for another endpoint, within its transaction. Writes the organization's record, so that
   * concurrent creations conflict.
   */
  async #hasCapacity(organizationId: string, session: ClientSession): Promise<boolean> {
    const { collections, webhooks } = this.#dependencies;
    const next = { $inc: { webhooksRevision: 1 } };
    await collections.organizations.updateOne({ _id: organizationId }, next, { session });
    return (await webhooks.endpoints.countDocuments({ organizationId }, { session })) < ENDPOINTS_MAX;
  }

  /** Whether all ids exist in this organization, including archived ones. */
  async #exist(organizationId: string, scope: WebhookScope, ids: readonly string[]): Promise<boolean> {
    if (scope === "organization") return true;
    const { agents, projects, teams } = this.#dependencies.collections;
    const own = { _id: { $in: [...ids] }, organizationId };
    const counts = {
      agent: () => agents.countDocuments(own),
      project: () => projects.countDocuments(own),
      team: () => teams.countDocuments(own),
    };
    return (await counts[scope]()) === ids.length;
  }

  #newSecret(): { readonly sealed: SealedSecret; readonly secret: string } {
    const id = newId("whs");
    const secret = newWebhookSecret(randomBytes);
    return { sealed: { id, sealed: this.#dependencies.sealer.seal(SECRET_PURPOSE, id, secret) }, secret };
  }
}

/** Returns the audited fields: those that decide where events go. */
const auditedFields = (endpoint: EndpointDocument) => ({
  name: endpoint.name,
  url: endpoint.url,
  eventTypes: endpoint.eventTypes,
  scopeType: endpoint.scopeType,
  scopeIds: endpoint.scopeIds,
  isActive: endpoint.isActive,
});

/** Returns the change for switching an endpoint: off drops its queue, on resets its failures. */
const turn = (isActive: boolean, at: Date): Partial<EndpointDocument> =>
  isActive
    ? { isActive, disabled: null, consecutiveFailures: 0 }
    : { isActive, disabled: { at, reason: "by_person", by: null } };
