import { capturedInFull } from "../../../src/domain/ledger/books.ts";
import type { AgentCommand } from "../../../src/domain/agent/commands.ts";
import type { StoredPayment } from "../../../src/domain/ledger/payment.ts";
import type { CommandOf, LedgerCommand } from "../../../src/domain/ledger/commands.ts";
import { KEY } from "./account.ts";
import { profile } from "./actor.ts";

type AgentExamples = { readonly [K in AgentCommand["kind"]]: Extract<AgentCommand, { readonly kind: K }> };
type LedgerExamples = { readonly [K in LedgerCommand["kind"]]: CommandOf<K> };

const AT = Date.UTC(2026, 4, 13, 12);
const by = { userId: "user-1", name: "Ada" };
const reason = "The payment is above what is left.";
const requestId = "request-1";

/** Every command of an agent's actor, with every field that it may have. */
export const agentExamples: AgentExamples = {
  rename: { kind: "rename", name: "Another" },
  authenticate: { kind: "authenticate", keyId: KEY },
  mint_key: { kind: "mint_key", keyId: "akey_2" },
  revoke_key: { kind: "revoke_key" },
  prove_non_delivery: { kind: "prove_non_delivery", lineageId: "lineage-1" },
  archive: { kind: "archive", by: { type: "organization_key", lineageId: "lineage-1", balance: "zero" } },
  confirm_detached: { kind: "confirm_detached" },
  confirm_record: { kind: "confirm_record", revision: 1 },
  confirm_followed: { kind: "confirm_followed", revision: 1 },
  follow_status: { kind: "follow_status", status: "paused", revision: 2, revokedKeyId: null },
};

/** A closed payment with all that its record may have. */
const closedExample = (transactionId: string): StoredPayment => ({
  request: {
    transactionId,
    approvalId: "apr_example",
    keyHash: "key-closed",
    payloadHash: "payload-example",
    rail: "card",
    amountMc: 700_000,
    currency: "USD",
    recipient: "shop",
    merchantCategory: null,
    purpose: "an example",
    fingerprint: "fingerprint-example",
    proof: "proof",
  },
  sequence: 1,
  createdAt: AT,
  countedAt: AT,
  day: "2026-05-13",
  status: "approved",
  phase: "done",
  denial: null,
  deniedAt: null,
  approval: {
    id: "apr_example",
    flaggedByRuleTypes: ["agent_threshold"],
    budgetContext: { budgetCents: 50_000, spentCents: 0, reservedCents: 700, remainingCents: 49_300 },
    expiresAt: AT,
    resolution: "approved",
    resolvedAt: AT,
    resolvedBy: by,
    feedback: null,
    proof: "proof",
    policyVersion: 1,
  },
  onChainTxHash: null,
  chainCaip2: null,
  books: {
    authorizations: [{ ...capturedInFull(700_000), authorization: "iauth_1" }],
    clearances: [{ authorization: "iauth_1", position: 1, mc: 1_000, at: AT }],
    answers: [
      { authorization: "iauth_1", position: 0, refusal: null, mc: 700_000, merchant: "SHOP", at: AT },
    ],
    bookings: [
      {
        at: AT,
        day: "2026-05-13",
        heldMc: 0,
        capturedMc: 700_000,
        creditedMc: 0,
        recalledMc: 0,
        disputedMc: 0,
      },
    ],
    breaches: [{ level: "agent", limit: "budget", overMc: 1 }],
  },
  policyVersion: 1,
  revision: 5,
});

/** Every command of a project's ledger, with every field that it may have, on this payment of this agent. */
export const ledgerExamples = (transactionId: string, { agentId, teamId } = profile): LedgerExamples => ({
  open_account: {
    kind: "open_account",
    agentId: "agent-example",
    teamId,
    name: "An agent",
    policy: {
      budgetCents: 50_000,
      autoApprovalThresholdCents: 1,
      perTransactionLimitCents: null,
      dailySpendLimitCents: 40_000,
      hourlyVelocityLimit: 50,
      dailyVelocityLimit: null,
      spendLimits: [{ period: "month", limitCents: 40_000 }],
      increases: [{ id: "raise-1", limit: "month", cents: 500, endsAt: 2 * AT }],
    },
    keyId: KEY,
    requestId,
  },
  pay: {
    kind: "pay",
    agentId,
    keyId: KEY,
    request: {
      transactionId: "txn_example",
      approvalId: "apr_example",
      keyHash: "key-example",
      payloadHash: "payload-example",
      rail: "card",
      amountMc: 700_000,
      currency: "USD",
      recipient: "shop",
      merchantCategory: "5734",
      purpose: "an example",
      fingerprint: "fingerprint-example",
      proof: "proof",
      rulesVersions: { project: 2, team: null, agent: 3 },
    },
    approvalWindowSeconds: 3_600,
    recordsCheckedThrough: 0,
    forbidden: { code: "RECIPIENT_NOT_ALLOWED", level: "team" },
    rules: {
      checks: [
        { type: "recipient" },
        { type: "velocity", count: 3, windowSeconds: 60 },
        { type: "duplicate", windowSeconds: 60 },
        {
          type: "time_window",
          zone: 0,
          days: [0, 6],
          fromMinutes: 60,
          toMinutes: 1_440,
          outside: true,
        },
      ],
      zones: [{ segments: [[AT - 1_000, 120]], untilMs: AT * 2 }],
      similarAt: AT,
    },
    requestId,
  },
  confirm: {
    kind: "confirm",
    agentId,
    transactionId,
    revision: 1,
    outcome: {
      result: {
        status: "failed",
        code: "RAIL_UNAVAILABLE",
        reason,
        onChain: { txHash: "0x1", chainCaip2: "eip155:1" },
      },
      at: AT,
    },
    requestId,
  },
  book: {
    kind: "book",
    agentId,
    transactionId,
    books: [{ ...capturedInFull(700_000), authorization: "iauth_1", creditedMc: 1_000 }],
    recordsCheckedThrough: 1,
    closed: closedExample(transactionId),
    dropped: {
      asOfRevision: 1,
      teamId,
      name: "An agent",
      policy: {
        budgetCents: 50_000,
        autoApprovalThresholdCents: null,
        perTransactionLimitCents: null,
        dailySpendLimitCents: null,
        hourlyVelocityLimit: null,
        dailyVelocityLimit: null,
      },
      policyVersion: 1,
      spentMc: 700_000,
      day: { date: "2026-05-13", amountMc: 700_000, count: 1 },
      windows: { at: 1_778_630_400_000, mc: [0, 0, 700_000, 700_000, 700_000] },
      closed: 1,
      revision: 2,
    },
    requestId,
  },
  authorize: {
    kind: "authorize",
    agentId,
    transactionId,
    authorization: "iauth_1",
    position: 0,
    amountMc: 700_000,
    merchant: "SHOP",
    forbidden: { code: "MERCHANT_CATEGORY_NOT_ALLOWED", level: "team" },
    rulesVersions: { project: null, team: 1, agent: null },
    answerBy: AT,
    requestId,
  },
  confirm_limits: { kind: "confirm_limits", agentId, policyVersion: 1, requestId },
  approve: {
    kind: "approve",
    agentId,
    transactionId,
    by,
    proof: "proof",
    forbidden: { code: "RECIPIENT_NOT_ALLOWED", level: "team" },
    rulesVersions: { project: 2, team: null, agent: 3 },
    requestId,
  },
  deny: { kind: "deny", agentId, transactionId, by, feedback: "Too dear.", proof: "proof", requestId },
  expire: { kind: "expire", agentId, transactionId, requestId },
  cancel: { kind: "cancel", agentId, transactionId, requestId },
  request_permission: { kind: "request_permission", agentId, transactionId, requestId },
  read_payment: { kind: "read_payment", agentId, transactionId, requestId },
  grant_raise: {
    kind: "grant_raise",
    agentId,
    raiseId: "raise-1",
    amountMc: 700_000,
    endsAt: AT,
    basis: { grants: 0, policyVersion: 1, teamVersion: 1, projectVersion: 1 },
    requestId,
  },
  confirm_raise: { kind: "confirm_raise", agentId, raiseId: "raise-1", requestId },
  change_policy: {
    kind: "change_policy",
    agentId,
    version: 1,
    patch: {
      budgetCents: 50_000,
      autoApprovalThresholdCents: 1,
      perTransactionLimitCents: null,
      dailySpendLimitCents: 40_000,
      hourlyVelocityLimit: 50,
      dailyVelocityLimit: null,
    },
    requestId,
  },
  pause: { kind: "pause", agentId, requestId },
  resume: { kind: "resume", agentId, pausedAt: AT, requestId },
  follow_agent: {
    kind: "follow_agent",
    agentId,
    revision: 3,
    name: "Another",
    keyId: "akey_2",
    isArchived: true,
    requestId,
  },
  stop_accounts: { kind: "stop_accounts", teamId, revokeKeys: true, requestId },
  confirm_actors: {
    kind: "confirm_actors",
    actors: [{ agentId, status: "paused", revokedKeyId: "akey_1" }],
    requestId,
  },
  replace_project: {
    kind: "replace_project",
    version: 1,
    capCents: 10_000,
    teams: [{ teamId, capCents: 4_000 }],
    requestId,
  },
  replace_team: {
    kind: "replace_team",
    teamId,
    version: 1,
    capCents: 5_000,
    spendLimits: [{ period: "day", limitCents: 0 }],
    agents: [
      { agentId, budgetCents: 500 },
      { agentId: "agent-2", budgetCents: 700 },
    ],
    requestId,
  },
  follow_restrictions: { kind: "follow_restrictions", agentId, version: 2, requestId },
  replace_calendar: {
    kind: "replace_calendar",
    version: 1,
    resetMinutes: 240,
    weekStart: 6,
    monthDay: 28,
    yearMonth: 12,
    timezone: "Europe/Berlin",
    tz: "2025c",
    segments: [[AT, 120]],
    until: AT * 2,
    requestId,
  },
  follow_zone: {
    kind: "follow_zone",
    timezone: "Europe/Berlin",
    tz: "2025c",
    segments: [[AT, 120]],
    until: AT * 2,
    requestId,
  },
  follow_rules: { kind: "follow_rules", teamId, version: 2, requestId },
  confirm_records: { kind: "confirm_records", records: [{ agentId, revision: 3 }], requestId },
  confirm_caps: { kind: "confirm_caps", caps: [{ teamId: null, version: 2 }], requestId },
});

/** What stands in a field's place: other types, and words and numbers that nothing has. */
const OTHERS: readonly unknown[] = [null, true, -1, 0.5, 1e300, "", "text", [], [[]], {}, { kind: "pay" }];

/** A value with one thing in it changed, and where. */
export interface Altered {
  readonly where: string;
  readonly how: "more" | "other" | "without";
  readonly value: unknown;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Every value that differs from this one in one field: it is missing, or another one; or there is one too many. */
export function alterations(value: unknown, where = "$"): Altered[] {
  const others = OTHERS.map((other): Altered => ({ where, how: "other", value: other }));
  return [...others, ...within(value, where)];
}

function within(value: unknown, where: string): Altered[] {
  if (Array.isArray(value)) {
    return value.flatMap((item: unknown, index) =>
      alterations(item, `${where}[${String(index)}]`).map((inner) => ({
        ...inner,
        value: value.with(index, inner.value),
      })),
    );
  }
  if (!isObject(value)) return [];
  return [
    { where, how: "more", value: { ...value, more: 1 } },
    ...Object.entries(value).flatMap(([name, field]): Altered[] => {
      const { [name]: _left, ...rest } = value;
      const inner = alterations(field, `${where}.${name}`);
      return [
        { where: `${where}.${name}`, how: "without", value: rest },
        ...inner.map((one) => ({ ...one, value: { ...value, [name]: one.value } })),
      ];
    }),
  ];
}
