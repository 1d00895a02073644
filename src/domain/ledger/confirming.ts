import { settle } from "../agent/payment.ts";
import type { CommandOf, LedgerReply } from "./commands.ts";
import type { Draft } from "./draft.ts";

/** What was done of what the ledger has decided. */

const CONFIRMED: LedgerReply = { kind: "confirmed" };

/** A payment's effects, and what its rail said on the way; said twice, or late, it changes nothing. */
export function confirm(draft: Draft, command: CommandOf<"confirm">): LedgerReply {
  const { agentId, outcome, revision, transactionId } = command;
  const account = draft.account(agentId);
  const open = account?.open.get(transactionId);
  if (account === undefined || open === undefined) return CONFIRMED;
  const payment = outcome === null ? open.payment : settle(open.payment, outcome.result, outcome.at);
  if (payment !== open.payment) draft.change(account, payment);
  draft.confirm(account, transactionId, revision);
  return CONFIRMED;
}

export function confirmRecord(draft: Draft, { agentId, revision }: CommandOf<"confirm_record">): LedgerReply {
  const account = draft.account(agentId);
  if (account === undefined) return CONFIRMED;
  account.confirmedRevision = Math.max(account.confirmedRevision, Math.min(revision, account.revision));
  account.outbox = account.outbox.filter((event) => event.revision > account.confirmedRevision);
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
