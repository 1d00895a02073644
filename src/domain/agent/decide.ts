import { remainingOf } from "../money.ts";
import type { AgentCommand, AgentReply, PaymentDecision } from "./commands.ts";
import { decidedPayment } from "./commands.ts";
import { type Command, type Decided, none, one } from "./decided.ts";
import type { AgentEvent } from "./evolve.ts";
import { evolve } from "./evolve.ts";
import { approve, cancel, decideHeld, deny, expire, lifecycleDenial } from "./held.ts";
import { decideAuthenticate, decideMintKey, decideProveNonDelivery, decideRevokeKey } from "./keys.ts";
import { decideArchive, decideLifecycle } from "./lifecycle.ts";
import type { Approval } from "./payment.ts";
import { settle } from "./payment.ts";
import type { BudgetPolicy, Denial } from "./policy.ts";
import { checkLimits, isAboveThreshold, patchPolicy } from "./policy.ts";
import type { AgentState, RememberedKey } from "./state.ts";
import { OPEN_PAYMENTS_MAX, projectedThrough } from "./state.ts";
import { utcDate } from "./usage.ts";

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
  return reply;
}

function decidePay(state: AgentState, command: Command<"pay">, now: number): Decided {
  const { request } = command;
  const known = state.keys[request.keyHash];
  if (known !== undefined) return none(replay(state, known, request.payloadHash));
  // Its key is dead. What comes with it all the same was on its way, and is no payment.
  if (state.lifecycle === "archived") return none({ kind: "archived" });
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

function decideChangePolicy(state: AgentState, command: Command<"change_policy">): Decided {
  if (state.lifecycle === "archived") return none({ kind: "archived" });
  if (command.version !== state.policyVersion) {
    return none({ kind: "version_conflict", policyVersion: state.policyVersion });
  }
  const policy: BudgetPolicy = patchPolicy(state.policy, command.patch);
  const policyVersion = state.policyVersion + 1;
  return one({ type: "policy_changed", policy }, { kind: "policy", policy, policyVersion });
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
