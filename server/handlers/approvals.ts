import type { ApprovalDocument } from "../../src/store/documents.ts";
import type { PersonsDecision } from "../../src/payments/payment-proofs.ts";
import { agentIn } from "../../src/contract/primitives.ts";
import type { InputOf } from "../../src/contract/types.ts";
import type { CommandOf } from "../../src/domain/ledger/commands.ts";
import type { AgentProfile } from "../../src/domain/agent/state.ts";
import type { Refusal } from "../../src/domain/errors.ts";
import { refusal } from "../../src/domain/errors.ts";
import type { Result } from "../../src/domain/result.ts";
import { ok, refused } from "../../src/domain/result.ts";
import { Payments } from "../../src/payments/payments.ts";
import type { SessionPrincipal } from "../../src/identity/principal.ts";
import { mostSpecificScope } from "../../src/identity/most-specific-scope.ts";
import { approvalView } from "../../src/views/views.ts";
import { newUuid } from "../../src/lib/ids.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { operations } from "../../src/contract/registry.ts";
import type { ContextOf, Handlers } from "./types.ts";

type ApprovalHandlers = Pick<
  Handlers,
  "getApproval" | "listPendingApprovals" | "listCompletedApprovals" | "approveApproval" | "denyApproval"
>;

type Caller = Pick<ContextOf<typeof operations.approveApproval.access>, "audit" | "deadline" | "principal">;

type ListQuery = InputOf<typeof operations.listPendingApprovals>["query"];

/** The approvals queue. */
export function approvalHandlers(dependencies: HandlerDependencies): ApprovalHandlers {
  const { actors, collections, lists, ledgers, proofs } = dependencies;
  const payments = new Payments(dependencies);

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

  /** Puts a person's decision to the project's ledger, which alone says whether it came in time. */
  async function resolve(
    id: string,
    { audit, deadline, principal }: Caller,
    decision: PersonsDecision,
  ): Promise<Result<ApprovalDocument>> {
    const approval = await find(id, principal);
    if (approval === null) return refused(refusal("NOT_FOUND"));
    if (approval.state === "completed") return refused(alreadyResolved(approval));
    const profile = profileOfApproval(approval);
    const proof = proofs.ofDecision(profile, orderOf(approval), decision);
    // What the ledger decides has an entry of its own, `resolvePayment`, which follows from the ledger's decision.
    await audit.begin({ before: null, after: null });
    const reply = await ledgers.submit(approval, commandOf(approval, decision, proof));
    // Nothing was decided: what the project has open leaves no room for a person's words, until some of it is recorded.
    if (reply.kind === "too_many_open") return refused(refusal("SERVICE_UNAVAILABLE"));
    if (reply.kind !== "payment") return refused(alreadyResolved(await find(id, principal)));
    const { changed, payment } = reply;
    if (changed || payment.status === "expired") await payments.executeResolution(profile, payment, deadline);
    if (!changed) return refused(alreadyResolved({ resolution: payment.approval?.resolution ?? null }));
    // A payment that has no end by then is answered as executing.
    if (payment.phase === "sending") await actors.approvalResult(id, deadline.spareMs);
    const resolved = await find(id, principal);
    return resolved === null ? refused(refusal("NOT_FOUND")) : ok(resolved);
  }

  return {
    getApproval: (_input, { target }) => Promise.resolve(ok({ body: { approval: approvalView(target) } })),

    listPendingApprovals: ({ query }, context) => list("pending", query, context),
    listCompletedApprovals: ({ query }, context) => list("completed", query, context),

    async approveApproval({ params }, caller) {
      const { principal } = caller;
      const by = { userId: principal.userId, name: principal.name };
      const resolved = await resolve(params.id, caller, { resolution: "approved", by, feedback: null });
      return resolved.ok ? ok({ body: { approval: approvalView(resolved.value) } }) : resolved;
    },

    async denyApproval({ params, body }, caller) {
      const { principal } = caller;
      const by = { userId: principal.userId, name: principal.name };
      const { feedback } = body;
      const resolved = await resolve(params.id, caller, { resolution: "denied", by, feedback });
      return resolved.ok ? ok({ body: { approval: approvalView(resolved.value) } }) : resolved;
    },
  };
}

const alreadyResolved = (approval: Pick<ApprovalDocument, "resolution"> | null): Refusal =>
  refusal(approval?.resolution === "expired" ? "APPROVAL_EXPIRED" : "APPROVAL_ALREADY_RESOLVED");

/** The payment as it was shown to the person who decides: the proof covers exactly that. */
const orderOf = ({ _id, amountCents, currency, rail, recipient, transactionId }: ApprovalDocument) => ({
  approvalId: _id,
  amountCents,
  currency,
  rail,
  recipient,
  transactionId,
});

function commandOf(
  { agentId, transactionId }: ApprovalDocument,
  { by, feedback, resolution }: PersonsDecision,
  proof: string,
): CommandOf<"approve" | "deny"> {
  const decided = { agentId, transactionId, by, proof, requestId: newUuid() };
  if (resolution === "approved") return { kind: "approve", ...decided };
  return { kind: "deny", ...decided, feedback: feedback ?? "" };
}

const profileOfApproval = (approval: ApprovalDocument): AgentProfile => ({
  organizationId: approval.organizationId,
  projectId: approval.projectId,
  teamId: approval.teamId,
  agentId: approval.agentId,
  name: approval.agentName,
});
