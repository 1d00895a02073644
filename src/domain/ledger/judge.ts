import { authorize, book } from "./booking.ts";
import type { CommandOf, LedgerCommand, LedgerReply } from "./commands.ts";
import { confirm, confirmActors, confirmCaps, confirmLimits, confirmRecords } from "./confirming.ts";
import { Draft } from "./draft.ts";
import { replyToCache, cachedReply, cacheReply } from "./reply-cache.ts";
import { approveHeld, cancelWaiting, denyHeld, expireWaiting } from "./resolve-held.ts";
import {
  followRestrictions,
  followRules,
  followZone,
  replaceCalendar,
  replaceProject,
  replaceTeam,
} from "./levels.ts";
import { pay } from "./pay.ts";
import { confirmRaise, grantRaise } from "./raises.ts";
import { requestPermission } from "./pausing.ts";
import { changePolicy, followAgent, openAccount, setAccountStatus, stopAccounts } from "./account.ts";
import type { Ledger } from "./state.ts";

/**
 * Judges one command against all levels at once, and commits its decision. `now` is the ledger's time in epoch
 * milliseconds. Refusals are replies. A command that throws changes nothing and is answered `failed`: it must neither
 * fail the commands beside it nor be judged again and again.
 */
export function judge(ledger: Ledger, command: LedgerCommand, now: number): LedgerReply {
  const draft = new Draft(ledger, now);
  try {
    const first = cachedReply(ledger, command);
    if (first !== null) return first;
    const reply = decide(draft, command);
    const answer = replyToCache(command, reply);
    draft.commit();
    if (answer !== null) cacheReply(ledger, answer, now);
    return reply;
  } catch (error) {
    return { kind: "failed", message: error instanceof Error ? error.message : String(error) };
  }
}

function decide(draft: Draft, command: LedgerCommand): LedgerReply {
  switch (command.kind) {
    case "open_account":
      return openAccount(draft, command);
    case "pay":
      return pay(draft, command);
    case "confirm":
      return confirm(draft, command);
    case "book":
      return book(draft, command);
    case "authorize":
      return authorize(draft, command);
    case "confirm_records":
      return confirmRecords(draft, command);
    case "confirm_actors":
      return confirmActors(draft, command);
    case "confirm_caps":
      return confirmCaps(draft, command);
    case "confirm_limits":
      return confirmLimits(draft, command);
    case "approve":
      return approveHeld(draft, command);
    case "deny":
      return denyHeld(draft, command);
    case "expire":
      return expireWaiting(draft, command);
    case "cancel":
      return cancelWaiting(draft, command);
    case "request_permission":
      return requestPermission(draft, command);
    case "read_payment":
      return readPayment(draft, command);
    case "grant_raise":
      return grantRaise(draft, command);
    case "confirm_raise":
      return confirmRaise(draft, command);
    case "change_policy":
      return changePolicy(draft, command);
    case "pause":
    case "resume":
      return setAccountStatus(draft, command);
    case "stop_accounts":
      return stopAccounts(draft, command);
    case "follow_agent":
      return followAgent(draft, command);
    case "follow_restrictions":
      return followRestrictions(draft, command);
    case "replace_project":
      return replaceProject(draft, command);
    case "replace_team":
      return replaceTeam(draft, command);
    case "replace_calendar":
      return replaceCalendar(draft, command);
    case "follow_zone":
      return followZone(draft, command);
    case "follow_rules":
      return followRules(draft, command);
  }
}

function readPayment({ ledger }: Draft, command: CommandOf<"read_payment">): LedgerReply {
  const open = ledger.accounts.get(command.agentId)?.open.get(command.transactionId);
  return open === undefined
    ? { kind: "not_open" }
    : { kind: "payment", changed: false, payment: open.payment };
}
