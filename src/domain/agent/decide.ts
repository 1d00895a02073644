import { remainingOf } from "../money.ts";
import type { AgentCommand, AgentReply, PaymentDecision } from "./commands.ts";
import { decidedPayment } from "./commands.ts";
import type { AgentEvent } from "./evolve.ts";
import { evolve } from "./evolve.ts";
import type { Approval, Payment } from "./payment.ts";
import { next, settle } from "./payment.ts";
import type { BudgetPolicy, Denial } from "./policy.ts";
import { checkLimits, isAboveThreshold, patchPolicy } from "./policy.ts";
import type { AgentState, RememberedKey } from "./state.ts";
import { OPEN_PAYMENTS_MAX, projectedThrough } from "./state.ts";
import { utcDate } from "./usage.ts";

export interface Decided {
  readonly events: readonly AgentEvent[];
  readonly reply: AgentReply;
}

type Command<K extends AgentCommand["kind"]> = Extract<AgentCommand, { kind: K }>;

/**
 * What a command does, and what its sender is told. Pure: reads the state, changes nothing; `now` is the actor's
 * time in epoch milliseconds. Refusals are replies.
 */
export function decide(state: AgentState, command: AgentCommand, now: number): Decided {
  switch (command.kind) {
    case "pay":
      return decidePay(state, command, now);
    case "confirm":
      return decideConfirm(state, command);
    case "confirm_summary":
      return one({ type: "summary_confirmed", revision: command.revision }, { kind: "confirmed" });
    case "confirm_limits":
      return one({ type: "limits_mirrored", policyVersion: command.policyVersion }, { kind: "confirmed" });
    case "approve":
      return decideHeld(state, command.transactionId, now, (payment) =>
        approve(state, payment, command, now),
      );
    case "deny":
      return decideHeld(state, command.transactionId, now, (payment) => deny(payment, command, now));
    case "cancel":
      return decideHeld(state, command.transactionId, now, (payment) => cancel(payment, now));
    case "expire":
      return decideHeld(state, command.transactionId, now, (payment) => expire(payment, now));
    case "change_policy":
      return decideChangePolicy(state, command);
    case "pause":
      return decideLifecycle(state, "paused");
    case "resume":
      return decideLifecycle(state, "active");
  }
}

/** Decides and applies: the one way an actor handles a command. */
export function handle(state: AgentState, command: AgentCommand, now: number): AgentReply {
  const { events, reply } = decide(state, command, now);
  for (const event of events) evolve(state, event, now);
  return reply;
}

const none = (reply: AgentReply): Decided => ({ events: [], reply });
const one = (event: AgentEvent, reply: AgentReply): Decided => ({ events: [event], reply });

function decidePay(state: AgentState, command: Command<"pay">, now: number): Decided {
  const { request } = command;
  const known = state.keys[request.keyHash];
  if (known !== undefined) return none(replay(state, known, request.payloadHash));
  if (state.forgottenThrough > command.lookedUpThrough) {
    return none({ kind: "look_up", projectedThrough: projectedThrough(state) });
  }
  if (Object.keys(state.open).length >= OPEN_PAYMENTS_MAX) return none({ kind: "too_many_open" });

  const assessment = assess(state, request.amountCents, now);
  const denial = assessment.denial;
  const flaggedBy = assessment.flaggedByRuleTypes;
  const held = denial === null && flaggedBy.length > 0;
  const approval = held ? newApproval(state, command, flaggedBy, now) : null;
  const decision: PaymentDecision = {
    sequence: state.sequence + 1,
    createdAt: now,
    day: utcDate(now),
    denial,
    approval,
  };
  const payment = decidedPayment(request, decision);
  return one({ type: "payment_decided", payment }, { kind: "decided", decision });
}

/** The verdict on a payment, and nothing else: the same code decides a payment and answers `check_payment`. */
export interface Assessment {
  readonly denial: Denial | null;
  /** The types of the rules that want a person to look; empty: none. */
  readonly flaggedByRuleTypes: readonly string[];
}

/** Assesses an amount against lifecycle, limits and threshold, in the order of decisions.md section 5. */
export function assess(state: AgentState, amountCents: number, now: number): Assessment {
  const denial = lifecycleDenial(state) ?? checkLimits(state.policy, state.usage, amountCents, now);
  const flagged = denial === null && isAboveThreshold(state.policy, amountCents);
  return { denial, flaggedByRuleTypes: flagged ? ["agent_threshold"] : [] };
}

function lifecycleDenial(state: AgentState): Denial | null {
  if (state.lifecycle === "active") return null;
  return state.lifecycle === "paused"
    ? { code: "AGENT_PAUSED", reason: "The agent is paused.", details: null }
    : { code: "AGENT_ARCHIVED", reason: "The agent is archived.", details: null };
}

function newApproval(
  state: AgentState,
  command: Command<"pay">,
  flaggedByRuleTypes: readonly string[],
  now: number,
): Approval {
  const { budgetCents } = state.policy;
  const { spentCents } = state.usage;
  const reservedCents = state.usage.reservedCents + command.request.amountCents;
  return {
    id: command.request.approvalId,
    flaggedByRuleTypes,
    budgetContext: {
      budgetCents,
      spentCents,
      reservedCents,
      remainingCents: remainingOf(budgetCents, spentCents + reservedCents),
    },
    expiresAt: now + command.approvalWindowSeconds * 1_000,
    resolution: null,
    resolvedAt: null,
    resolvedBy: null,
    feedback: null,
  };
}

function replay(state: AgentState, known: RememberedKey, payloadHash: string): AgentReply {
  const [knownPayloadHash, transactionId] = known;
  const payment = state.open[transactionId]?.payment ?? null;
  return { kind: "replayed", transactionId, samePayload: knownPayloadHash === payloadHash, payment };
}

function decideConfirm(state: AgentState, command: Command<"confirm">): Decided {
  const open = state.open[command.transactionId];
  if (open === undefined) return none({ kind: "confirmed" });
  const { outcome } = command;
  const payment = outcome === null ? open.payment : settle(open.payment, outcome.result, outcome.at);
  const confirmed: AgentEvent = {
    type: "payment_confirmed",
    transactionId: command.transactionId,
    revision: command.revision,
  };
  const reply: AgentReply = { kind: "confirmed" };
  if (payment === open.payment) return one(confirmed, reply);
  return { events: [{ type: "payment_changed", payment }, confirmed], reply };
}

/** Runs a resolution of a payment on hold. One whose window has closed expires instead, whoever comes. */
function decideHeld(
  state: AgentState,
  transactionId: string,
  now: number,
  resolution: (payment: Payment) => Payment,
): Decided {
  const open = state.open[transactionId];
  if (open === undefined) return none({ kind: "not_open" });
  const { payment } = open;
  if (payment.phase !== "held" || payment.approval === null) {
    return none({ kind: "payment", changed: false, payment });
  }
  const late = now >= payment.approval.expiresAt;
  const resolved = late ? expire(payment, now) : resolution(payment);
  return one(
    { type: "payment_changed", payment: resolved },
    { kind: "payment", changed: !late, payment: resolved },
  );
}

function approve(state: AgentState, payment: Payment, command: Command<"approve">, now: number): Payment {
  const { amountCents } = payment.request;
  const own = { amountCents, day: payment.day, createdAt: payment.createdAt };
  const denial = lifecycleDenial(state) ?? checkLimits(state.policy, state.usage, amountCents, now, own);
  const resolved = { resolvedAt: now, resolvedBy: command.by };
  if (denial !== null) {
    return next(payment, {
      status: "failed",
      phase: "done",
      denial,
      deniedAt: now,
      approval: withApproval(payment, { ...resolved, resolution: "failed" }),
    });
  }
  return next(payment, {
    phase: "sending",
    // What is spent today counts today, also when it was put on hold yesterday.
    day: utcDate(now),
    approval: withApproval(payment, { ...resolved, resolution: "executing" }),
  });
}

function deny(payment: Payment, command: Command<"deny">, now: number): Payment {
  const denial: Denial = { code: "APPROVAL_DENIED", reason: "A person denied the payment.", details: null };
  const approval = { resolvedBy: command.by, feedback: command.feedback };
  return end(payment, "denied", denial, "denied", now, approval);
}

function cancel(payment: Payment, now: number): Payment {
  const denial: Denial = {
    code: "CANCELLED_BY_AGENT",
    reason: "The agent cancelled the payment.",
    details: null,
  };
  return end(payment, "denied", denial, "denied", now);
}

function expire(payment: Payment, now: number): Payment {
  const denial: Denial = {
    code: "APPROVAL_EXPIRED",
    reason: "No one decided within the approval window.",
    details: null,
  };
  return end(payment, "expired", denial, "expired", now);
}

function end(
  payment: Payment,
  status: "denied" | "expired",
  denial: Denial,
  resolution: "denied" | "expired",
  now: number,
  approval: Partial<Approval> = {},
): Payment {
  return next(payment, {
    status,
    phase: "done",
    denial,
    deniedAt: now,
    approval: withApproval(payment, { ...approval, resolution, resolvedAt: now }),
  });
}

const withApproval = (payment: Payment, change: Partial<Approval>): Approval | null =>
  payment.approval === null ? null : { ...payment.approval, ...change };

function decideChangePolicy(state: AgentState, command: Command<"change_policy">): Decided {
  if (state.lifecycle === "archived") return none({ kind: "archived" });
  if (command.version !== state.policyVersion) {
    return none({ kind: "version_conflict", policyVersion: state.policyVersion });
  }
  const policy: BudgetPolicy = patchPolicy(state.policy, command.patch);
  const policyVersion = state.policyVersion + 1;
  return one({ type: "policy_changed", policy }, { kind: "policy", policy, policyVersion });
}

function decideLifecycle(state: AgentState, lifecycle: "active" | "paused"): Decided {
  if (state.lifecycle === "archived") return none({ kind: "archived" });
  if (state.lifecycle === lifecycle) return none({ kind: "lifecycle", lifecycle, changed: false });
  return one({ type: "lifecycle_changed", lifecycle }, { kind: "lifecycle", lifecycle, changed: true });
}
