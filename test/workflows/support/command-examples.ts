import { capturedInFull } from "../../../src/domain/ledger/books.ts";
import type { CommandOf, LedgerCommand } from "../../../src/domain/ledger/commands.ts";
import { containers, human as by, KEY, policy } from "./ledger.ts";

type LedgerExamples = { readonly [K in LedgerCommand["kind"]]: CommandOf<K> };

const AT = Date.UTC(2026, 4, 13, 12);
const { teamId } = containers;

/** Every command of a ledger, with every field that it must have, of the agent and the payment that are named. */
export const ledgerExamples = (agentId: string, transactionId: string): LedgerExamples => ({
  open_account: { kind: "open_account", agentId, teamId, name: "Agent", policy, keyId: KEY },
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
    rules: {
      checks: [
        { type: "recipient" },
        { type: "velocity", count: 3, windowSeconds: 60 },
        { type: "time_window", zone: 0, days: [0, 6], fromMinutes: 60, toMinutes: 1_440, outside: true },
      ],
      zones: [{ segments: [[AT - 1_000, 120]], untilMs: AT * 2 }],
      similarAt: AT,
    },
  },
  confirm: {
    kind: "confirm",
    agentId,
    transactionId,
    revision: 1,
    outcome: { result: { status: "failed", code: "RAIL_UNAVAILABLE", reason: "It is down." }, at: AT },
  },
  book: {
    kind: "book",
    agentId,
    transactionId,
    books: [{ ...capturedInFull(700_000), creditedMc: 700_000 }],
    recordsCheckedThrough: 0,
  },
  authorize: {
    kind: "authorize",
    agentId,
    transactionId,
    authorization: "iauth_1",
    position: 0,
    amountMc: 700_000,
    answerBy: AT,
  },
  confirm_limits: { kind: "confirm_limits", agentId, policyVersion: 1 },
  approve: {
    kind: "approve",
    agentId,
    transactionId,
    by,
    proof: "proof",
    forbidden: { code: "RECIPIENT_NOT_ALLOWED", level: "team" },
    rulesVersions: { project: 2, team: null, agent: 3 },
  },
  deny: { kind: "deny", agentId, transactionId, by, feedback: "Too dear.", proof: "proof" },
  expire: { kind: "expire", agentId, transactionId },
  cancel: { kind: "cancel", agentId, transactionId },
  request_permission: { kind: "request_permission", agentId, transactionId },
  read_payment: { kind: "read_payment", agentId, transactionId },
  grant_raise: {
    kind: "grant_raise",
    agentId,
    raiseId: "raise-1",
    amountMc: 700_000,
  },
  confirm_raise: { kind: "confirm_raise", agentId, raiseId: "raise-1" },
  change_policy: { kind: "change_policy", agentId, version: 1, patch: { budgetCents: 50_000 } },
  pause: { kind: "pause", agentId },
  resume: { kind: "resume", agentId },
  follow_agent: { kind: "follow_agent", agentId, revision: 2, name: "Agent", keyId: KEY, isArchived: false },
  stop_accounts: { kind: "stop_accounts", teamId, revokeKeys: true },
  confirm_actors: {
    kind: "confirm_actors",
    actors: [{ agentId, status: "paused", revokedKeyId: "akey_1" }],
  },
  replace_project: {
    kind: "replace_project",
    version: 1,
    capCents: 90_000,
    teams: [{ teamId, capCents: 1 }],
  },
  replace_team: {
    kind: "replace_team",
    teamId,
    version: 1,
    capCents: null,
    agents: [{ agentId, budgetCents: 1 }],
  },
  follow_restrictions: { kind: "follow_restrictions", agentId, version: 2 },
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
  },
  follow_zone: {
    kind: "follow_zone",
    timezone: "Europe/Berlin",
    tz: "2025c",
    segments: [[AT, 120]],
    until: AT * 2,
  },
  follow_rules: { kind: "follow_rules", teamId, version: 1 },
  confirm_records: { kind: "confirm_records", records: [{ agentId, revision: 1 }] },
  confirm_caps: { kind: "confirm_caps", caps: [{ teamId: null, version: 1 }] },
});
