import { remainingOf } from "../money.ts";
import type { AgentCommand, AgentReply, CapsHeard, PaymentDecision } from "./commands.ts";
import type { PaymentRules } from "../rules/checks.ts";
import { flaggedTypes, type PaymentHistory } from "../rules/flags.ts";
import { decidedPayment } from "./commands.ts";
import { type Command, type Decided, none, one } from "./decided.ts";
import type { AgentEvent } from "./evolve.ts";
import { evolve } from "./evolve.ts";
import {
  approve,
  cancel,
  decideHeld,
  deny,
  endByArchive,
  expire,
  isOnHold,
  lifecycleDenial,
} from "./held.ts";
import {
  decideAuthenticate,
  decideMintKey,
  decideProveNonDelivery,
  decideRevokeKey,
  isActiveKey,
} from "./keys.ts";
import { decideAskToSend } from "./leave.ts";
import { decideArchive, decideLifecycle } from "./lifecycle.ts";
import { asksForCaps, budgetReport } from "./caps.ts";
import { type Likeness, lookUpNeededThrough, newestLikeAt } from "./likeness.ts";
import type { Approval } from "./payment.ts";
import { answered, asSent, settle } from "./payment.ts";
import type { BudgetPolicy, Denial } from "./policy.ts";
import { checkLimits, isAboveThreshold, patchPolicy } from "./policy.ts";
import type { AgentState, RememberedKey } from "./state.ts";
import { OPEN_PAYMENTS_MAX, projectedThrough } from "./state.ts";
import { countWithin, dayCounted } from "./usage.ts";

/**
 * What a command does, and what its sender is told. Pure: reads the state, changes nothing; `now` is the actor's
 * time in epoch milliseconds. Refusals are replies.
 */
export function decide(state: AgentState, command: AgentCommand, now: number): Decided {
  switch (command.kind) {
    case "pay":
      return decidePay(state, command, now);
    case "confirm":
      return decideConfirm(state, command, now);
    case "confirm_report":
      return one({ type: "report_heard", revision: command.revision }, { kind: "confirmed" });
    case "heed_budget":
      return decideHeedBudget(state, command);
    case "read_report":
      return none({ kind: "report", report: budgetReport(state) });
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
    case "ask_to_send":
      return decideAskToSend(state, command);
    case "pause":
      return decideLifecycle(state, "paused", now);
    case "resume":
      return decideLifecycle(state, "active", now);
    case "read_payment":
      return decideRead(state, command);
    case "rename":
      return decideRename(state, command);
    case "authenticate":
      return decideAuthenticate(state, command);
    case "mint_key":
      return decideMintKey(state, command);
    case "revoke_key":
      return decideRevokeKey(state, command);
    case "prove_non_delivery":
      return decideProveNonDelivery(state, command, now);
    case "confirm_erased":
      return one({ type: "bundled_key_erased" }, { kind: "confirmed" });
    case "archive":
      return decideArchive(state, command.by, now);
    case "confirm_detached":
      return decideDetached(state);
  }
}

/** Decides and applies: the one way an actor handles a command. */
export function handle(state: AgentState, command: AgentCommand, now: number): AgentReply {
  const { events, reply } = decide(state, command, now);
  for (const event of events) evolve(state, event, now);
  return reply.kind === "report" ? { kind: "report", report: budgetReport(state) } : reply;
}

function decidePay(state: AgentState, command: Command<"pay">, now: number): Decided {
  const { request } = command;
  const known = state.keys[request.keyHash];
  if (known !== undefined) return none(replay(state, known, request.payloadHash));
  // Its key is dead. What comes with it all the same was on its way, and is no payment.
  if (state.lifecycle === "archived") return none({ kind: "archived" });
  if (!isActiveKey(state, command.keyId)) return none({ kind: "dead_key" });
  if (lookUpNeededThrough(state, request, command.rules) > command.lookedUpThrough) {
    return none({ kind: "look_up", projectedThrough: projectedThrough(state) });
  }
  if (Object.keys(state.open).length >= OPEN_PAYMENTS_MAX) return none({ kind: "too_many_open" });

  const assessment = assess(state, { ...request, rules: command.rules }, now);
  const denial = assessment.denial;
  const flaggedBy = assessment.flaggedByRuleTypes;
  const held = denial === null && flaggedBy.length > 0;
  const approval = held ? newApproval(state, command, flaggedBy, now) : null;
  const decision: PaymentDecision = {
    sequence: state.sequence + 1,
    createdAt: now,
    day: dayCounted(state.usage, now),
    denial,
    approval,
    policyVersion: state.policyVersion,
    ...(denial === null && asksForCaps(state) ? { ask: "reserve" as const } : {}),
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

/** What a payment is assessed by. */
export interface AssessedPayment extends Likeness {
  readonly rules?: PaymentRules | undefined;
}

/**
 * Assesses a payment against lifecycle, limits, threshold and rules, in this order. What is denied
 * is flagged by nothing.
 */
export function assess(state: AgentState, payment: AssessedPayment, now: number): Assessment {
  const { amountCents, rules } = payment;
  const denial = lifecycleDenial(state) ?? checkLimits(state.policy, state.usage, amountCents, now);
  if (denial !== null) return { denial, flaggedByRuleTypes: [] };
  const byThreshold = isAboveThreshold(state.policy, amountCents) ? ["agent_threshold"] : [];
  const byRules = rules === undefined ? [] : flaggedTypes(rules, historyFor(state, payment, now), now);
  return { denial, flaggedByRuleTypes: [...byThreshold, ...byRules] };
}

const historyFor = (state: AgentState, payment: AssessedPayment, now: number): PaymentHistory => ({
  countWithin: (windowMs) => countWithin(state.usage, windowMs, now),
  newestLikeAt: () => newestLikeAt(state, payment, payment.rules?.likeAt ?? null),
});

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

function decideConfirm(state: AgentState, command: Command<"confirm">, now: number): Decided {
  const { caps, outcome } = command;
  const heard = caps === undefined ? [] : eventsOf(caps);
  const reply: AgentReply = { kind: "confirmed" };
  const open = state.open[command.transactionId];
  if (open === undefined) return { events: heard, reply };
  const told = caps === undefined ? open.payment : answered(open.payment, caps.kind, caps.answer);
  // An archived agent has nothing on hold: what the caps have taken only now ends like the rest.
  const isTooLate = state.lifecycle === "archived" && isOnHold(told);
  const judged = isTooLate ? endByArchive(told, now) : told;
  const payment = outcome === null ? judged : settle(asSent(judged), outcome.result, outcome.at);
  const confirmed: AgentEvent = {
    type: "payment_confirmed",
    transactionId: command.transactionId,
    revision: command.revision,
  };
  const changed: AgentEvent[] = payment === open.payment ? [] : [{ type: "payment_changed", payment }];
  const events = [...changed, confirmed, ...heard];
  return { events, reply: isTooLate ? { kind: "payment", changed: true, payment } : reply };
}

function decideChangePolicy(state: AgentState, command: Command<"change_policy">): Decided {
  if (state.lifecycle === "archived") return none({ kind: "archived" });
  if (command.version !== state.policyVersion) {
    return none({ kind: "version_conflict", policyVersion: state.policyVersion });
  }
  const policy: BudgetPolicy = patchPolicy(state.policy, command.patch);
  const policyVersion = state.policyVersion + 1;
  return one(
    { type: "policy_changed", policy },
    { kind: "policy", before: state.policy, policy, policyVersion },
  );
}

function eventsOf({ exemptEpoch, reportRevision }: CapsHeard): AgentEvent[] {
  const heard: AgentEvent = { type: "report_heard", revision: reportRevision };
  return exemptEpoch === null ? [heard] : [heard, { type: "caps_exempted", epoch: exemptEpoch }];
}

/** Old news change nothing; what is told twice, neither. */
function decideHeedBudget(state: AgentState, command: Command<"heed_budget">): Decided {
  const events: AgentEvent[] = [];
  const { budgetCents, epoch, budgetEpoch = epoch } = command;
  if (command.asks) events.push({ type: "caps_demanded", epoch });
  if (budgetCents !== null && budgetEpoch > (state.caps?.budgetEpoch ?? 0)) {
    const changes = state.lifecycle !== "archived" && budgetCents !== state.policy.budgetCents;
    if (changes) events.push({ type: "policy_changed", policy: { ...state.policy, budgetCents } });
    events.push({ type: "budget_heeded", epoch: budgetEpoch });
  }
  // Told as it is after the events, by whoever applies them.
  return { events, reply: { kind: "report", report: null } };
}

function decideRead(state: AgentState, { transactionId }: Command<"read_payment">): Decided {
  const open = state.open[transactionId];
  return none(
    open === undefined ? { kind: "not_open" } : { kind: "payment", changed: false, payment: open.payment },
  );
}

function decideRename(state: AgentState, { name }: Command<"rename">): Decided {
  if (state.lifecycle === "archived") return none({ kind: "archived" });
  const { profile, revision } = state;
  if (name === profile.name) return none({ kind: "renamed", revision });
  return one({ type: "renamed", name }, { kind: "renamed", revision: revision + 1 });
}

function decideDetached(state: AgentState): Decided {
  const isNews = state.lifecycle === "archived" && state.walletDetached !== true;
  const reply: AgentReply = { kind: "confirmed" };
  return isNews ? one({ type: "wallet_detached" }, reply) : none(reply);
}
