import { Amounts, type ReadAmount } from "../../src/client/amounts.ts";

const AMOUNTS = new Amounts();

/** Formats `$1,234.50` in the reader's locale. */
export const money = (cents: number, currency = "USD"): string => AMOUNTS.money(cents, currency);

interface Priced {
  readonly amount: string;
  readonly amountCents: number;
  readonly currency: string;
}

/** Returns the exact amount of a payment, which may have fractions of a cent. */
export const exactMoney = ({ amount, amountCents, currency }: Priced): string =>
  /\.\d{3,}$/.test(amount) ? AMOUNTS.exact(amount, currency) : money(amountCents, currency);

/** Reads an amount that a user has typed, or returns what to ask them. */
export const readAmount = (typed: string): ReadAmount => AMOUNTS.read(typed);

/** Returns cents as text for a field; empty for none. */
export const typedOf = (cents: number | null): string => (cents === null ? "" : AMOUNTS.typed(cents));

const SHORT = new Intl.NumberFormat(undefined, {
  style: "currency",
  currency: "USD",
  notation: "compact",
  maximumFractionDigits: 1,
});

/** Formats `$1.2K`, for axes. */
export const shortMoney = (cents: number): string => SHORT.format(cents / 100);

const NUMBER = new Intl.NumberFormat();
export const number = (value: number): string => NUMBER.format(value);

const PERCENT = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 0 });
export const percent = (ratio: number): string => PERCENT.format(ratio);

const DAY_AND_TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });

/** Formats a time of the API in the reader's time zone. */
export const onTheWall = (iso: string): string => DAY_AND_TIME.format(new Date(iso));
export const dayOf = (iso: string): string => DAY.format(new Date(iso));

const AGO = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const UNITS = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
] as const;
const DAYS_MAX = 7;

/** Formats `3 minutes ago`; a time more than a week ago as its date. */
export function ago(iso: string, now = Date.now()): string {
  const seconds = Math.round((Date.parse(iso) - now) / 1_000);
  if (Math.abs(seconds) > DAYS_MAX * 86_400) return dayOf(iso);
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return AGO.format(Math.trunc(seconds / size), unit);
  }
  return AGO.format(0, "second");
}

/** Formats a remaining time, to the minute, and in the last hour to the second. */
export function timeLeft(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1_000));
  const minutes = Math.floor(seconds / 60);
  if (minutes >= 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min left`;
  return minutes > 0 ? `${minutes} min ${seconds % 60} s left` : `${seconds} s left`;
}

/**
 * Returns an external text with marks that change the writing direction replaced by their names, so that a recipient
 * reads as it is.
 */
export const asWritten = (text: string): string =>
  text.replaceAll(
    /[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (mark) => `[U+${mark.charCodeAt(0).toString(16).toUpperCase()}]`,
  );

/** Returns `Owner` for `owner`. */
export const titled = (word: string): string =>
  word.charAt(0).toUpperCase() + word.slice(1).replaceAll("_", " ");

/** Returns `0x123456…abcdef`. */
export const shortAddress = (address: string): string => `${address.slice(0, 8)}…${address.slice(-6)}`;
