import type { Collection, Document, FindCursor } from "mongodb";
import { type Calendar, type Period, PERIODS, windowBounds } from "../domain/ledger/calendar.ts";
import { RAILS } from "../domain/ledger/payment.ts";
import { MC_PER_CENT } from "../domain/money.ts";
import type { PastPayment } from "../domain/simulation/past-payment.ts";
import type { EarlierAmounts } from "../domain/simulation/simulated.ts";
import type { TransactionDocument } from "../store/documents.ts";
import { recordedBooks } from "../store/stored-books.ts";

/** Maximum payments judged in one simulation, and maximum earlier ones that only count. */
export const PAYMENTS_MAX = 100_000;
/** Timeout of the database's sum of earlier amounts. */
const SUM_TIMEOUT_MS = 20_000;

const PAST_FIELDS = {
  agentId: 1,
  teamId: 1,
  sequence: 1,
  createdAt: 1,
  rail: 1,
  recipient: 1,
  comparedRecipient: 1,
  resource: 1,
  host: 1,
  merchantCategory: 1,
  status: 1,
  denialCode: 1,
  deniedAt: 1,
  approvalId: 1,
  revision: 1,
  "ledgerState.amountMc": 1,
  "ledgerState.books": 1,
  "ledgerState.fingerprint": 1,
  "ledgerState.windowAt": 1,
} as const;

/** Amounts by the id of an agent, a team or the project. */
export type Earlier = ReadonlyMap<string, EarlierAmounts>;

/** The payments to read: those of the target, or all under a cap or limit that applies to the target. */
export interface Reach {
  readonly level: "agent" | "team" | "project";
  readonly filter: Document;
}

/** Start of a range; later than requested if the range has too many payments. */
export interface Start {
  readonly at: Date;
  readonly isCut: boolean;
}

export class PastRecords {
  readonly #transactions: Collection<TransactionDocument>;

  constructor(transactions: Collection<TransactionDocument>) {
    this.#transactions = transactions;
  }

  /** Returns payments, oldest first. */
  within(filter: Document, batchSize: number): FindCursor<PastRecord> {
    return this.#transactions
      .find<PastRecord>(filter, { projection: PAST_FIELDS, batchSize })
      .sort({ createdAt: 1, _id: 1 });
  }

  async startOf({ filter }: Reach, from: Date, until: Date): Promise<Start> {
    const [first] = await this.#transactions
      .find({ ...filter, createdAt: { $gte: from, $lt: until } }, { projection: { _id: 0, createdAt: 1 } })
      .sort({ createdAt: -1, _id: -1 })
      .skip(PAYMENTS_MAX)
      .limit(1)
      .toArray();
    return first === undefined
      ? { at: from, isCut: false }
      : { at: new Date(first.createdAt.getTime() + 1), isCut: true };
  }

  /** Sums, in the database, all earlier amounts that still count. */
  async earlier({ filter, level }: Reach, until: Date, calendar: Calendar): Promise<Earlier> {
    const { starts } = windowBounds(calendar, until.getTime());
    const counted = { $in: ["approved", "reversed", "pending"] };
    const sums = this.#transactions.aggregate<EarlierSum>(
      [
        { $match: { ...filter, status: counted, createdAt: { $lt: until } } },
        {
          $project: {
            agentId: 1,
            teamId: 1,
            projectId: 1,
            cents: { $add: ["$amountCents", { $sum: "$moved.cents" }] },
            at: { $ifNull: ["$ledgerState.windowAt", "$createdAt"] },
          },
        },
        {
          $group: {
            _id: { agent: "$agentId", team: "$teamId", project: "$projectId" },
            cents: { $sum: "$cents" },
            ...Object.fromEntries(
              PERIODS.map((period, place) => [
                period,
                { $sum: { $cond: [{ $gte: ["$at", new Date(starts[place] ?? 0)] }, "$cents", 0] } },
              ]),
            ),
          },
        },
      ],
      { maxTimeMS: SUM_TIMEOUT_MS },
    );
    const earlier = new Map<string, EarlierAmounts>();
    for await (const { _id, cents, ...windows } of sums) {
      const mc = PERIODS.map((period) => Math.round(windows[period] * MC_PER_CENT));
      const ids = level === "agent" ? [_id.agent] : [_id.agent, _id.team, _id.project];
      for (const id of ids) {
        const { mc: others, spentMc } = earlier.get(id) ?? NOTHING;
        earlier.set(id, {
          spentMc: spentMc + Math.round(cents * MC_PER_CENT),
          mc: mc.map((amount, place) => amount + (others[place] ?? 0)),
        });
      }
    }
    return earlier;
  }

  /** Returns those payees (see `payeesOf`) of the payments that their agents had paid before. */
  async payeesBefore(before: Date, payments: readonly PastRecord[]): Promise<readonly string[]> {
    const transactions = this.#transactions;
    const settled = {
      agentId: { $in: [...new Set(payments.map(({ agentId }) => agentId))] },
      status: { $in: ["approved", "reversed"] },
      createdAt: { $lt: before },
    };
    const names = [...new Set(payments.map(({ comparedRecipient }) => comparedRecipient))];
    const hosts = [...new Set(payments.flatMap(({ host }) => host ?? []))];
    const found = await Promise.all([
      transactions
        .aggregate<{ _id: string }>([
          { $match: { ...settled, rail: { $in: [...RAILS] }, comparedRecipient: { $in: names } } },
          payee("$agentId", " ", "$rail", " ", "$comparedRecipient"),
        ])
        .toArray(),
      hosts.length === 0
        ? []
        : transactions
            .aggregate<{ _id: string }>([
              { $match: { ...settled, host: { $in: hosts } } },
              payee("$agentId", " host:", "$host"),
            ])
            .toArray(),
    ]);
    return found.flat().map(({ _id }) => _id);
  }
}

interface EarlierSum extends Readonly<Record<Period, number>> {
  readonly _id: { readonly agent: string; readonly team: string; readonly project: string };
  readonly cents: number;
}

export const NOTHING: EarlierAmounts = { spentMc: 0, mc: PERIODS.map(() => 0) };

export type PastRecord = Pick<
  TransactionDocument,
  Exclude<keyof typeof PAST_FIELDS, `ledgerState.${string}`> | "_id" | "ledgerState"
>;

export const pastPaymentOf = (record: PastRecord): PastPayment => {
  const { approvalId, ledgerState, resource } = record;
  return {
    transactionId: record._id,
    agentId: record.agentId,
    sequence: record.sequence,
    createdAt: record.createdAt.getTime(),
    rail: record.rail,
    amountMc: ledgerState.amountMc,
    recipient: record.recipient,
    comparedName: record.comparedRecipient,
    ...(resource === undefined ? {} : { resource }),
    merchantCategory: record.merchantCategory,
    fingerprint: ledgerState.fingerprint,
    status: record.status,
    denialCode: record.denialCode,
    deniedAt: record.deniedAt?.getTime() ?? null,
    wasHeld: approvalId !== null,
    windowAt: ledgerState.windowAt?.getTime() ?? null,
    books: recordedBooks(ledgerState),
    revision: record.revision,
  };
};

const payee = (...fields: string[]) => ({ $group: { _id: { $concat: fields } } });
