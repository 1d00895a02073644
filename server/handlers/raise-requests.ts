import type { RaiseRequestDocument } from "../../src/store/raise-documents.ts";
import type { z } from "zod";
import { RaiseRequests } from "../../src/containers/raise-requests.ts";
import { agentIn } from "../../src/contract/primitives.ts";
import type { operations } from "../../src/contract/registry.ts";
import { ok } from "../../src/domain/result.ts";
import { mostSpecificScope } from "../../src/identity/most-specific-scope.ts";
import type { SessionPrincipal } from "../../src/identity/session-principal.ts";

import { definedFields } from "../../src/store/lists.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import { AFTER_WAIT_MS } from "./payments.ts";
import type { DeepReadonly, Handlers } from "./types.ts";

type RaiseHandlers = Pick<
  Handlers,
  "requestRaise" | "listRaiseRequests" | "getRaiseRequest" | "grantRaiseRequest" | "refuseRaiseRequest"
>;

export function raiseRequestHandlers(dependencies: HandlerDependencies): RaiseHandlers {
  const { baseUrl, collections, lists } = dependencies;
  const raises = new RaiseRequests(dependencies);
  const decidedWithin = waitsForDecision(dependencies);

  return {
    async requestRaise({ body, query: { waitSeconds } }, { deadline, principal: { agent } }) {
      const asked = await raises.request(agent, body);
      if (!asked.ok) return asked;
      const { replayed, request } = asked.value;
      if (waitSeconds > 0) deadline.moveTo(deadline.elapsedMs + waitSeconds * 1_000 + AFTER_WAIT_MS);
      const known = await decidedWithin(request, waitSeconds * 1_000);
      const shown = { raiseRequest: ownView(known), replayed, url: raisesUrl(baseUrl) };
      return ok(replayed ? { status: 200 as const, body: shown } : { body: shown });
    },

    async listRaiseRequests({ query }, { principal, target: { bindingFilter } }) {
      const { cursor, limit, status } = query;
      const agentId = agentIn(query);
      const { organizationId } = principal;
      const scope = await mostSpecificScope(collections, organizationId, { agentId }, bindingFilter);
      const page = await lists.page({
        collection: collections.raiseRequests,
        list: "raise-requests",
        filters: { organizationId, agentId, status, bindingFilter },
        equals: scope && { ...scope, ...definedFields({ status }) },
        limit,
        cursor,
      });
      if (!page.ok) return page;
      const { items, nextCursor } = page.value;
      return ok({ body: { raiseRequests: items.map(raiseRequestView), nextCursor } });
    },

    getRaiseRequest: async (_input, { target }) =>
      ok({ body: { raiseRequest: raiseRequestView(await raises.finished(target)) } }),

    async grantRaiseRequest({ body }, { audit, principal, target }) {
      const endsAt = body?.endsAt;
      const until = endsAt === undefined ? "window" : endsAt === null ? null : new Date(endsAt);
      const granted = await raises.grant(target, personOf(principal), { endsAt: until }, audit);
      return granted.ok ? ok({ body: { raiseRequest: raiseRequestView(granted.value) } }) : granted;
    },

    async refuseRaiseRequest({ body: { feedback } }, { audit, principal, target }) {
      const refusedOne = await raises.refuse(target, personOf(principal), feedback, audit);
      return refusedOne.ok ? ok({ body: { raiseRequest: raiseRequestView(refusedOne.value) } }) : refusedOne;
    },
  };
}

const personOf = ({ name, userId }: SessionPrincipal) => ({ userId, name });

const raisesUrl = (baseUrl: string): string => `${baseUrl}/approvals`;

/** Returns the request once it is decided, or its current state after `withinMs` or if too many calls wait. */
const waitsForDecision =
  ({
    collections: { raiseRequests },
    raiseChanges,
    waitingCalls,
  }: Pick<HandlerDependencies, "collections" | "raiseChanges" | "waitingCalls">) =>
  async (request: RaiseRequestDocument, withinMs: number): Promise<RaiseRequestDocument> => {
    if (request.status !== "pending" || withinMs <= 0) return request;
    const permit = waitingCalls.enter(request);
    if (permit === null) return request;
    const until = performance.now() + withinMs;
    const watch = await raiseChanges.watch(request._id);
    try {
      for (;;) {
        const known = (await raiseRequests.findOne({ _id: request._id })) ?? request;
        const leftMs = until - performance.now();
        if (known.status !== "pending" || leftMs <= 0 || raiseChanges.isOver) return known;
        await watch.changed(leftMs);
      }
    } finally {
      watch.end();
      permit.release();
    }
  };

type RaiseRequestView = z.input<typeof operations.getRaiseRequest.output>["raiseRequest"];
type OwnView = z.input<typeof operations.requestRaise.output>["raiseRequest"];

const iso = (at: number | Date): string => new Date(at).toISOString();

const sharedView = (request: RaiseRequestDocument) => ({
  id: request._id,
  status: request.status,
  amountCents: request.amountCents,
  reason: request.reason,
  transactionId: request.transactionId,
  feedback: request.feedback,
  createdAt: iso(request.createdAt),
  resolvedAt: request.resolvedAt === null ? null : iso(request.resolvedAt),
});

function ownView(request: RaiseRequestDocument): DeepReadonly<OwnView> {
  const ends = request.raised.flatMap(({ endsAt }) => endsAt ?? []);
  return {
    ...sharedView(request),
    shortfalls: request.shortfalls.map(({ level, limit, missingCents, resetsAt }) => ({
      level,
      limit,
      missingCents,
      resetsAt: resetsAt === null ? null : iso(resetsAt),
    })),
    endsAt: ends.length === 0 ? null : iso(Math.min(...ends)),
  };
}

const raiseRequestView = (request: RaiseRequestDocument): DeepReadonly<RaiseRequestView> => ({
  ...sharedView(request),
  agentId: request.agentId,
  agentName: request.agentName,
  teamId: request.teamId,
  projectId: request.projectId,
  shortfalls: request.shortfalls.map(({ resetsAt, startedAt: _startedAt, ...limit }) => ({
    ...limit,
    resetsAt: resetsAt === null ? null : iso(resetsAt),
  })),
  raised: request.raised.map(({ endsAt, ...limit }) => ({
    ...limit,
    endsAt: endsAt === null ? null : iso(endsAt),
  })),
  resolvedBy: request.resolvedBy,
});
