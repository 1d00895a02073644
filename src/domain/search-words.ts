import { comparedName } from "./rules/compared-name.ts";

/**
 * Words by which payments are found. Records and searches are split by the same rules, so that they match in an index.
 */

/** Maximum words of one record: each is an index key, and a long purpose must stay cheap to write. */
const WORDS_MAX = 40;
/** Maximum characters of a word: enough to tell addresses and hashes apart. */
const CHARACTERS_MAX = 32;

const ASCII = /^[\0-\x7f]*$/;

/** Accents of Latin, Greek and Cyrillic letters; other scripts' marks are letters of their own. */
const ACCENTS = /[\u0300-\u036f]/g;
const FINAL_SIGMA = /\u03c2/g;
const GROUPING_COMMA = /(?<=\p{Nd}),(?=\p{Nd}{3}(?!\p{Nd}))/gu;
const WORD = /\p{Nd}+(?:\.\p{Nd}+)+|[\p{L}\p{M}\p{N}]+/gu;

/** Scripts written without spaces. */
const UNSPACED = String.raw`[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]`;
const RUN = new RegExp(`${UNSPACED}+|(?:(?!${UNSPACED}).)+`, "gu");
const STARTS_UNSPACED = new RegExp(`^${UNSPACED}`, "u");

interface Searched {
  readonly amountCents: number;
  readonly onChainTxHash: string | null;
  readonly purpose: string;
  readonly recipient: string;
}

/** Returns the words by which a payment's record is found: of its amount, hash, recipient and purpose. */
export function searchWords({ amountCents, onChainTxHash, purpose, recipient }: Searched): string[] {
  const texts = [(amountCents / 100).toFixed(2), onChainTxHash ?? "", recipient, purpose];
  return [...new Set(texts.flatMap((text) => wordsIn(text, withLast)))].slice(0, WORDS_MAX);
}

/** Returns the prefixes that a search asks for: a payment matches if each is the prefix of one of its words. */
export function searchTerms(text: string): string[] {
  const terms = [...new Set(wordsIn(text, pairsOf))];
  return terms.filter((term) => !terms.some((other) => other !== term && other.startsWith(term)));
}

/** Returns the words of a text. Text without spaces is split where the script changes, and then by `cut`. */
const wordsIn = (text: string, cut: (characters: readonly string[]) => readonly string[]): string[] =>
  (folded(text).match(WORD) ?? []).flatMap((word) =>
    ASCII.test(word)
      ? [word.slice(0, CHARACTERS_MAX)]
      : (word.match(RUN) ?? []).flatMap((run) => {
          const characters = Array.from(run);
          return STARTS_UNSPACED.test(run) ? cut(characters) : [characters.slice(0, CHARACTERS_MAX).join("")];
        }),
  );

/** Returns every pair of neighbouring characters; a single character is returned alone. */
const pairsOf = (characters: readonly string[]): readonly string[] =>
  characters.length < 2
    ? characters
    : characters.slice(1).map((character, index) => `${characters[index] ?? ""}${character}`);

/** Returns all pairs and the last character alone, so that every single character is the prefix of a word. */
const withLast = (characters: readonly string[]): readonly string[] => [
  ...pairsOf(characters),
  ...characters.slice(-1),
];

/** Folds case, accents and compatibility forms. Most texts are ASCII and take the fast path. */
const folded = (text: string): string =>
  (ASCII.test(text) ? text.toLowerCase() : withoutAccents(comparedName(text))).replaceAll(GROUPING_COMMA, "");

const withoutAccents = (text: string): string =>
  text.normalize("NFD").replaceAll(ACCENTS, "").normalize("NFC").replaceAll(FINAL_SIGMA, "\u03c3");
