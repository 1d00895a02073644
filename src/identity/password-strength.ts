import { setImmediate as breathe } from "node:timers/promises";
import type { ZxcvbnFactory } from "@zxcvbn-ts/core";
import { BoundedWork } from "../lib/bounded-work.ts";

/** The third level of zxcvbn: at least 10^8 guesses. Behind Argon2id, cracking a stolen hash is slow. */
const LEAST_SCORE = 3;
const LEAST_SCORE_OF_A_PART = 4;

/** Characters scored at a time. A longer text would block the process for too long; this takes up to about 60 ms. */
const PART_CHARACTERS = 64;
/**
 * Distance between parts. Parts overlap, so that a hard-to-guess passage is whole in one of them, wherever it stands.
 */
const STRIDE_CHARACTERS = 48;
/** Maximum parts scored, from the beginning: about 200 ms for the worst password. The rest is not scored. */
const PARTS_MAX = 3;
/** Spellings like p4ssw0rd that are tried. The default of 100 takes eight times as long for the same verdicts. */
const L33T_SUBSTITUTIONS_MAX = 10;

const SEPARATORS = /[\s@._+-]+/;

/** Scores one password at a time. A full queue is some tenths of a second's work; of slow ones the last are refused. */
const scoring = new BoundedWork({ atOnceMax: 1, waitingMax: 32, waitMs: 2_000 });

let estimator: Promise<ZxcvbnFactory> | null = null;

/** Loads the large word lists (half a second, about 60 MB) with the first choice of a password, not at the start. */
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
 * Whether a password is breached, trivial, or made of widely known facts about the person. Long passwords are scored in
 * parts, since a text is at least as hard to guess as its hardest part: one hard part suffices, and neither a weak
 * beginning nor a weak end decides. Cutting can split a word and so flatter a part, so a part must be harder than a
 * whole; repetitions are shortened first. Of the rest only the beginning counts: if all of it is weak, the password
 * counts as guessable, whatever follows. Throws `TooMuchWork` while too many passwords are being scored.
 */
export async function isGuessable(password: string, aboutThePerson: readonly string[]): Promise<boolean> {
  // The lists load before the password's turn, so that nobody is refused because of slow loading.
  const zxcvbn = await (estimator ??= load());
  return scoring.run(async () => {
    const words = wordsOf(aboutThePerson);
    const parts = partsOf(password);
    const least = parts.length === 1 ? LEAST_SCORE : LEAST_SCORE_OF_A_PART;
    for (const part of parts) {
      // Lets waiting requests be served between parts.
      await breathe();
      if (zxcvbn.check(part, words).score >= least) return false;
    }
    return true;
  });
}

/** Returns each text, its words, and the words joined together. */
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

/** Shortens runs of three or more repetitions to two, until none is left: abcabcabc, aaaa, and combinations. */
function withoutRepetitions(text: string): string {
  const shorter = text.replaceAll(/(.{1,64}?)\1{2,}/gsu, "$1$1");
  return shorter.length === text.length ? text : withoutRepetitions(shorter);
}
