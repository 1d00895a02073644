import { ActorUnavailable } from "../actors/actor-unavailable.ts";
import { type RailBooks, withReports } from "../domain/ledger/books.ts";
import type { CommandOf, DroppedAccount } from "../domain/ledger/commands.ts";
import type { Payment, PaymentRequest, Rail } from "../domain/ledger/payment.ts";
import type { AgentProfile } from "../domain/agent/state.ts";
import type { PaymentEffects } from "./effects.ts";
import type { Clock, ConfirmedLedgers, Projections, Rails } from "./ports.ts";

export interface BookingDependencies {
  readonly clock: Clock;
  readonly effects: Pick<PaymentEffects, "recordAndPublish">;
  readonly ledgers: ConfirmedLedgers;
  readonly projections: Pick<Projections, "closedAgent" | "paymentOf">;
  readonly rails: Rails;
}

/** Maximum submissions of one report. Each further one is based on newer records. */
const ATTEMPTS_MAX = 5;

/** Books rail networks' reports on payments: first in the ledger, then in the records, then confirmed. */
export class Bookings {
  readonly #dependencies: BookingDependencies;

  constructor(dependencies: BookingDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Reads a payment's books on its rail and books what is new in its ledger. Repeatable. Returns the payment as it is
   * then; null if it has no record. Throws if ledger or records are unavailable.
   */
  async book(transactionId: string): Promise<Payment | null> {
    const { clock, projections, rails } = this.#dependencies;
    const found = await projections.paymentOf(transactionId);
    if (found === null) return null;
    const { payment, profile } = found;
    const reports = (await rails[payment.request.rail].network?.booksOf(transactionId)) ?? [];
    // The record shows only what the ledger has, or is about to be told.
    const { books } = payment;
    const isKnown =
      books === null ? reports.length === 0 : withReports(books, reports, clock().getTime()) === books;
    return isKnown ? payment : this.#bookReports(profile, payment.request, reports);
  }

  /** Books everything that a rail's network has changed since a time; returns the time of the newest change. */
  async bookSince(rail: Rail, since: Date, onFailed: (id: string, error: unknown) => void): Promise<Date> {
    const network = this.#dependencies.rails[rail].network;
    let newest = since;
    let isComplete = true;
    if (network === null) return newest;
    for await (const { changedAt, transactionId } of network.changedSince(since)) {
      try {
        if ((await this.book(transactionId)) === null) throw unrecorded(transactionId);
      } catch (error) {
        isComplete = false;
        onFailed(transactionId, error);
      }
      // Failed bookings are read again next time.
      if (isComplete) newest = changedAt;
    }
    return newest;
  }

  async #bookReports(
    profile: AgentProfile,
    request: PaymentRequest,
    books: readonly RailBooks[],
  ): Promise<Payment> {
    const { effects, ledgers } = this.#dependencies;
    const { agentId } = profile;
    const { transactionId } = request;
    let command: CommandOf<"book"> = {
      kind: "book",
      agentId,
      transactionId,
      books,
      recordsCheckedThrough: 0,
    };
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      const reply = await ledgers.submit(profile, command, { texts: request });
      switch (reply.kind) {
        case "payment": {
          const { changed, payment } = reply;
          if (!changed) return payment;
          await effects.recordAndPublish(profile, payment);
          const { revision } = payment;
          const confirmation = { kind: "confirm", agentId, transactionId, revision, outcome: null } as const;
          ledgers.confirmLater(profile, confirmation, Promise.resolve());
          return payment;
        }
        case "records_check_required":
          command = {
            ...command,
            ...(await this.#closed(transactionId)),
            recordsCheckedThrough: reply.closed,
          };
          break;
        case "account_dropped":
          command = { ...command, ...(await this.#closed(transactionId)) };
          command = { ...command, dropped: await this.#dropped(agentId, reply.revision) };
          break;
        case "failed":
          throw new Error(reply.message);
        default:
          throw new Error(`a ledger answered ${reply.kind} to a report of a network`);
      }
    }
    throw new ActorUnavailable("the records do not keep up with the ledger");
  }

  async #closed(transactionId: string): Promise<Pick<CommandOf<"book">, "closed">> {
    const found = await this.#dependencies.projections.paymentOf(transactionId);
    if (found === null) throw unrecorded(transactionId);
    // The record of an open payment may be behind its ledger.
    return found.payment.phase === "done" ? { closed: found.payment } : {};
  }

  async #dropped(agentId: string, asOfRevision: number): Promise<DroppedAccount> {
    const account = await this.#dependencies.projections.closedAgent(agentId);
    if (account === null) throw new ActorUnavailable(`agent ${agentId} has no record`);
    return { ...account, asOfRevision };
  }
}

const unrecorded = (transactionId: string): ActorUnavailable =>
  new ActorUnavailable(`transaction ${transactionId} has no record yet`);
