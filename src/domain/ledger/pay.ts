import { AGENT_ARCHIVED } from "./resolutions.ts";
import { AGENT_PAUSED, type Approval, type Payment, type Rail, type RulesVersions } from "./payment.ts";
import type { Denial } from "./policy.ts";
import { checkLimits, isAboveThreshold } from "./policy.ts";
import type { WindowBounds } from "./calendar.ts";
import { countWithin, dayCounted, HOUR_MS, instantCounted } from "./usage.ts";
import { remainingOf, usedCents } from "../money.ts";
import { allChecks, type PaymentRules } from "../rules/checks.ts";
import { flaggedTypes } from "../rules/flags.ts";
import { type Forbidden, restrictionDenial } from "../rules/restrictions.ts";
import { windowsMsOf } from "../rules/rules.ts";
import { paymentRefused } from "./capacity.ts";
import { checkCaps } from "./caps.ts";
import type { CommandOf, LedgerReply, PaymentDecision } from "./commands.ts";
import type { Draft } from "./draft.ts";
import { isClosedKey, newestSimilar } from "./closed-keys.ts";
import { possibleDuplicate } from "./duplicates.ts";
import { limitsThen, type StandingLimit, standingLimits, withAdded } from "./measures.ts";
import type { Account, Ledger } from "./state.ts";
import { warningsOf, withWarnings } from "./thresholds.ts";
import { boundsNow } from "./windows.ts";

/**
 * Judges a payment at all three levels at once and holds its amount at all of them. Checks, in this order: whether the
 * caller's copy of the agent is current, whether the idempotency key was used before, whether this key may pay, whether
 * the records have to be checked first, whether the newest rules and restrictions were used, and whether there is
 * capacity; then restrictions, policy, caps and rules.
 */
export function pay(draft: Draft, command: CommandOf<"pay">): LedgerReply {
  const { ledger, now } = draft;
  const { agentId, forbidden, keyId, recordsCheckedThrough, request, rules } = command;
  const account = draft.account(agentId);
  if (!isCacheCurrent(account, command)) return { kind: "stale_agent" };
  if (account === undefined) return { kind: "no_account" };
  const known = replayOf(ledger, account, request);
  if (known !== null) return known;
  if (account.status === "closed") return { kind: "no_account" };
  if (account.keyId !== keyId) return { kind: "inactive_key" };
  // The records have to be checked as far as keys were evicted, which includes the check for similar payments.
  if (account.evictedThrough > recordsCheckedThrough)
    return { kind: "records_check_required", closed: account.closed };
  if (!judgedByNewestRules(draft, account, request.rulesVersions)) return { kind: "stale_rules" };
  const full = paymentRefused(ledger, account, now);
  if (full !== null) return full;

  const assessment = assess(ledger, account, { ...request, rules, forbidden }, now, draft.bounds);
  const standing = draft.isSilent ? null : standingLimits(ledger, account, draft.bounds, now);
  const decided = decisionOf(draft, account, command, assessment, standing);
  const decision = withThresholds(draft, account, request, decided, standing);
  const duplicate = draft.isSilent ? null : possibleDuplicate(ledger, account, request.fingerprint, now);
  const payment = decidedPayment(request, decision);
  draft.add(
    account,
    payment,
    windowsMsOf(rules === undefined ? [] : allChecks(rules)).filter((windowMs) => windowMs > HOUR_MS),
  );
  const permit = payment.phase === "sending" ? account.revision : null;
  return { kind: "decided", decision, permit, ...(duplicate === null ? {} : { duplicate }) };
}

/** Whether the caller has just read the agent's record, and so checked key and status, or its copy is current. */
function isCacheCurrent(
  account: Account | undefined,
  { keyId, cachedAgentRevision }: CommandOf<"pay">,
): boolean {
  if (cachedAgentRevision === undefined) return true;
  if (account === undefined || account.status !== "active" || account.keyId !== keyId) return false;
  return account.followedRevision <= cachedAgentRevision;
}

function replayOf(
  { keys }: Ledger,
  { agentId, open }: Account,
  { keyHash, payloadHash }: CommandOf<"pay">["request"],
): LedgerReply | null {
  if (isClosedKey(keys, agentId, keyHash)) return { kind: "recorded" };
  for (const { payment } of open.values()) {
    const { request } = payment;
    if (request.keyHash !== keyHash) continue;
    const samePayload = request.payloadHash === payloadHash;
    return { kind: "replayed", transactionId: request.transactionId, samePayload, payment };
  }
  return null;
}

/**
 * Whether a payment was judged by the newest rules. Newer ones than the ledger knows raise the ledger's version, so
 * that older ones judge no payment any more.
 */
export function judgedByNewestRules(
  draft: Draft,
  account: Account,
  versions: RulesVersions | undefined,
): boolean {
  const { teamId } = account;
  const [project, team] = [draft.level(null), draft.level(teamId)];
  const judged = { project: versions?.project ?? 0, team: versions?.team ?? 0, agent: versions?.agent ?? 0 };
  if (judged.project < project.rulesVersion || judged.team < team.rulesVersion) return false;
  if (judged.agent < account.rulesVersion) return false;
  if (judged.project > project.rulesVersion) draft.setLevel(null, { rulesVersion: judged.project });
  if (judged.team > team.rulesVersion) draft.setLevel(teamId, { rulesVersion: judged.team });
  account.rulesVersion = judged.agent;
  return true;
}

export interface Assessment {
  readonly denial: Denial | null;
  /** Types of the rules that require approval; empty if none. */
  readonly flaggedByRuleTypes: readonly string[];
  /** Types of the shadow rules that would require approval. */
  readonly wouldHaveFlagged: readonly string[];
}

/** Fields of a payment that its fingerprint is derived from, and its rules. */
export interface AssessedPayment {
  readonly rail: Rail;
  readonly recipient: string;
  readonly amountMc: number;
  readonly fingerprint: string;
  readonly rules?: PaymentRules | undefined;
  readonly forbidden?: Forbidden | undefined;
}

/**
 * Assesses a payment without any effect; the same code decides payments and answers dry runs. Checks status,
 * restrictions, limits, caps, threshold and rules, in this order; a denied payment is not flagged.
 */
export function assess(
  ledger: Ledger,
  account: Account,
  payment: AssessedPayment,
  now: number,
  bounds: WindowBounds = boundsNow(ledger, now),
): Assessment {
  const { amountMc, forbidden, rules } = payment;
  const denial =
    statusDenial(account) ??
    (forbidden === undefined ? null : restrictionDenial(forbidden)) ??
    checkLimits(account.policy, account.usage, amountMc, now, null, bounds) ??
    checkCaps(ledger, account, amountMc, bounds);
  if (denial !== null) return { denial, flaggedByRuleTypes: [], wouldHaveFlagged: [] };
  const byThreshold = isAboveThreshold(account.policy, amountMc) ? ["agent_threshold"] : [];
  const history = {
    countWithin: (windowMs: number) => countWithin(account.usage, windowMs, now),
    newestSimilarAt: () =>
      latest(newestSimilarAt(ledger, account, payment.fingerprint), rules?.similarAt ?? null),
  };
  const byRules = rules === undefined ? [] : flaggedTypes(rules, history, now);
  const { shadow: checks = [], zones } = rules ?? {};
  const inShadow = zones === undefined ? { checks } : { checks, zones };
  const wouldHaveFlagged = checks.length === 0 ? [] : flaggedTypes(inShadow, history, now);
  return { denial: null, flaggedByRuleTypes: [...byThreshold, ...byRules], wouldHaveFlagged };
}

const latest = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? (one ?? other) : Math.max(one, other);

/** Returns when the newest payment with this fingerprint was made, excluding denied ones. */
function newestSimilarAt({ keys }: Ledger, account: Account, fingerprint: string): number | null {
  const newest = newestSimilar(keys, account, fingerprint, (status) => status !== "denied");
  return newest?.createdAt ?? null;
}

/** Returns the denial for an account's status; null if it may pay. */
export function statusDenial({ status }: Account): Denial | null {
  if (status === "active") return null;
  return status === "paused" ? AGENT_PAUSED : AGENT_ARCHIVED;
}

function decisionOf(
  { bounds, now }: Draft,
  account: Account,
  command: CommandOf<"pay">,
  { denial, flaggedByRuleTypes, wouldHaveFlagged }: Assessment,
  standing: readonly StandingLimit[] | null,
): PaymentDecision {
  const isHeld = denial === null && flaggedByRuleTypes.length > 0;
  return {
    sequence: account.sequence + 1,
    createdAt: now,
    countedAt: instantCounted(account.usage, now),
    day: dayCounted(account.usage, now),
    // The clock has gone back.
    ...(bounds.at > now ? { windowAt: bounds.at } : {}),
    ...(wouldHaveFlagged.length > 0 ? { wouldHaveFlagged } : {}),
    denial,
    approval: isHeld ? newApproval(account, command, flaggedByRuleTypes, now) : null,
    policyVersion: account.policyVersion,
    limits: standing === null ? [] : limitsThen(account, standing, now),
  };
}

/** Adds warnings for the thresholds that the payment's hold crosses. */
function withThresholds(
  { bounds, now }: Draft,
  account: Account,
  request: CommandOf<"pay">["request"],
  decision: PaymentDecision,
  standing: readonly StandingLimit[] | null,
): PaymentDecision {
  if (decision.denial !== null || standing === null) return decision;
  const change = { before: null, after: decidedPayment(request, decision), bounds, now };
  return withWarnings(decision, warningsOf(withAdded(standing, account, change), now));
}

function newApproval(
  { policy: { budgetCents }, usage }: Account,
  { approvalWindowSeconds, request }: CommandOf<"pay">,
  flaggedByRuleTypes: readonly string[],
  now: number,
): Approval {
  const reservedMc = usage.reservedMc + request.amountMc;
  const [spentCents, reservedCents] = [usedCents(usage.spentMc), usedCents(reservedMc)];
  const remainingCents = remainingOf(budgetCents, usage.spentMc + reservedMc);
  return {
    id: request.approvalId,
    flaggedByRuleTypes,
    budgetContext: { budgetCents, spentCents, reservedCents, remainingCents },
    expiresAt: now + approvalWindowSeconds * 1_000,
    resolution: null,
    resolvedAt: null,
    resolvedBy: null,
    feedback: null,
  };
}

/** Composes the ledger's payment from the submitted request and the returned decision. */
export function decidedPayment(request: Payment["request"], decision: PaymentDecision): Payment {
  const {
    approval,
    countedAt,
    createdAt,
    day,
    denial,
    limits,
    policyVersion,
    sequence,
    warnings,
    windowAt,
    wouldHaveFlagged,
  } = decision;
  const isDenied = denial !== null;
  const isHeld = approval !== null;
  return {
    request,
    sequence,
    createdAt,
    countedAt,
    day,
    ...(windowAt === undefined ? {} : { windowAt }),
    ...(warnings === undefined ? {} : { warnings }),
    ...(wouldHaveFlagged === undefined ? {} : { wouldHaveFlagged }),
    limits,
    status: isDenied ? "denied" : "pending",
    phase: isDenied ? "done" : isHeld ? "held" : "sending",
    denial,
    deniedAt: isDenied ? createdAt : null,
    approval,
    onChainTxHash: null,
    chainCaip2: null,
    books: null,
    policyVersion,
    revision: 1,
  };
}
