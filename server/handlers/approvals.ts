import pLimit from "p-limit";
import { type ApprovalDocument, profileOf } from "../../src/store/documents.ts";
import { tooManyOpen } from "../../src/payments/full-ledger.ts";
import type { PersonsDecision } from "../../src/payments/payment-proofs.ts";
import { agentIn } from "../../src/contract/primitives.ts";
import type { InputOf, OutputOf } from "../../src/contract/types.ts";
import type { LedgerAnswer } from "../../src/actors/ledger-mailbox.ts";
import type { Payment, PaymentRequest } from "../../src/domain/ledger/payment.ts";
import type { CommandOf, LedgerReply } from "../../src/domain/ledger/commands.ts";
import type { AgentProfile } from "../../src/domain/agent/state.ts";
import type { Refusal } from "../../src/domain/errors.ts";
import { refusal } from "../../src/domain/errors.ts";
import type { Result } from "../../src/domain/result.ts";
import { ok, refused } from "../../src/domain/result.ts";
import type { SessionPrincipal } from "../../src/identity/session-principal.ts";
import { mostSpecificScope } from "../../src/identity/most-specific-scope.ts";
import { ActorUnavailable } from "../../src/actors/actor-unavailable.ts";
import { paymentIn, shownOrderOf } from "../../src/store/payment-records.ts";
import { approvalView } from "../../src/views/views.ts";
import { newUuid } from "../../src/lib/ids.ts";
import { isUnavailable } from "../../src/lib/unavailable.ts";
import { withTimeout } from "../../src/lib/with-timeout.ts";
import { errorBodyOf } from "../http/errors.ts";
import { inside } from "../pipeline/resources.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { operations } from "../../src/contract/registry.ts";
import type { ContextOf, DeepReadonly, Handlers } from "./types.ts";

type ApprovalHandlers = Pick<
  Handlers,
  | "approveApproval"
  | "decideApprovals"
  | "denyApproval"
  | "getApproval"
  | "listCompletedApprovals"
  | "listPendingApprovals"
>;

/** Maximum decisions of one call in flight. They share ledger updates, so more would not be faster. */
const CONCURRENCY_MAX = 32;

/** Minimum time for a step of a decision, so that the outcome can still be read when the call's deadline is near. */
const STEP_MIN_MS = 250;

type Caller = Pick<ContextOf<typeof operations.approveApproval.access>, "audit" | "deadline" | "principal">;

/** Maximum submissions of one approval. Before each further one, the newest restrictions are read. */
const SUBMISSIONS_MAX = 6;

interface Taken extends Pick<LedgerAnswer<Payment>, "requestedMs" | "revisionRecorded"> {
  readonly profile: AgentProfile;
  readonly reply: Extract<LedgerReply<Payment>, { readonly kind: "payment" }>;
}

type BatchedDecision = InputOf<typeof operations.decideApprovals>["body"]["decisions"][number];
type BatchedResult = DeepReadonly<OutputOf<typeof operations.decideApprovals>["results"][number]>;

type ListQuery = InputOf<typeof operations.listPendingApprovals>["query"];

export function approvalHandlers(dependencies: HandlerDependencies): ApprovalHandlers {
  const { agentProofs, clock, collections, lists, ledgers, logger, payments, proofs } = dependencies;

  async function list(
    state: ApprovalDocument["state"],
    query: ListQuery,
    { principal, target: reach }: ContextOf<typeof operations.listPendingApprovals.access>,
  ) {
    const { cursor, limit, projectId, teamId } = query;
    const agentId = agentIn(query);
    const { organizationId } = principal;
    const { bindingFilter } = reach;
    const containers = { agentId, projectId, teamId };
    const scope = await mostSpecificScope(collections, organizationId, containers, bindingFilter);
    const page = await lists.page({
      collection: collections.approvals,
      list: "approvals",
      filters: { organizationId, state, ...containers, bindingFilter },
      equals: scope && { ...scope, state },
      limit,
      cursor,
    });
    if (!page.ok) return page;
    const { items, nextCursor } = page.value;
    return ok({ body: { approvals: items.map(approvalView), nextCursor } });
  }

  const find = (id: string, principal: SessionPrincipal) =>
    collections.approvals.findOne({ _id: id, organizationId: principal.organizationId });

  /**
   * Returns the approval's agent if the caller may decide on its payments. The agent's own record proves its place: the
   * approval's, changed in MongoDB, must widen no binding and evade no restriction.
   */
  async function agentOf(approval: ApprovalDocument | null, principal: SessionPrincipal) {
    const agent = approval && (await collections.agents.findOne({ _id: approval.agentId }));
    return inside(agentProofs.genuine(agent), principal, (found) => found);
  }

  /**
   * Submits a person's decision to the project's ledger, which alone decides whether it came in time. `begin` is called
   * first, once there is something to decide.
   */
  async function decide(
    id: string,
    principal: SessionPrincipal,
    decision: PersonsDecision,
    begin: () => Promise<void>,
  ): Promise<Result<Taken>> {
    const approval = await find(id, principal);
    const agent = await agentOf(approval, principal);
    if (!agent.ok) return agent;
    if (approval === null) return refused(refusal("NOT_FOUND"));
    if (approval.state === "completed") return refused(alreadyResolved(approval));
    const profile = { ...profileOf(agent.value), name: approval.agentName };
    const proof = proofs.ofDecision(profile, shownOrderOf(approval), decision);
    await begin();
    const { reply, ...answered } = await submit(profile, approval, commandOf(approval, decision, proof));
    if (reply.kind === "payment") return ok({ profile, reply, ...answered });
    await answered.revisionRecorded;
    // Nothing was decided: the project's open payments leave no room for the person's text until some are recorded.
    if (reply.kind === "too_many_open") return refused(tooManyOpen(reply, clock().getTime()));
    return refused(alreadyResolved(await find(id, principal)));
  }

  /** Submits a decision. An approval carries what the restrictions currently say of its payment. */
  async function submit(
    profile: AgentProfile,
    approval: ApprovalDocument,
    decided: CommandOf<"approve" | "deny">,
  ): Promise<LedgerAnswer<Payment>> {
    for (let submission = 0; submission < SUBMISSIONS_MAX; submission += 1) {
      // Each submission needs its own request id, since the ledger answers a known id with its earlier reply.
      const command = { ...decided, ...(await restrictionsOn(profile, decided)), requestId: newUuid() };
      const answer = await ledgers.submitUnrecorded(profile, command, { texts: approval });
      if (answer.reply.kind !== "stale_rules") return answer;
      payments.rulings.forget(profile);
    }
    throw new ActorUnavailable("the restrictions' records do not keep up with the ledger");
  }

  async function restrictionsOn(
    profile: AgentProfile,
    { kind, transactionId }: CommandOf<"approve" | "deny">,
  ) {
    if (kind === "deny") return {};
    const request = await requestOf(profile, transactionId);
    if (request === null) return {};
    const { versions, ...restricted } = await payments.rulings.restrictionsOn(profile, request);
    return { ...restricted, ...(versions === undefined ? {} : { rulesVersions: versions }) };
  }

  /**
   * Returns the payment as it was accepted; null if it is over. If the record's proof does not match, the ledger is
   * asked, since a record changed in MongoDB must not evade a restriction.
   */
  async function requestOf(profile: AgentProfile, transactionId: string): Promise<PaymentRequest | null> {
    const record = await collections.transactions.findOne({ _id: transactionId });
    const recorded = record === null ? null : paymentIn(record, null);
    if (recorded !== null && proofs.isAccepted(profile, recorded)) return recorded.request;
    const { agentId } = profile;
    const reply = await ledgers.submit(profile, { kind: "read_payment", agentId, transactionId });
    return reply.kind === "payment" ? reply.payment.request : null;
  }

  /** Executes a decision. Returns the approval, which is `executing` if the rail has not answered in time. */
  async function complete(
    { deadline }: Caller,
    { profile, reply: { changed, payment, permit }, requestedMs, revisionRecorded }: Taken,
  ): Promise<Result<ApprovalDocument>> {
    const hints = permit === undefined ? {} : { decided: { permit, requestedMs } };
    const isToExecute = changed || payment.status === "expired";
    const [executed] = await Promise.all([
      isToExecute ? payments.executeResolution(profile, payment, deadline, hints) : null,
      revisionRecorded,
    ]);
    if (!changed) return refused(alreadyResolved({ resolution: payment.approval?.resolution ?? null }));
    const resolved = executed?.approval ?? null;
    return resolved === null ? refused(refusal("NOT_FOUND")) : ok(resolved);
  }

  async function resolve(
    id: string,
    caller: Caller,
    decision: PersonsDecision,
  ): Promise<Result<ApprovalDocument>> {
    // Each of the ledger's decisions has its own audit entry, `resolvePayment`.
    const begin = () => caller.audit.begin({ before: null, after: null });
    const taken = await decide(id, caller.principal, decision, begin);
    return taken.ok ? complete(caller, taken.value) : taken;
  }

  /** Runs one step of a decision in a batch. An error becomes that decision's result. */
  async function step<T>(
    { deadline }: Caller,
    boundMs: number,
    work: () => Promise<Result<T>>,
  ): Promise<Result<T>> {
    try {
      return await withTimeout(Math.max(boundMs, STEP_MIN_MS), work());
    } catch (err) {
      if (isUnavailable(err)) {
        return refused(refusal("SERVICE_UNAVAILABLE", undefined, { retryAfterSeconds: 1 }));
      }
      logger.error({ requestId: deadline.requestId, err }, "a decision in a batch failed unexpectedly");
      return refused(refusal("INTERNAL"));
    }
  }

  /**
   * Resolves a batch. Each decision is executed as soon as it is made and may use the whole time of the call, so none
   * waits for another's rail.
   */
  async function resolveAll(
    given: readonly BatchedDecision[],
    caller: Caller,
    onTaken: (id: string, taken: Taken) => void,
  ): Promise<readonly BatchedResult[]> {
    const limit = pLimit(CONCURRENCY_MAX);
    const { principal } = caller;
    return Promise.all(
      given.map(async (each) => {
        const { id } = each;
        const taken = await limit(() =>
          step(caller, caller.deadline.spareMs, () =>
            decide(id, principal, decisionOf(each, principal), () => Promise.resolve()),
          ),
        );
        if (taken.ok) onTaken(id, taken.value);
        // The completion itself waits only for the spare time and ends slightly later.
        const { leftMs } = caller.deadline;
        const resolved = taken.ok ? await step(caller, leftMs, () => complete(caller, taken.value)) : taken;
        return resolved.ok
          ? { id, approval: approvalView(resolved.value) }
          : { id, error: errorBodyOf(resolved.refusal, caller.deadline.requestId ?? "") };
      }),
    );
  }

  return {
    getApproval: (_input, { target }) => Promise.resolve(ok({ body: { approval: approvalView(target) } })),

    listPendingApprovals: ({ query }, context) => list("pending", query, context),
    listCompletedApprovals: ({ query }, context) => list("completed", query, context),

    async approveApproval({ params }, caller) {
      const decision = decisionOf({ decision: "approve" }, caller.principal);
      const resolved = await resolve(params.id, caller, decision);
      return resolved.ok ? ok({ body: { approval: approvalView(resolved.value) } }) : resolved;
    },

    async denyApproval({ params, body }, caller) {
      const decision = decisionOf({ decision: "deny", ...body }, caller.principal);
      const resolved = await resolve(params.id, caller, decision);
      return resolved.ok ? ok({ body: { approval: approvalView(resolved.value) } }) : resolved;
    },

    async decideApprovals({ body: { decisions } }, caller) {
      const { audit } = caller;
      await audit.begin({ before: null, after: { decisions: decisions.map(withoutFeedback) } });
      const decided = new Set<string>();
      // The decisions of the ledgers, whatever becomes of the payments before the call ends.
      const results = await resolveAll(decisions, caller, (id, { reply }) => {
        if (reply.changed) decided.add(id);
      });
      audit.change(null, { decisions: decisions.filter(({ id }) => decided.has(id)).map(withoutFeedback) });
      return ok({ body: { results } });
    },
  };
}

/** Omits feedback from the audit log; the approval has it. */
const withoutFeedback = ({ decision, id }: BatchedDecision) => ({ id, decision });

function decisionOf(
  { decision, feedback = "" }: Pick<BatchedDecision, "decision" | "feedback">,
  { name, userId }: SessionPrincipal,
): PersonsDecision {
  const by = { userId, name };
  return decision === "approve"
    ? { resolution: "approved", by, feedback: null }
    : { resolution: "denied", by, feedback };
}

const alreadyResolved = (approval: Pick<ApprovalDocument, "resolution"> | null): Refusal =>
  refusal(approval?.resolution === "expired" ? "APPROVAL_EXPIRED" : "APPROVAL_ALREADY_RESOLVED");

function commandOf(
  { agentId, transactionId }: ApprovalDocument,
  { by, feedback, resolution }: PersonsDecision,
  proof: string,
): CommandOf<"approve" | "deny"> {
  const decided = { agentId, transactionId, by, proof };
  if (resolution === "approved") return { kind: "approve", ...decided };
  return { kind: "deny", ...decided, feedback: feedback ?? "" };
}
