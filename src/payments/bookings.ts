import pLimit from "p-limit";
import { ActorUnavailable } from "../actors/actor-unavailable.ts";
import { type RailBooks, withReports } from "../domain/ledger/books.ts";
import type { CommandOf, DroppedAccount } from "../domain/ledger/commands.ts";
import type { Payment, PaymentRequest, Rail } from "../domain/ledger/payment.ts";
import type { AgentProfile } from "../domain/agent/state.ts";
import type { PaymentEffects } from "./effects.ts";
import { withTimeout } from "../lib/with-timeout.ts";
import type { ChangedPayment, Clock, ConfirmedLedgers, Projections, RailNetwork, Rails } from "./ports.ts";

export interface BookingDependencies {
  readonly clock: Clock;
  readonly effects: Pick<PaymentEffects, "recordAndPublish">;
  readonly ledgers: ConfirmedLedgers;
  readonly projections: Pick<Projections, "closedAgent" | "paymentOf">;
  readonly rails: Rails;
}

/** Maximum submissions of one report. Each further one is based on newer records. */
const ATTEMPTS_MAX = 5;

/** Maximum feeds read concurrently, so that slow ones do not hold the others. */
const FEEDS_AT_ONCE = 8;
/** Maximum payments of one feed that are booked concurrently. Issuers limit calls. */
const BOOKED_AT_ONCE = 4;
/** Timeout of one booking among others. */
const BOOKING_TIMEOUT_MS = 15_000;

/** Called with a payment that could not be booked, or with a rail whose changes could not be read. */
type OnFailed = (id: string, error: unknown) => void;

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

  /**
   * Books everything that a rail's network has changed since a time and in its feeds; returns the time of the newest
   * change. A payment that can't be booked is left to the network's feeds, and holds no other back.
   */
  async bookSince(rail: Rail, since: Date, onFailed: OnFailed): Promise<Date> {
    const { network } = this.#dependencies.rails[rail];
    if (network === null) return since;
    const book = (transactionId: string) => this.#bookOrKeep(network, transactionId, onFailed);
    const [newest] = await Promise.all([
      bookInOrder(network.changedSince(since), since, book),
      bookFeeds(network, book, (error) => onFailed(rail, error)),
    ]);
    return newest;
  }

  /** False if the payment was neither booked nor kept for later. */
  async #bookOrKeep(network: RailNetwork, transactionId: string, onFailed: OnFailed): Promise<boolean> {
    try {
      const booked = await withTimeout(BOOKING_TIMEOUT_MS, this.book(transactionId));
      if (booked === null) throw unrecorded(transactionId);
      return true;
    } catch (error) {
      onFailed(transactionId, error);
    }
    try {
      await network.keepUnbooked(transactionId);
      return true;
    } catch (error) {
      onFailed(transactionId, error);
      return false;
    }
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
    const found = await this.#dependencies.projections.paymentOf(transactionId, "to adopt");
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

type Book = (transactionId: string) => Promise<boolean>;

async function bookInOrder(changes: AsyncIterable<ChangedPayment>, since: Date, book: Book): Promise<Date> {
  let newest = since;
  let isComplete = true;
  for await (const { changedAt, transactionId } of changes) {
    isComplete = (await book(transactionId)) && isComplete;
    if (isComplete) newest = changedAt;
  }
  return newest;
}

async function bookFeeds(
  network: RailNetwork,
  book: Book,
  onUnread: (error: unknown) => void,
): Promise<void> {
  const reading = pLimit(FEEDS_AT_ONCE);
  const read: Promise<void>[] = [];
  for await (const feed of network.feeds())
    read.push(
      reading(async () => {
        const booking = pLimit(BOOKED_AT_ONCE);
        for await (const page of feed) if ((await booking.map([...page], book)).includes(false)) return;
      }).catch(onUnread),
    );
  await Promise.all(read);
}
