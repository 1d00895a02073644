import type { Collection, Document } from "mongodb";
import { searchTerms } from "../domain/search-words.ts";
import type { TransactionSnapshot } from "./documents.ts";
import { AMOUNT_INDEX, WORDS_INDEX } from "./newest-first.ts";
import type { Path } from "./newest-reads.ts";

/** Conditions on payments that lists alone have no index for. */
export interface PaymentSearch {
  /** Beginnings of words of the payment. */
  readonly search?: string | undefined;
  readonly minAmountCents?: number | undefined;
  readonly maxAmountCents?: number | undefined;
}

interface Searched {
  readonly where: Document;
  readonly paths: readonly Path[];
}

/** Terms of a search that are looked up in the index: the longest, which tend to be the rarest. */
const TERMS_MAX = 3;
/** Words with one beginning that are merged newest first. Of more, the whole range is read if it is short. */
const WORDS_OF_TERM_MAX = 16;
const LAST_CHARACTER = "\u{10ffff}";

/** A filter on the amount; empty: neither bound is given. */
export const amountsWithin = ({ maxAmountCents: max, minAmountCents: min }: PaymentSearch): Document =>
  min === undefined && max === undefined
    ? {}
    : { amountCents: { $gte: min ?? 0, $lte: max ?? Number.MAX_SAFE_INTEGER } };

/** Returns how an organization's payments are searched; null: none can fit; undefined: nothing is asked for. */
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

/** A condition on the index for all words that a term begins: one by one where there are few. Null: there are none. */
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

/** As a regular expression, for which MongoDB reads the keys of a range and no record. */
const rangeOf = (term: string): Document => ({ $regex: `^${term.replaceAll(".", String.raw`\.`)}` });

/** As an expression, which uses no index: that of the words is used for another term, and holds a word at a time. */
const beginsAWord = (term: string): Document => ({
  $anyElementTrue: {
    $map: { input: "$words", in: { $eq: [{ $indexOfCP: ["$$this", { $literal: term }] }, 0] } },
  },
});
