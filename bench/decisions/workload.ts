import type { BudgetPolicy } from "../../src/domain/ledger/policy.ts";
import type { CommandOf } from "../../src/domain/ledger/commands.ts";
import { judge } from "../../src/domain/ledger/judge.ts";
import { type Ledger, newLedger } from "../../src/domain/ledger/state.ts";

/** The agents that decide, and what is asked of them: the same sequence in each run. */

export const AGENTS = 50;
export const TEAMS = 5;
const STARTED_AT = Date.UTC(2026, 4, 13, 0, 0, 1);
/** From one payment of an agent to its next: 300 are in the rolling hour, and days and hours pass. */
export const PAUSE_MS = 12_000;

/** Every limit is set. Most payments fit, some are above the threshold, and some above the limit of one. */
export const POLICY: BudgetPolicy = {
  budgetCents: 900_000_000_000,
  autoApprovalThresholdCents: 9_500,
  perTransactionLimitCents: 10_000,
  dailySpendLimitCents: 500_000_000,
  hourlyVelocityLimit: 1_000,
  dailyVelocityLimit: 20_000,
};

export const teamIdOf = (agent: number): string => `team-${String(agent % TEAMS)}`;
export const agentIdOf = (agent: number): string => `agent-${String(agent)}`;

/** More than any run spends. */
const CAP_CENTS = 1_000_000_000_000_000;

/** A project with 50 agents of 5 teams. */
export function newProject(isCapped: boolean): Ledger {
  const ledger = newLedger("organization-1", "project-1");
  for (let agent = 0; agent < AGENTS; agent += 1) {
    const opened = {
      agentId: agentIdOf(agent),
      teamId: teamIdOf(agent),
      name: `Agent ${String(agent)}`,
      policy: POLICY,
      keyId: "akey_1",
    };
    judge(ledger, { kind: "open_account", ...opened }, STARTED_AT);
  }
  if (!isCapped) return ledger;
  const teams = Array.from({ length: TEAMS }, (_none, team) => ({
    teamId: teamIdOf(team),
    capCents: CAP_CENTS,
  }));
  const caps = { kind: "replace_project", version: 1, capCents: CAP_CENTS, teams } as const;
  if (judge(ledger, caps, STARTED_AT).kind !== "replaced") throw new Error("no caps were set");
  return ledger;
}

/** From 1 to 10,500 cents, without an order: 9 of 100 are held, 5 denied. */
export const amountOf = (number: number): number => 1 + ((number * 7_919) % 10_500);

/** When an agent's payment of this number is decided. */
export const timeOf = (number: number): number => STARTED_AT + Math.floor(number / AGENTS) * PAUSE_MS;

/** As the server sends it. Made before the time is taken: what makes ids and hashes is no decision. */
export const payOf = (number: number): CommandOf<"pay"> => ({
  kind: "pay",
  agentId: agentIdOf(number % AGENTS),
  keyId: "akey_1",
  request: {
    transactionId: `txn_${String(number).padStart(26, "0")}`,
    approvalId: `apr_${String(number).padStart(26, "0")}`,
    keyHash: `key-${String(number)}`.padEnd(43, "k"),
    proof: "proof".padEnd(43, "p"),
    payloadHash: `payload-${String(number)}`.padEnd(43, "p"),
    rail: "card",
    amountCents: amountOf(number),
    currency: "USD",
    recipient: "An ordinary merchant",
    merchantCategory: "5734",
    purpose: "A decision of the bench",
    fingerprint: `like-${String(number)}`.padEnd(43, "l"),
  },
  approvalWindowSeconds: 86_400,
  // Whatever the ledger has forgotten was looked up.
  recordsCheckedThrough: Number.MAX_SAFE_INTEGER,
});
