import type { ChainRepair } from "../chain/repairs.ts";
import type { BlockReason } from "../actors/blocked-projects.ts";
import { DENIAL_CODES } from "../domain/ledger/policy.ts";
import { RAIL_FAILURE_CODES } from "../domain/ledger/rail-failures.ts";
import type { LimitName } from "../limits/limits.ts";
import type { MailOutcome } from "../mail/invite-mail.ts";

export const SURFACES = ["rest", "mcp"] as const;

/** Consecutive steps of a payment before its caller is answered. */
export type PaymentPhase = (typeof PHASES)[number];
export const PHASES = ["lookup", "decision", "rail", "record"] as const;

/**
 * Work done by sweeps because it was not confirmed in time. Ledgers: a payment executed, an account or a cap recorded.
 * Agents' actors: a record written, the ledger notified. Servers: an audit entry written that another server had left.
 */
export type SweepName = (typeof SWEEPS)[number];
export const SWEEPS = [
  "payment",
  "account_records",
  "cap_records",
  "agent_record",
  "ledger",
  "audit_entry",
] as const;

export type RailCall = (typeof RAIL_CALLS)[number];
export const RAIL_CALLS = [
  "send",
  "query",
  "settle",
  "withhold",
  "fence",
  "reverse",
  "balance",
  "detach",
] as const;

/**
 * Kinds of forgeries: records in MongoDB, the others through Temporal. A payload under an unknown key may be another
 * process's own.
 */
export type Forged = (typeof FORGED)[number];
export const FORGED = ["payment", "decision", "payload", "record", "unknown_key"] as const;

export type ForwardResult = (typeof FORWARDED)[number];
export const FORWARDED = ["answered", "failed"] as const;

/** Why a payment was not submitted to its ledger. */
export type ShedReason = (typeof SHED)[number];
export const SHED = ["overload", "caller_gone"] as const;

/** A limit that a caller exceeded: one per minute, a key's creates per day, or an organization's mails. */
export type HitLimit = LimitName | "daily_creates" | "mailed_invites";

/** Returns the keys of a record whose completeness the compiler checks. */
const keysOf = <K extends string>(values: Readonly<Record<K, true>>): string[] => Object.keys(values);

export const LIMITS = keysOf<HitLimit>({
  rest: true,
  mcp: true,
  dashboard: true,
  address: true,
  logos: true,
  registrations: true,
  operation: true,
  management_writes: true,
  card_messages: true,
  daily_creates: true,
  mailed_invites: true,
});

export const MAIL_OUTCOMES = keysOf<MailOutcome>({ sent: true, refused: true, unsent: true, expired: true });

export const CHAIN_REPAIRS = keysOf<ChainRepair>({
  sent_again: true,
  fee_raised: true,
  fee_bounded: true,
  foreign_nonce: true,
  nonce_unexplained: true,
  nonce_filled: true,
  endpoint_changed: true,
  endpoints_disagree: true,
});

export const BLOCK_REASONS = keysOf<BlockReason>({
  ledger_lost: true,
  stale_ledger: true,
  stale_records: true,
});

/** Denial codes counted with each payment status. */
export const DENIAL_CODES_OF: Readonly<Record<string, readonly string[]>> = {
  held: ["none"],
  approved: ["none"],
  reversed: ["none"],
  expired: ["APPROVAL_EXPIRED"],
  failed: RAIL_FAILURE_CODES,
  denied: DENIAL_CODES.filter((code) => !RAIL_FAILURE_CODES.some((ofRail) => ofRail === code)),
};
