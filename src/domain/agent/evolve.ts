import { lifecycleEventId, type LifecycleEventType } from "../events.ts";
import { adoptedCaps, changeCaps, demand, exempt, reported } from "./caps.ts";
import { adoptedAccess, type AgentAccess } from "./access.ts";
import { rememberedKey } from "./likeness.ts";
import type { Payment } from "./payment.ts";
import { leaveUntil, wakeOpen, withdrawOpen } from "./leave.ts";
import { isWithheld, moneyOf } from "./payment.ts";
import type { BudgetPolicy } from "./policy.ts";
import type { AgentLifecycle, AgentState } from "./state.ts";
import { REMEMBERED_KEYS_MAX } from "./state.ts";
import { countPayment, rollDay, uncountPayment } from "./usage.ts";

/** What a decision does to the state. */
export type AgentEvent =
  | { readonly type: "payment_decided"; readonly payment: Payment }
  | { readonly type: "payment_changed"; readonly payment: Payment }
  | { readonly type: "payment_confirmed"; readonly transactionId: string; readonly revision: number }
  | { readonly type: "report_heard"; readonly revision: number }
  /** No cap is over the agent: it need not ask. */
  | { readonly type: "caps_exempted"; readonly epoch: number }
  /** A cap is over the agent: it asks from now on. */
  | { readonly type: "caps_demanded"; readonly epoch: number }
  /** Its budget was set by its team's. */
  | { readonly type: "budget_heeded"; readonly epoch: number }
  | { readonly type: "summary_confirmed"; readonly revision: number }
  | { readonly type: "limits_mirrored"; readonly policyVersion: number }
  | { readonly type: "policy_changed"; readonly policy: BudgetPolicy }
  | { readonly type: "lifecycle_changed"; readonly lifecycle: AgentLifecycle }
  /** A process may send a payment. */
  | { readonly type: "leave_given" }
  /** What is decided and not sent is not to be sent any more. */
  | { readonly type: "payments_withdrawn" }
  | { readonly type: "renamed"; readonly name: string }
  /** A key was used for the first time. */
  | { readonly type: "authenticated"; readonly keyId: string }
  /** A person minted a key, or (null) revoked it. */
  | { readonly type: "key_changed"; readonly keyId: string | null }
  | { readonly type: "non_delivery_proven" }
  | { readonly type: "bundled_key_erased" }
  | { readonly type: "wallet_detached" };

/**
 * Applies one event, in place: the state holds a table of 2,000 keys, and its actor is its only owner. Afterwards
 * `reservedCents` and `spentCents` are what the payments' statuses say, by construction: they change only by the
 * difference between a payment before and after.
 */
export function evolve(state: AgentState, event: AgentEvent, now: number): void {
  switch (event.type) {
    case "payment_decided":
      return addPayment(state, event.payment, now);
    case "payment_changed":
      return changePayment(state, event.payment, now);
    case "payment_confirmed":
      return confirmPayment(state, event.transactionId, event.revision);
    case "report_heard":
      return reported(state, event.revision);
    case "caps_exempted":
      return exempt(state, event.epoch, now);
    case "caps_demanded":
      return demand(state, event.epoch);
    case "budget_heeded":
      (state.caps ??= adoptedCaps()).budgetEpoch = event.epoch;
      return;
    case "summary_confirmed":
      return confirmSummary(state, event.revision);
    case "limits_mirrored":
      state.mirroredPolicyVersion = Math.max(state.mirroredPolicyVersion ?? 0, event.policyVersion);
      return;
    case "policy_changed":
      state.policy = event.policy;
      state.policyVersion += 1;
      return touch(state, now);
    case "lifecycle_changed":
      return changeLifecycle(state, event.lifecycle, now);
    case "leave_given":
      state.leaveUntil = leaveUntil(now);
      return;
    case "payments_withdrawn":
      return withdrawOpen(state, now);
    case "renamed":
      state.profile = { ...state.profile, name: event.name };
      return touch(state, now);
    case "authenticated":
      accessOf(state, event.keyId).authenticatedAt ??= now;
      return touch(state, now);
    case "key_changed": {
      const access = accessOf(state, null);
      access.activeKeyId = event.keyId;
      access.touchedByPerson = true;
      return touch(state, now);
    }
    case "non_delivery_proven":
      return changeBundled(state, { provenAt: now });
    case "bundled_key_erased":
      return changeBundled(state, { erased: true });
    case "wallet_detached":
      state.walletDetached = true;
      return touch(state, now);
  }
}

/** An actor from before actors knew of keys takes over what it is told. */
const accessOf = (state: AgentState, recordedKeyId: string | null): AgentAccess =>
  (state.access ??= adoptedAccess(recordedKeyId));

function changeBundled(state: AgentState, change: Partial<NonNullable<AgentAccess["bundled"]>>): void {
  const { access } = state;
  if (access?.bundled) access.bundled = { ...access.bundled, ...change };
}

const LIFECYCLE_EVENTS = {
  active: "agent.resumed",
  paused: "agent.paused",
  archived: "agent.archived",
} as const satisfies Record<AgentLifecycle, LifecycleEventType>;

function changeLifecycle(state: AgentState, lifecycle: AgentLifecycle, now: number): void {
  if (state.lifecycle === "paused" && lifecycle === "active") wakeOpen(state, now);
  state.lifecycle = lifecycle;
  if (lifecycle === "paused") state.pausedAt = now;
  else delete state.pausedAt;
  if (lifecycle === "archived") {
    state.archivedAt = now;
    accessOf(state, null).activeKeyId = null;
  }
  touch(state, now);
  const { profile, revision } = state;
  const id = lifecycleEventId(profile.agentId, revision);
  const told = { id, type: LIFECYCLE_EVENTS[lifecycle], at: now, revision };
  state.outbox = [...(state.outbox ?? []), told];
}

/** The record of this revision is written, and what it told is in the journal. */
function confirmSummary(state: AgentState, revision: number): void {
  state.confirmedRevision = Math.max(state.confirmedRevision, Math.min(revision, state.revision));
  if (state.outbox === undefined) return;
  state.outbox = state.outbox.filter((event) => event.revision > state.confirmedRevision);
}

function addPayment(state: AgentState, payment: Payment, now: number): void {
  state.sequence = payment.sequence;
  state.open[payment.request.transactionId] = { payment, changedAt: now, confirmedRevision: 0 };
  remember(state, payment);
  if (payment.denial !== null) return;
  if (payment.phase === "sending") state.leaveUntil = leaveUntil(now);
  countPayment(state.usage, now);
  move(state, payment, "none", moneyOf(payment));
  changeCaps(state, false, now);
  touch(state, now);
}

function changePayment(state: AgentState, payment: Payment, now: number): void {
  const open = state.open[payment.request.transactionId];
  if (open === undefined) throw new Error("a payment changed that is not open");
  const before = open.payment;
  if (payment.revision <= before.revision) throw new Error("a payment changed without a new revision");
  rollDay(state.usage, now);
  move(state, before, moneyOf(before), "none");
  move(state, payment, "none", moneyOf(payment));
  // What a cap denied has not passed policy, after all.
  if (isRefusedByCap(payment)) uncountPayment(state.usage, payment.createdAt);
  open.payment = payment;
  open.changedAt = now;
  changeCaps(state, moneyOf(before) !== "none" && moneyOf(payment) === "none", now);
  // Who looks for duplicates passes over what was denied.
  if (payment.status === "denied") state.keys[payment.request.keyHash] = rememberedKey(payment, 0);
  if (moneyOf(before) !== moneyOf(payment)) touch(state, now);
}

const isRefusedByCap = (payment: Payment): boolean =>
  payment.asked === true && payment.status === "denied" && payment.approval === null && !isWithheld(payment);

function confirmPayment(state: AgentState, transactionId: string, revision: number): void {
  const open = state.open[transactionId];
  if (open === undefined) return;
  open.confirmedRevision = Math.max(open.confirmedRevision, Math.min(revision, open.payment.revision));
  const closes = open.payment.phase === "done" && open.confirmedRevision === open.payment.revision;
  if (closes) closePayment(state, open.payment);
}

function closePayment(state: AgentState, payment: Payment): void {
  const { keyHash, transactionId } = payment.request;
  delete state.open[transactionId];
  state.closed += 1;
  state.keys[keyHash] = rememberedKey(payment, state.closed);
}

type Money = ReturnType<typeof moneyOf>;

/** Moves a payment's amount between the pools of every level; today's spend follows only on the day it counts. */
function move(state: AgentState, payment: Payment, from: Money, to: Money): void {
  const amount = payment.request.amountCents;
  const usage = state.usage;
  if (from === "reserved") usage.reservedCents -= amount;
  if (from === "spent") usage.spentCents -= amount;
  if (to === "reserved") usage.reservedCents += amount;
  if (to === "spent") usage.spentCents += amount;
  if (payment.day !== usage.day.date) return;
  if (from !== "none") usage.day.amountCents -= amount;
  if (to !== "none") usage.day.amountCents += amount;
}

/** Remembers the key of a new payment. The oldest of a closed one is forgotten for it, never that of an open one. */
function remember(state: AgentState, payment: Payment): void {
  const { keyHash } = payment.request;
  state.keys[keyHash] = rememberedKey(payment, 0);
  state.keyOrder.push(keyHash);
  // Ends: OPEN_PAYMENTS_MAX is less than REMEMBERED_KEYS_MAX.
  while (state.keyOrder.length > REMEMBERED_KEYS_MAX) {
    const oldest = state.keyOrder.shift();
    const key = oldest === undefined ? undefined : state.keys[oldest];
    if (oldest === undefined || key === undefined) continue;
    const closedAs = key[2];
    if (closedAs === 0) {
      state.keyOrder.push(oldest);
      continue;
    }
    state.forgottenThrough = Math.max(state.forgottenThrough, closedAs);
    delete state.keys[oldest];
  }
}

function touch(state: AgentState, now: number): void {
  state.revision += 1;
  state.updatedAt = now;
}
