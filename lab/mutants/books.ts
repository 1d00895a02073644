import { type Books, countedIn, joined, NO_BOOKS, type RailBooks } from "../../src/domain/ledger/books.ts";
import type { CommandOf } from "../../src/domain/ledger/commands.ts";
import { countedOn } from "../../src/domain/ledger/counted.ts";
import { judge } from "../../src/domain/ledger/judge.ts";
import { moneyOf, type StoredPayment, totalOf, withBooks } from "../../src/domain/ledger/payment.ts";
import type { Account, Ledger } from "../../src/domain/ledger/state.ts";
import { usedCents } from "../../src/domain/money.ts";
import type { LedgerDomain } from "../../test/domain/ledger/world.ts";
import {
  addTotals,
  after,
  before,
  judging,
  judgingAs,
  plus,
  put,
  putDay,
  replyingOtherwise,
  underCaps,
  withAnyRecord,
} from "./ledger-faults.ts";
import type { Mutant } from "./mutant.ts";

/** Puts a payment in another's place, and moves its money at every level, as a draft would. */
function putPayment(ledger: Ledger, account: Account, payment: StoredPayment): void {
  const { transactionId } = payment.request;
  const open = account.open.get(transactionId);
  if (open === undefined) return;
  const [had, has] = [moneyOf(open.payment), moneyOf(payment)];
  const [spentMc, heldMc] = [has.spentMc - had.spentMc, has.heldMc - had.heldMc];
  const { day, ...usage } = account.usage;
  const dayMc = countedOn(payment, day.date) - countedOn(open.payment, day.date);
  put(ledger, account, {
    open: new Map(account.open).set(transactionId, { ...open, payment }),
    usage: {
      ...usage,
      spentMc: usage.spentMc + spentMc,
      reservedMc: usage.reservedMc + heldMc,
      day: { ...day, amountMc: day.amountMc + dayMc },
    },
  });
  for (const teamId of [account.teamId, null]) addTotals(ledger, teamId, spentMc, heldMc);
}

type Network = CommandOf<"authorize" | "book">;

/** Violation: a payment's books are not what its network has said and asked. */
const keeping = (change: (books: Books, command: Network, known: Books) => Books): LedgerDomain =>
  after(({ command, is, ledger, now, was }) => {
    if ((command.kind !== "book" && command.kind !== "authorize") || is === undefined) return;
    const payment = is.open.get(command.transactionId)?.payment;
    if (payment === undefined || payment.books === null) return;
    const known = was?.open.get(command.transactionId)?.payment.books ?? NO_BOOKS;
    const books = change(payment.books, command, known);
    if (books !== payment.books) putPayment(ledger, is, withBooks(payment, books, now));
  });

const reportsOf = (command: Network): readonly RailBooks[] => (command.kind === "book" ? command.books : []);

const replacing = (books: Books, reports: readonly RailBooks[]): Books => {
  if (reports.length === 0) return books;
  const byId = new Map(books.authorizations.map((each) => [each.authorization, each]));
  for (const report of reports) if (byId.has(report.authorization)) byId.set(report.authorization, report);
  return { ...books, authorizations: [...byId.values()] };
};

/** The newest read of what only rises, of the rest the joined. */
const lastPerField = (known: RailBooks | undefined, report: RailBooks): RailBooks => {
  const { capturedMc, creditedMc, disputedMc, recalledMc } = report;
  return {
    ...(known === undefined ? report : joined(known, report)),
    capturedMc,
    creditedMc,
    disputedMc,
    recalledMc,
  };
};

export const bookMutants: readonly Mutant<LedgerDomain>[] = [
  {
    fault: "a yes to the network is not held until its books show it",
    complaint: "the totals of",
    domain: () => keeping((books) => (books.clearances.length > 0 ? { ...books, clearances: [] } : books)),
  },
  {
    fault: "a yes that never arrived is held for good",
    complaint: "the totals of",
    domain: () =>
      keeping((books, command, known) => {
        const requests = new Map(books.authorizations.map((each) => [each.authorization, each.requests]));
        const given = known.clearances.filter(
          (each) =>
            command.kind === "book" &&
            each.position >= (requests.get(each.authorization) ?? 0) &&
            !books.clearances.some(({ at }) => at === each.at),
        );
        return given.length === 0 ? books : { ...books, clearances: [...books.clearances, ...given] };
      }),
  },
  {
    fault: "the last report wins",
    complaint: "the totals of",
    domain: () => keeping((books, command) => replacing(books, reportsOf(command))),
  },
  {
    fault: "the last report wins in what only rises",
    complaint: "the totals of",
    domain: () =>
      keeping((books, command, known) => {
        const knownById = new Map(known.authorizations.map((each) => [each.authorization, each]));
        return replacing(
          books,
          reportsOf(command).map((report) => lastPerField(knownById.get(report.authorization), report)),
        );
      }),
  },
  {
    fault: "a closed payment is not taken back",
    complaint: "the breaches of",
    domain: () =>
      judging((ledger, command, now) => {
        if (command.kind !== "book" || command.closed === undefined) return judge(ledger, command, now);
        return { kind: "payment", changed: false, payment: command.closed };
      }),
  },
  {
    fault: "a closed payment is taken back as any record has it",
    complaint: "the totals of",
    domain: () =>
      before((ledger, command) => (command.kind === "book" ? withAnyRecord(ledger, command) : command)),
  },
  {
    fault: "what is forced counts on the payment's day",
    complaint: "the day",
    domain: () =>
      after(({ command, is, ledger, was }) => {
        if (command.kind !== "book" || is === undefined) return;
        const { date, amountMc } = is.usage.day;
        const addedIn = (account: Account | undefined): number => {
          const payment = account?.open.get(command.transactionId)?.payment;
          if (payment === undefined || payment.books === null) return 0;
          const { added } = countedIn(payment.books, payment.request.amountMc);
          return added.reduce((sum, { day, mc }) => (day === date ? sum + mc : sum), 0);
        };
        putDay(ledger, is, { amountMc: amountMc - Math.max(0, addedIn(is) - addedIn(was)) });
      }),
  },
  {
    fault: "a refused request ends its payment",
    complaint: "the day",
    domain: () =>
      keeping((books, command) => {
        const known = new Set(books.authorizations.map(({ authorization }) => authorization));
        const refused = reportsOf(command).filter(({ authorization }) => !known.has(authorization));
        return refused.length === 0
          ? books
          : { ...books, authorizations: [...books.authorizations, ...refused] };
      }),
  },
  {
    fault: "an account comes back without its day",
    complaint: "the day",
    domain: () =>
      before((_ledger, command) => {
        if (command.kind !== "book" || command.dropped === undefined) return command;
        return { ...command, dropped: { ...command.dropped, day: { date: "", amountMc: 0, count: 0 } } };
      }),
  },
  {
    fault: "the network's further requests are not put to the caps",
    complaint: "our yes to",
    domain: () => underCaps(["authorize"], () => null),
  },
  {
    fault: "each request of the network is put to the limit per transaction by itself",
    complaint: "our yes to",
    domain: () =>
      judgingAs(["authorize"], ({ open, policy }, command) => {
        const payment = command.kind === "authorize" ? open.get(command.transactionId)?.payment : undefined;
        const usedMc = payment === undefined ? 0 : totalOf(moneyOf(payment));
        const limit = plus(policy.perTransactionLimitCents, usedCents(usedMc));
        return { policy: { ...policy, perTransactionLimitCents: limit } };
      }),
  },
  {
    fault: "a breach is a thousandth of a cent more than was exceeded",
    complaint: "the breaches of",
    domain: () =>
      replyingOtherwise((reply) => {
        if (reply.kind !== "payment" || reply.payment.books === null) return reply;
        const { books } = reply.payment;
        const breaches = books.breaches.map((each) => ({ ...each, overMc: each.overMc + 1 }));
        return { ...reply, payment: { ...reply.payment, books: { ...books, breaches } } };
      }),
  },
];
