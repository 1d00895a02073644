import { accountRefused } from "./capacity.ts";
import { patchPolicy } from "./policy.ts";
import type { CommandOf, LedgerReply } from "./commands.ts";
import type { Draft } from "./draft.ts";
import { endAllWaiting } from "./resolve-held.ts";
import { fenceOf, wakeOpen, withdrawOpen } from "./pausing.ts";
import { type Fence, isInFlight } from "./permission.ts";
import { type Account, newAccount } from "./state.ts";

/** Opens an account. Idempotent. */
export function openAccount(draft: Draft, command: CommandOf<"open_account">): LedgerReply {
  const { kind: _kind, requestId: _requestId, ...opened } = command;
  const { ledger, now } = draft;
  if (ledger.accounts.has(opened.agentId)) return { kind: "opened", changed: false };
  const full = accountRefused(ledger, now);
  if (full !== null) return full;
  draft.open(newAccount({ ...opened, policy: patchPolicy(opened.policy, {}) }, now));
  return { kind: "opened", changed: true };
}

/** Sets an account's status. A paused account's payments stay as they are and are executed after the resume. */
export function setAccountStatus(draft: Draft, command: CommandOf<"pause" | "resume">): LedgerReply {
  const account = draft.account(command.agentId);
  if (account === undefined || account.status === "closed") return { kind: "no_account" };
  const status = command.kind === "pause" ? "paused" : "active";
  const changed = account.status !== status;
  if (command.kind === "pause") pause(draft, account);
  else if (changed) {
    const { pausedAt = account.pausedAt } = command;
    if (pausedAt !== account.pausedAt) return { kind: "paused_again" };
    resume(draft, account);
  }
  return { kind: "account_status", status, changed, fence: fenceOf(account) };
}

/**
 * Stops all agents of a team or of the project in one decision. An agent whose account is opened later is not stopped.
 * The agents' actors follow; until then `revokedKeyId` keeps the key from coming back.
 */
export function stopAccounts(draft: Draft, { revokeKeys, teamId }: CommandOf<"stop_accounts">): LedgerReply {
  let [paused, revoked] = [0, 0];
  const fences: Fence[] = [];
  for (const known of draft.ledger.accounts.values()) {
    if (teamId !== null && known.teamId !== teamId) continue;
    if (known.status === "closed") {
      const fence = stopClosed(draft, known);
      if (fence !== null) fences.push(fence);
      continue;
    }
    const losesKey = revokeKeys && known.keyId !== null;
    const account = draft.account(known.agentId);
    if (account === undefined) continue;
    if (losesKey) {
      revoked += 1;
      account.revokedKeyId = account.keyId;
      account.keyId = null;
    }
    if (account.status === "active") paused += 1;
    else if (losesKey) {
      withdrawOpen(draft, account);
      draft.touch(account);
    }
    pause(draft, account);
    // An already paused agent gets a fence too: the process that paused it may not have laid one.
    const fence = fenceOf(account);
    if (fence !== null) fences.push(fence);
  }
  return { kind: "stopped", paused, revoked, fences };
}

/** Withdraws payments of an archived agent, which are otherwise still sent if they were decided before the archival. */
function stopClosed(draft: Draft, { agentId, open }: Account): Fence | null {
  if (![...open.values()].some(({ payment }) => isInFlight(payment))) return null;
  const account = draft.account(agentId);
  if (account === undefined) return null;
  withdrawOpen(draft, account);
  // Raises the revision above every permit given before.
  draft.touch(account);
  return fenceOf(account);
}

/** Pauses an account. A repeated pause only begins again, which a resume requested before does not end. */
function pause(draft: Draft, account: Account): void {
  const isRepeated = account.status === "paused";
  account.pausedAt = Math.max(draft.now, (account.pausedAt ?? 0) + 1);
  if (isRepeated) return;
  account.status = "paused";
  account.isStatusTold = false;
  // A pause after the key's revocation is also an emergency stop.
  if (account.keyId === null) withdrawOpen(draft, account);
  draft.emit(account, "agent.paused");
}

function resume(draft: Draft, account: Account): void {
  account.status = "active";
  account.isStatusTold = false;
  account.pausedAt = null;
  wakeOpen(account, draft.now);
  draft.emit(account, "agent.resumed");
}

/**
 * Follows an agent's actor. If a key is revoked while the agent is paused, payments that are decided and not sent are
 * withdrawn. An archived agent's account is closed for good in one decision: no key pays from it any more, and held
 * payments are denied. Payments that are decided and not sent are withdrawn if the agent is paused, and otherwise
 * finish.
 */
export function followAgent(draft: Draft, command: CommandOf<"follow_agent">): LedgerReply {
  const account = follow(draft, command);
  if (account === null) return { kind: "followed", ended: [] };
  account.name = command.name;
  if (command.isArchived) return { kind: "followed", ended: close(draft, account) };
  // The actor may not know yet that a stop has revoked the key.
  const isRevoked = command.keyId !== null && command.keyId === account.revokedKeyId;
  account.keyId = isRevoked ? null : command.keyId;
  if (!isRevoked) account.revokedKeyId = null;
  if (account.keyId === null && account.status === "paused") withdrawOpen(draft, account);
  return { kind: "followed", ended: [] };
}

function close(draft: Draft, account: Account): string[] {
  const ended = endAllWaiting(draft, account);
  if (account.status === "paused") withdrawOpen(draft, account);
  account.status = "closed";
  account.keyId = null;
  account.revokedKeyId = null;
  account.pausedAt = null;
  draft.touch(account);
  return ended;
}

/** Returns the account if the command's revision is newer than the followed one; otherwise null. */
function follow(draft: Draft, { agentId, revision }: CommandOf<"follow_agent">): Account | null {
  const account = draft.account(agentId);
  const isNews = account !== undefined && account.status !== "closed" && revision > account.followedRevision;
  if (!isNews) return null;
  account.followedRevision = revision;
  return account;
}

export function changePolicy(draft: Draft, command: CommandOf<"change_policy">): LedgerReply {
  const account = draft.account(command.agentId);
  if (account === undefined || account.status === "closed") return { kind: "no_account" };
  const { policy: before, policyVersion } = account;
  if (command.version !== policyVersion) return { kind: "version_conflict", version: policyVersion };
  account.policy = patchPolicy(before, command.patch);
  account.policyVersion += 1;
  draft.touch(account);
  return { kind: "policy", before, policy: account.policy, policyVersion: account.policyVersion };
}
