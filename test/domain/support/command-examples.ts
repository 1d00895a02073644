import type { AgentCommand } from "../../../src/domain/agent/commands.ts";
import type { BudgetCommand } from "../../../src/domain/budget/commands.ts";

type AgentExamples = { readonly [K in AgentCommand["kind"]]: Extract<AgentCommand, { readonly kind: K }> };
type BudgetExamples = { readonly [K in BudgetCommand["kind"]]: Extract<BudgetCommand, { readonly kind: K }> };

const AT = Date.UTC(2026, 4, 13, 12);
const by = { userId: "user-1", name: "Ada" };
const reason = "The payment is above what is left.";

/** Every command of an agent's actor, with every field that it may have, of the payment that is named. */
export const agentExamples = (transactionId: string): AgentExamples => ({
  pay: {
    kind: "pay",
    keyId: "akey_1",
    request: {
      transactionId: "txn_example",
      approvalId: "apr_example",
      keyHash: "key-example",
      payloadHash: "payload-example",
      rail: "card",
      amountCents: 700,
      currency: "USD",
      recipient: "shop",
      merchantCategory: "5734",
      purpose: "an example",
      likenessHash: "likeness-example",
      proof: "proof",
      rulesVersions: { project: 2, team: null },
    },
    approvalWindowSeconds: 3_600,
    lookedUpThrough: 0,
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
      likeAt: AT,
    },
  },
  confirm: {
    kind: "confirm",
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
    caps: {
      kind: "reserve",
      answer: {
        granted: false,
        denial: {
          code: "TEAM_CAP_EXCEEDED",
          reason,
          details: { limit: 10, remaining: 3, resetsAt: AT },
        },
        at: AT,
      },
      reportRevision: 3,
      exemptEpoch: 2,
    },
  },
  confirm_report: { kind: "confirm_report", revision: 2 },
  heed_budget: { kind: "heed_budget", epoch: 3, asks: true, budgetCents: 50_000, budgetEpoch: 3 },
  read_report: { kind: "read_report" },
  confirm_summary: { kind: "confirm_summary", revision: 1 },
  confirm_limits: { kind: "confirm_limits", policyVersion: 1 },
  approve: { kind: "approve", transactionId, by, proof: "proof" },
  deny: { kind: "deny", transactionId, by, feedback: "Too dear.", proof: "proof" },
  expire: { kind: "expire", transactionId },
  cancel: { kind: "cancel", transactionId },
  change_policy: {
    kind: "change_policy",
    version: 1,
    patch: {
      budgetCents: 50_000,
      autoApprovalThresholdCents: 1,
      perTransactionLimitCents: null,
      dailySpendLimitCents: 40_000,
      hourlyVelocityLimit: 50,
      dailyVelocityLimit: null,
    },
  },
  ask_to_send: { kind: "ask_to_send", transactionId },
  pause: { kind: "pause" },
  resume: { kind: "resume" },
  read_payment: { kind: "read_payment", transactionId },
  rename: { kind: "rename", name: "Another" },
  authenticate: { kind: "authenticate", keyId: "akey_1" },
  mint_key: { kind: "mint_key", keyId: "akey_2", recordedKeyId: "akey_1" },
  revoke_key: { kind: "revoke_key", recordedKeyId: null },
  prove_non_delivery: { kind: "prove_non_delivery", lineageId: "lineage-1" },
  confirm_erased: { kind: "confirm_erased" },
  archive: { kind: "archive", by: { type: "organization_key", lineageId: "lineage-1", balance: "zero" } },
  confirm_detached: { kind: "confirm_detached" },
});

const report = {
  agentId: "agent-1",
  teamId: "team-1",
  revision: 4,
  spentCents: 100,
  reservedCents: 50,
  asks: [{ transactionId: "txn_1", kind: "reserve", amountCents: 70 }],
} as const;

/** Every command of a project's budget. */
export const budgetExamples: BudgetExamples = {
  report: { kind: "report", report },
  replace_project: {
    kind: "replace_project",
    version: 1,
    capCents: 10_000,
    teams: [{ teamId: "team-1", capCents: null }],
    complete: true,
  },
  replace_team: {
    kind: "replace_team",
    teamId: "team-1",
    version: 1,
    capCents: 5_000,
    budgets: [{ agentId: "agent-1", budgetCents: 500 }],
    complete: true,
  },
  enrol: { kind: "enrol", epoch: 1, agents: [{ agentId: "agent-1", teamId: "team-1" }], last: true },
  delivered: { kind: "delivered", agentId: "agent-1", epoch: 1, asks: true, report },
};

const LONG = "x".repeat(100_000);

/** What stands in a field's place: other types, what is there in every object, and what is too large. */
const OTHERS: readonly unknown[] = [
  null,
  true,
  -1,
  0.5,
  1e300,
  "",
  "text",
  "__proto__",
  "constructor",
  "\u0000",
  "\ud800",
  LONG,
  [],
  [[]],
  Array.from({ length: 100_001 }, () => null),
  {},
  { kind: "pay" },
];

/** A value with one thing in it changed, and where. */
export interface Altered {
  readonly where: string;
  readonly value: unknown;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Every value that differs from this one in one field: it is missing, another type, too large; or there is one too many. */
export function alterations(value: unknown, where = "$"): Altered[] {
  const here = OTHERS.map((other, index) => ({ where: `${where} = other ${String(index)}`, value: other }));
  return [...here, ...within(value, where)];
}

function within(value: unknown, where: string): Altered[] {
  if (Array.isArray(value)) {
    return value.flatMap((item: unknown, index) =>
      alterations(item, `${where}[${String(index)}]`).map((inner) => ({
        where: inner.where,
        value: value.with(index, inner.value),
      })),
    );
  }
  if (!isObject(value)) return [];
  const more = { where: `${where} and more`, value: { ...value, more: LONG } };
  return Object.entries(value).reduce<Altered[]>(
    (all, [name, field]) => {
      const { [name]: _left, ...rest } = value;
      const inner = alterations(field, `${where}.${name}`);
      return [
        ...all,
        { where: `${where} without ${name}`, value: rest },
        ...inner.map((one) => ({ where: one.where, value: { ...value, [name]: one.value } })),
      ];
    },
    [more],
  );
}
