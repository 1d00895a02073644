import { setImmediate as breathe } from "node:timers/promises";
import type { ZxcvbnFactory } from "@zxcvbn-ts/core";
import { BoundedWork } from "../lib/bounded-work.ts";

/** zxcvbn's third step: at least 10^8 guesses. With Argon2id in front, a stolen hash is no quick win. */
const LEAST_SCORE = 3;
const LEAST_SCORE_OF_A_PART = 4;

/**
 * Characters scored at a time; a longer text would take more than its share of the process (up to some 60 ms each).
 */
const PART_CHARACTERS = 64;
/** Distance of parts. They overlap, so that what is hard to guess is whole in one of them, wherever it stands. */
const STRIDE_CHARACTERS = 48;
/** Parts that are scored, from the beginning: some 200 ms for the worst password. What stands behind them is not looked at. */
const PARTS_MAX = 3;
/** Spellings like p4ssw0rd that are tried; the default of 100 takes eight times as long for the same verdicts. */
const L33T_SUBSTITUTIONS_MAX = 10;

const SEPARATORS = /[\s@._+-]+/;

/**
 * Scoring of one password at a time. Those that wait are some tenths of a second's work; if all are made to be slow,
 * the last are not begun.
 */
const scoring = new BoundedWork({ atOnceMax: 1, waitingMax: 32, waitMs: 2_000 });

let estimator: Promise<ZxcvbnFactory> | null = null;

/** The lists are large (half a second, some 60 MB): they are loaded when the first password is chosen, not at the start. */
async function load(): Promise<ZxcvbnFactory> {
  const [{ ZxcvbnFactory: Factory }, common, english] = await Promise.all([
    import("@zxcvbn-ts/core"),
    import("@zxcvbn-ts/language-common"),
    import("@zxcvbn-ts/language-en"),
  ]);
  return new Factory({
    dictionary: { ...common.dictionary, ...english.dictionary },
    graphs: common.adjacencyGraphs,
    l33tMaxSubstitutions: L33T_SUBSTITUTIONS_MAX,
  });
}

/**
 * Whether a password is breached, trivial, or made of what everybody knows of the person. A long one is cut,
 * since a text is at least as hard to guess as its hardest part: one hard part excuses the rest, and neither a weak
 * beginning nor a weak end decides. Cutting can split a word and so flatter a part, for which a part must be harder
 * than a whole; and what is only long because it repeats itself is shortened before. Of what is left only the beginning
 * counts: where all of that is weak it is guessable, whatever follows. Throws `TooMuchWork` while too many are being scored.
 */
export async function isGuessable(password: string, aboutThePerson: readonly string[]): Promise<boolean> {
  // The lists load before its turn: no user is refused since they are slow to load.
  const zxcvbn = await (estimator ??= load());
  return scoring.run(async () => {
    const words = wordsOf(aboutThePerson);
    const parts = partsOf(password);
    const least = parts.length === 1 ? LEAST_SCORE : LEAST_SCORE_OF_A_PART;
    for (const part of parts) {
      // Requests that wait are served in between.
      await breathe();
      if (zxcvbn.check(part, words).score >= least) return false;
    }
    return true;
  });
}

/** Returns each text, its words, and the words written together. */
function wordsOf(texts: readonly string[]): string[] {
  const words = texts.flatMap((text) => {
    const own = text.split(SEPARATORS);
    return [text, own.join(""), ...own];
  });
  return [...new Set(words)].filter((word) => word.length > 1);
}

function partsOf(password: string): string[] {
  if (password.length <= PART_CHARACTERS) return [password];
  const characters = Array.from(withoutRepetitions(password));
  const parts: string[] = [];
  for (let start = 0; parts.length < PARTS_MAX; start += STRIDE_CHARACTERS) {
    parts.push(characters.slice(start, start + PART_CHARACTERS).join(""));
    if (start + PART_CHARACTERS >= characters.length) break;
  }
  return parts;
}

/**
 * Shortens what stands three times or more in a row to twice, until nothing does any more: abcabcabc, aaaa, and both.
 */
function withoutRepetitions(text: string): string {
  const shorter = text.replaceAll(/(.{1,64}?)\1{2,}/gsu, "$1$1");
  return shorter.length === text.length ? text : withoutRepetitions(shorter);
}
