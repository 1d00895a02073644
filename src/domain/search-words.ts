import { comparedName } from "./rules/compared-name.ts";

/** Words by which payments are found. Records and searches are split by the same rules, so that they meet in an index. */

/** Words of one record: each is a key of the index, so a long purpose must not make a payment expensive to write. */
const WORDS_MAX = 40;
/** Characters of a word that count: enough to tell addresses and hashes apart. */
const CHARACTERS_MAX = 32;

/** Accents of Latin, Greek and Cyrillic letters; marks of other scripts are letters of their own. */
const ACCENTS = /[\u0300-\u036f]/g;
const FINAL_SIGMA = /\u03c2/g;
const GROUPING_COMMA = /(?<=\p{Nd}),(?=\p{Nd}{3}(?!\p{Nd}))/gu;
const WORD = /\p{Nd}+(?:\.\p{Nd}+)+|[\p{L}\p{M}\p{N}]+/gu;

/** Scripts that are written without spaces. */
const UNSPACED = String.raw`[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]`;
const RUN = new RegExp(`${UNSPACED}+|(?:(?!${UNSPACED}).)+`, "gu");
const STARTS_UNSPACED = new RegExp(`^${UNSPACED}`, "u");

interface Searched {
  readonly amountCents: number;
  readonly onChainTxHash: string | null;
  readonly purpose: string;
  readonly recipient: string;
}

/** The words that a payment's record is found by: its amount, hash, recipient and purpose. */
export function searchWords({ amountCents, onChainTxHash, purpose, recipient }: Searched): string[] {
  const texts = [(amountCents / 100).toFixed(2), onChainTxHash ?? "", recipient, purpose];
  const words = texts.flatMap(runsOf).flatMap((run) => {
    const pairs = pairsOf(run);
    const last = run.at(-1);
    // The last character alone, so that a search for any one character finds it as the beginning of a word.
    return pairs.length === 0 || last === undefined ? [run.join("")] : [...pairs, last];
  });
  return [...new Set(words)].slice(0, WORDS_MAX);
}

/** The beginnings of words that a search asks for: a payment fits if each of them begins one of its words. */
export function searchTerms(text: string): string[] {
  const terms = runsOf(text).flatMap((run) => {
    const pairs = pairsOf(run);
    return pairs.length === 0 ? [run.join("")] : pairs;
  });
  const distinct = [...new Set(terms)];
  return distinct.filter((term) => !distinct.some((other) => other !== term && other.startsWith(term)));
}

/** Words as characters; what is written without spaces is cut where another script begins. */
const runsOf = (text: string): string[][] =>
  (folded(text).match(WORD) ?? []).flatMap((word) =>
    (word.match(RUN) ?? []).map((run) =>
      Array.from(run).slice(0, STARTS_UNSPACED.test(run) ? undefined : CHARACTERS_MAX),
    ),
  );

/** Every two neighbouring characters of a run without spaces; none of other words. */
const pairsOf = (run: readonly string[]): string[] =>
  STARTS_UNSPACED.test(run[0] ?? "")
    ? run.slice(1).map((character, index) => `${run[index] ?? ""}${character}`)
    : [];

const folded = (text: string): string =>
  comparedName(text)
    .normalize("NFD")
    .replaceAll(ACCENTS, "")
    .normalize("NFC")
    .replaceAll(FINAL_SIGMA, "\u03c3")
    .replaceAll(GROUPING_COMMA, "");
