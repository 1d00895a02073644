import type { Period } from "../../../src/domain/ledger/calendar.ts";
import type { SpendLimit } from "../../../src/domain/ledger/windows.ts";
import type { PaymentModel, Verdict } from "./account-model.ts";
import { MC, moneyOf, wholeCents } from "./account-model.ts";
import type { CountedPart } from "./booked-payment.ts";

/** Windows of spend limits, by the calendar that a project has before it sets one: UTC, Monday, the first. */

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
/** Longest first: of several limits without room the longest is named. */
const LONGEST_FIRST: readonly Period[] = ["year", "quarter", "month", "week", "day"];

/** Start and end of the window that an instant is in. */
export function windowOf(period: Period, at: number): readonly [start: number, end: number] {
  const date = new Date(at);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  const months = { month: 1, quarter: 3, year: 12 } as const;
  if (period === "day" || period === "week") {
    const midnight = Date.UTC(year, month, date.getUTCDate());
    const start = period === "day" ? midnight : midnight - ((date.getUTCDay() + 6) % 7) * DAY;
    return [start, start + (period === "day" ? 1 : 7) * DAY];
  }
  const first = month - (month % months[period]);
  return [Date.UTC(year, first, 1), Date.UTC(year, first + months[period], 1)];
}

/** Full minutes: nothing that was counted is nearer than that to the start of a window. */
export const minuteOf = (at: number): number => at - (at % MINUTE);

/** The parts of a payment's money, by when they count. */
export function partsOf(payment: PaymentModel): readonly CountedPart[] {
  if (payment.books.isBooked) return payment.books.parts;
  const { reservedMc, spentMc } = moneyOf(payment);
  const mc = reservedMc + spentMc;
  return mc === 0 ? [] : [[payment.books.windowAt, mc]];
}

/** The limit without room for so much more; `usedSince` does not count the payment's own hold. */
export function spendVerdict(
  code: string,
  limits: readonly SpendLimit[] | undefined,
  {
    amountMc,
    at,
    usedSince,
  }: {
    readonly amountMc: number;
    readonly at: number;
    readonly usedSince: (since: number) => number;
  },
): Verdict | null {
  for (const period of LONGEST_FIRST) {
    const limit = limits?.find((each) => each.period === period);
    if (limit === undefined) continue;
    const [start, resetsAt] = windowOf(period, at);
    const leftMc = limit.limitCents * MC - usedSince(start);
    if (amountMc <= leftMc) continue;
    const details = { limit: limit.limitCents, remaining: wholeCents(leftMc), resetsAt, period };
    return { code, details };
  }
  return null;
}
