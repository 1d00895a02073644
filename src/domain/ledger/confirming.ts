import { isArmed, settle } from "./payment.ts";
import type { CommandOf, LedgerReply } from "./commands.ts";
import type { Draft } from "./draft.ts";
import { endArmed } from "./pausing.ts";

const CONFIRMED: LedgerReply = { kind: "confirmed" };

/** Confirms a payment's effects and its rail's outcome. A repeated or late confirmation changes nothing. */
export function confirm(draft: Draft, command: CommandOf<"confirm">): LedgerReply {
  const { agentId, outcome, revision, transactionId } = command;
  const account = draft.account(agentId);
  const open = account?.open.get(transactionId);
  if (account === undefined || open === undefined) return CONFIRMED;
  const payment = outcome === null ? open.payment : settle(open.payment, outcome.result, outcome.at);
  if (payment !== open.payment) draft.change(account, payment);
  // Its card was being made when the agent was stopped for good.
  if (open.isWithdrawn === true && isArmed(payment)) endArmed(draft, account, { ...open, payment });
  draft.confirm(account, transactionId, revision);
  return CONFIRMED;
}

export function confirmRecords(draft: Draft, { records }: CommandOf<"confirm_records">): LedgerReply {
  for (const { agentId, revision } of records) {
    const account = draft.account(agentId);
    if (account === undefined) continue;
    account.confirmedRevision = Math.max(account.confirmedRevision, Math.min(revision, account.revision));
    account.outbox = account.outbox.filter((event) => event.revision > account.confirmedRevision);
  }
  return CONFIRMED;
}

export function confirmActors(draft: Draft, { actors }: CommandOf<"confirm_actors">): LedgerReply {
  for (const { agentId, revokedKeyId, status } of actors) {
    const account = draft.account(agentId);
    if (account === undefined) continue;
    if (account.status === status) account.isStatusTold = true;
    if (account.revokedKeyId === revokedKeyId) account.revokedKeyId = null;
  }
  return CONFIRMED;
}

export function confirmCaps(draft: Draft, { caps }: CommandOf<"confirm_caps">): LedgerReply {
  for (const { teamId, version } of caps) {
    const { cap, recordedCapVersion: recorded } = draft.level(teamId);
    draft.setLevel(teamId, { recordedCapVersion: Math.max(recorded, Math.min(version, cap.version)) });
  }
  return CONFIRMED;
}

export function confirmLimits(
  draft: Draft,
  { agentId, policyVersion }: CommandOf<"confirm_limits">,
): LedgerReply {
  const account = draft.account(agentId);
  if (account === undefined) return CONFIRMED;
  const mirrored = Math.min(policyVersion, account.policyVersion);
  account.mirroredPolicyVersion = Math.max(account.mirroredPolicyVersion, mirrored);
  return CONFIRMED;
}
