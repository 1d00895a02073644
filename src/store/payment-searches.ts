import type { Collection, Document } from "mongodb";
import { searchTerms } from "../domain/search-words.ts";
import type { TransactionSnapshot } from "./documents.ts";
import { AMOUNT_INDEX, WORDS_INDEX } from "./newest-first.ts";
import type { Path } from "./newest-reads.ts";

/** Conditions on payments that the lists' indexes don't cover. */
export interface PaymentSearch {
  /** Prefixes of words of the payment. */
  readonly search?: string | undefined;
  readonly minAmountCents?: number | undefined;
  readonly maxAmountCents?: number | undefined;
}

interface Searched {
  readonly where: Document;
  readonly paths: readonly Path[];
}

/** Maximum search terms looked up in the index: the longest, which tend to be the rarest. */
const TERMS_MAX = 3;
/** Maximum words per prefix that are merged newest first. With more, the whole range is read if it is short. */
const WORDS_OF_TERM_MAX = 16;
const LAST_CHARACTER = "\u{10ffff}";

/** Returns a filter on the amount; empty if neither bound is given. */
export const amountsWithin = ({ maxAmountCents: max, minAmountCents: min }: PaymentSearch): Document =>
  min === undefined && max === undefined
    ? {}
    : { amountCents: { $gte: min ?? 0, $lte: max ?? Number.MAX_SAFE_INTEGER } };

/** Returns how to search an organization's payments; null if none can match, undefined if there is no condition. */
export async function searchedBy(
  transactions: Collection<TransactionSnapshot>,
  organizationId: string,
  asked: PaymentSearch,
): Promise<Searched | null | undefined> {
  const terms = searchTerms(asked.search ?? "").toSorted((a, b) => b.length - a.length);
  const amounts = amountsWithin(asked);
  const hasAmount = "amountCents" in amounts;
  if (terms.length === 0 && !hasAmount) return undefined;
  const ofTerms = await Promise.all(
    terms.slice(0, TERMS_MAX).map(async (term) => {
      const words = await wordsOf(transactions, organizationId, term);
      const compared = terms.filter((each) => each !== term).map(beginsAWord);
      const where = { ...amounts, ...(compared.length === 0 ? {} : { $expr: { $and: compared } }) };
      return (
        words && { filter: { organizationId, words }, where, hint: WORDS_INDEX, isByTime: "$in" in words }
      );
    }),
  );
  const paths: Path[] = ofTerms.filter((path) => path !== null);
  if (paths.length < ofTerms.length) return null;
  const ofWords = terms.length === 0 ? {} : { $and: terms.map((term) => ({ words: rangeOf(term) })) };
  if (hasAmount) {
    const { maxAmountCents: max, minAmountCents: min } = asked;
    const isByTime = min !== undefined && min === max;
    const filter = { organizationId, ...(isByTime ? { amountCents: min } : amounts) };
    paths.push({ filter, where: ofWords, hint: AMOUNT_INDEX, isByTime });
  }
  return { where: { ...amounts, ...ofWords }, paths };
}

/** Returns an index condition on the words that start with a term, listed one by one if few; null if there are none. */
async function wordsOf(
  transactions: Collection<TransactionSnapshot>,
  organizationId: string,
  term: string,
): Promise<Document | null> {
  const words: string[] = [];
  while (words.length <= WORDS_OF_TERM_MAX) {
    const last = words.at(-1);
    const from = last === undefined ? { $gte: term } : { $gt: last };
    const filter = { organizationId, words: { $elemMatch: { ...from, $lt: `${term}${LAST_CHARACTER}` } } };
    const [key] = await transactions.find(filter, { hint: WORDS_INDEX, returnKey: true }).limit(1).toArray();
    const next: unknown = Object(key)["words"];
    if (typeof next !== "string") break;
    words.push(next);
  }
  if (words.length > WORDS_OF_TERM_MAX) return rangeOf(term);
  return words.length === 0 ? null : { $in: words };
}

/** Returns a regular expression, for which MongoDB reads the keys of a range and no records. */
const rangeOf = (term: string): Document => ({ $regex: `^${term.replaceAll(".", String.raw`\.`)}` });

/** Returns an expression that uses no index: the index of words serves another term, and holds one word per key. */
const beginsAWord = (term: string): Document => ({
  $anyElementTrue: {
    $map: { input: "$words", in: { $eq: [{ $indexOfCP: ["$$this", { $literal: term }] }, 0] } },
  },
});
