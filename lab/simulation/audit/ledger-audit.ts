import type { LedgerCommand, LedgerReply } from "../../../src/domain/ledger/commands.ts";
import { AccountAudit } from "./account-audit.ts";
import type { WorldModel } from "./books.ts";
import { DecisionAudit } from "./decision-audit.ts";
import type { LedgerShown } from "./observer.ts";
import { PaymentAudit } from "./payment-audit.ts";
import { RaiseAudit } from "./raise-audit.ts";
import { must, mustEqual } from "./violation.ts";

/** An answer to a request with an id is given again for so long, unless so many came since. */
const AGAIN_MS = 300_000;
const AGAIN_MAX = 256;

/** Checks a project's ledger against the books, which follow its answers. */
export class LedgerAudit {
  readonly #books: WorldModel;
  readonly #accounts: AccountAudit;
  readonly #decisions: DecisionAudit;
  readonly #payments: PaymentAudit;
  readonly #raises: RaiseAudit;
  readonly #answers = new Map<string, { readonly at: number; readonly reply: LedgerReply }>();

  constructor(books: WorldModel) {
    this.#books = books;
    this.#accounts = new AccountAudit(books);
    this.#decisions = new DecisionAudit(books);
    this.#payments = new PaymentAudit(books);
    this.#raises = new RaiseAudit(books);
  }

  expect(command: LedgerCommand, reply: LedgerReply, shown: LedgerShown): void {
    must(reply.kind !== "failed", () => `${command.kind} failed: ${JSON.stringify(reply)}`);
    const { requestId } = command;
    const first = requestId === undefined ? undefined : this.#answers.get(requestId);
    if (first !== undefined) {
      this.#books.count("asked again");
      return expectAgain(first.reply, reply);
    }
    this.#expectNew(command, reply, shown);
    if (requestId === undefined) return;
    this.#answers.set(requestId, { at: shown.now, reply });
    for (const [id, { at }] of this.#answers) {
      if (this.#answers.size <= AGAIN_MAX && at > shown.now - AGAIN_MS) break;
      this.#answers.delete(id);
    }
  }

  #expectNew(command: LedgerCommand, reply: LedgerReply, shown: LedgerShown): void {
    const { now } = shown;
    switch (command.kind) {
      case "open_account":
        return this.#accounts.expectOpen(command, reply, shown);
      case "pay":
        return this.#decisions.expect(command, reply, shown);
      case "confirm":
        return this.#payments.expectConfirmed(command, reply, now);
      case "book":
        return this.#payments.expectBooked(command, reply, now);
      case "authorize":
        throw new Error("no network here asks for more");
      case "approve":
      case "deny":
      case "cancel":
      case "expire":
        return this.#payments.expectResolution(command, reply, now);
      case "request_permission":
        return this.#payments.expectPermission(command, reply);
      case "read_payment":
        return this.#payments.expectRead(command.transactionId, reply);
      case "grant_raise":
        return this.#raises.expectGranted(command, reply, now);
      case "change_policy":
        return this.#accounts.expectPolicy(command, reply, now);
      case "pause":
      case "resume":
        return this.#accounts.expectStatus(command, reply, now);
      case "stop_accounts": {
        const stopped = this.#accounts.expectStopped(command, reply, now);
        if (command.requestId !== undefined) this.#books.stops.set(command.requestId, stopped);
        return;
      }
      case "follow_agent":
        return this.#accounts.expectFollowed(command, reply, now);
      case "replace_project":
      case "replace_team":
        return this.#accounts.expectReplaced(command, reply);
      case "follow_rules": {
        const level = this.#books.level(command.teamId);
        level.rulesVersion = Math.max(level.rulesVersion, command.version);
        return mustEqual(reply.kind, "confirmed", "the answer to new rules");
      }
      case "follow_restrictions": {
        const model = this.#books.accounts.get(command.agentId);
        if (reply.kind === "no_account") return;
        if (model !== undefined) model.rulesVersion = Math.max(model.rulesVersion, command.version);
        return mustEqual(reply.kind, "confirmed", "the answer to new restrictions");
      }
      case "confirm_actors":
      case "confirm_records":
      // The simulated project keeps the calendar that it began with.
      case "replace_calendar":
      case "follow_zone":
      case "confirm_raise":
      case "confirm_caps":
      case "confirm_limits":
        return mustEqual(reply.kind, "confirmed", `the answer to ${command.kind}`);
    }
  }
}

function expectAgain(first: LedgerReply, reply: LedgerReply): void {
  const [was, is] = [first, reply].map(answerOf);
  if (first.kind === "payment" && reply.kind === "not_open") return;
  mustEqual(is, was, "the answer to a request that came again");
}

/** Returns the part of a reply that is equal each time: payments, fences and caps to record are read anew. */
function answerOf(reply: LedgerReply): unknown {
  if (reply.kind === "stopped") return { ...reply, fences: null };
  if (reply.kind === "account_status") return { ...reply, fence: null };
  if (reply.kind === "payment") return { kind: reply.kind, changed: reply.changed };
  return reply.kind === "replaced" ? { kind: reply.kind, version: reply.version } : reply;
}
