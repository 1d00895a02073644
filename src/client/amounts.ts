/** US-dollar amounts in the notation of a reader's locale, for writing and reading. */

/** A typed amount, or the question to ask the user instead. */
export type ReadAmount =
  { readonly ok: true; readonly cents: number } | { readonly ok: false; readonly problem: string };

/** Marks that control the direction of text, which locales put around amounts. */
const DIRECTION_MARKS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
/** Characters typed instead of the apostrophe by which a locale groups digits. */
const APOSTROPHES = /[\u2018\u2019\u02bc\u2032]/g;
/** Numbering systems whose digits are read in every locale, in addition to the locale's own. */
const NUMBERING_SYSTEMS = ["arab", "arabext", "deva"];

/** Matches digits with the separators of any locale. */
const SEPARATED = /^\d*(?:[ .,'·_٫٬،]\d+)*$/;
/**
 * Matches a text whose last separator may be a decimal sign: it is unique, with at most two significant digits behind.
 */
const WITH_DECIMALS = /^(.*?)([.,·٫،])(\d\d?)0*$/;

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");

/**
 * Removes differences that readers do not see: widths and kinds of spaces, direction marks, kinds of apostrophes, case.
 */
const folded = (text: string): string =>
  text
    .normalize("NFKC")
    .replaceAll(DIRECTION_MARKS, "")
    .replaceAll(APOSTROPHES, "'")
    .replaceAll(/\s/g, " ")
    .toUpperCase();

type Part = Intl.NumberFormatPartTypes;

/** Writes and reads amounts by the rules of one locale; `undefined` is the reader's own. */
export class Amounts {
  readonly #locale: string | undefined;
  readonly #moneys = new Map<string, Intl.NumberFormat>();
  readonly #wholeDollars: Intl.NumberFormat;
  readonly #dollars: Intl.NumberFormat;
  readonly #groupedDollars: Intl.NumberFormat;
  readonly #notations: readonly RegExp[];
  /** ASCII digits, keyed by the characters read as them. */
  readonly #digits: ReadonlyMap<string, string>;
  /** Signs and codes of the currency, longest first. */
  readonly #signs: readonly string[];

  constructor(locale?: string) {
    this.#locale = locale;
    // Some locales write numbers differently from money, and some have digits that not every keyboard has.
    const options = { useGrouping: "always", minimumFractionDigits: 2 } as const;
    const currency = { ...options, style: "currency", currency: "USD" } as const;
    this.#groupedDollars = new Intl.NumberFormat(locale, { ...currency, useGrouping: true });
    this.#dollars = new Intl.NumberFormat(locale, { ...currency, useGrouping: false });
    this.#wholeDollars = new Intl.NumberFormat(locale, {
      ...currency,
      useGrouping: false,
      minimumFractionDigits: 0,
    });
    const formats = [options, currency].flatMap((each) => [
      new Intl.NumberFormat(locale, each),
      new Intl.NumberFormat(locale, { ...each, numberingSystem: "latn" }),
    ]);
    this.#notations = formats.map(notationOf);
    this.#digits = new Map([undefined, ...NUMBERING_SYSTEMS].flatMap((system) => digitsOf(locale, system)));
    const signs = formats.flatMap((format) => partsOf(format, 0, "currency"));
    this.#signs = [...new Set([...signs.map((sign) => folded(sign).trim()), "US$", "USD", "$"])]
      .filter((sign) => sign !== "")
      .toSorted((a, b) => b.length - a.length);
  }

  /** Formats an amount of the API, with up to five decimals: `$0.001`. */
  exact(amount: string, currency = "USD"): string {
    const options = { style: "currency", currency, maximumFractionDigits: 5 } as const;
    return new Intl.NumberFormat(this.#locale, options).format(Number(amount));
  }

  /** Formats cents: `$1,234.50`. */
  money(cents: number, currency = "USD"): string {
    let format = this.#moneys.get(currency);
    if (format === undefined) {
      format = new Intl.NumberFormat(this.#locale, { style: "currency", currency });
      this.#moneys.set(currency, format);
    }
    return format.format(cents / 100);
  }

  /** Formats an amount for an input field: `250`, `1234.50`. */
  typed(cents: number): string {
    return figure(cents % 100 === 0 ? this.#wholeDollars : this.#dollars, cents);
  }

  /** Reads an amount by the locale's rules. Asks about anything else that may be an amount, never guesses. */
  read(typed: string): ReadAmount {
    const text = this.#plain(typed);
    const read = new Set(this.#notations.flatMap((notation) => centsBy(notation, text)));
    const [cents, another] = read;
    if (cents !== undefined && another === undefined) return { ok: true, cents };
    const meant = [...new Set([...read, ...possibleReadings(text)])].toSorted((a, b) => a - b);
    if (meant.length === 0) {
      return { ok: false, problem: `An amount like ${this.typed(25_000)} or ${this.typed(9_950)}.` };
    }
    const readings = meant.map((each) => figure(this.#groupedDollars, each));
    return { ok: false, problem: `Do you mean ${readings.join(" or ")}?` };
  }

  /** Returns a text with ASCII digits and without the currency's sign. */
  #plain(typed: string): string {
    const text = Array.from(
      folded(typed).trim(),
      (character) => this.#digits.get(character) ?? character,
    ).join("");
    const first = this.#signs.find((sign) => text.startsWith(sign));
    if (first !== undefined) return text.slice(first.length).trim();
    const last = this.#signs.find((sign) => text.endsWith(sign));
    return last === undefined ? text : text.slice(0, -last.length).trim();
  }
}

const partsOf = (format: Intl.NumberFormat, value: number, ...types: readonly Part[]): string[] =>
  format.formatToParts(value).flatMap(({ type, value: part }) => (types.includes(type) ? [part] : []));

/** Formats money without its currency sign. */
const figure = (format: Intl.NumberFormat, cents: number): string =>
  partsOf(format, cents / 100, "integer", "group", "decimal", "fraction").join("");

/** Matches one notation of amounts: ungrouped or fully grouped as in the locale, with at most two decimals. */
function notationOf(format: Intl.NumberFormat): RegExp {
  const example = 12_345_678_901.25;
  const [group = "", decimal = ""] = (["group", "decimal"] as const).map((type) =>
    escaped(folded(partsOf(format, example, type)[0] ?? "")),
  );
  const lengths = partsOf(format, example, "integer").map((digits) => Array.from(digits).length);
  const [second = 0, first = 0] = lengths.slice(-2);
  const grouped =
    lengths.length > 1 ? `|[1-9]\\d{0,${second - 1}}(?:${group}\\d{${second}})*${group}\\d{${first}}` : "";
  return new RegExp(`^(?=\\d|${decimal}\\d)(\\d*${grouped})(?:${decimal}(\\d{0,2}))?$`);
}

/** Maps a numbering system's digits to ASCII. */
function digitsOf(locale: string | undefined, numberingSystem: string | undefined): [string, string][] {
  const options = numberingSystem === undefined ? {} : { numberingSystem };
  const format = new Intl.NumberFormat(locale, { ...options, useGrouping: false });
  return Array.from({ length: 10 }, (_, digit) => [format.format(digit), String(digit)]);
}

const centsOf = (whole: string, fraction: string): number[] => {
  const cents = Number(whole.replaceAll(/\D/g, "")) * 100 + Number(fraction.padEnd(2, "0"));
  return Number.isSafeInteger(cents) ? [cents] : [];
};

function centsBy(notation: RegExp, text: string): number[] {
  const [, whole, fraction = ""] = notation.exec(text) ?? [];
  return whole === undefined ? [] : centsOf(whole, fraction);
}

/** Returns a text's possible amounts in any locale: the last separator is the decimal sign, or all are group signs. */
function possibleReadings(text: string): number[] {
  if (text === "" || !SEPARATED.test(text)) return [];
  const [, whole = "", sign = "", fraction = ""] = WITH_DECIMALS.exec(text) ?? [];
  const hasDecimals = sign !== "" && !whole.includes(sign);
  const isGrouped = /^[1-9]/.test(text) && new Set(text.replaceAll(/\d/g, "")).size <= 1;
  return [...(hasDecimals ? centsOf(whole, fraction) : []), ...(isGrouped ? centsOf(text, "") : [])];
}
