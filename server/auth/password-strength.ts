import { setImmediate as breathe } from "node:timers/promises";
import type { ZxcvbnFactory } from "@zxcvbn-ts/core";

/** zxcvbn's third step: at least 10^8 guesses. With Argon2id in front, a stolen hash is no quick win. */
const LEAST_SCORE = 3;

/** What is scored at a time; a longer text would take more than its share of the process (about 50 ms each). */
const WINDOW_CHARACTERS = 64;
/** They overlap, so that what is hard to guess is whole in one of them, wherever it stands. */
const STRIDE_CHARACTERS = 48;
/** Spellings like p4ssw0rd that are tried; the default of 100 takes eight times as long for the same verdicts. */
const L33T_SUBSTITUTIONS_MAX = 10;

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
 * Whether a password is breached, trivial, or made of what everybody knows of the person (issue 5). A text is at least
 * as hard to guess as its hardest part, so one hard window excuses the rest, and only a text without any is refused:
 * neither a weak beginning nor a weak end decides.
 */
export async function isGuessable(password: string, aboutThePerson: readonly string[]): Promise<boolean> {
  const zxcvbn = await (estimator ??= load());
  const known = [...new Set(aboutThePerson.flatMap((text) => [text, ...text.split(/[\s@._+-]+/)]))];
  const words = known.filter((word) => word.length > 1);
  for (const part of windowsOf(Array.from(password))) {
    if (zxcvbn.check(part, words).score >= LEAST_SCORE) return false;
    // Requests that wait are served in between.
    await breathe();
  }
  return true;
}

function windowsOf(characters: readonly string[]): string[] {
  const windows: string[] = [];
  for (let start = 0; ; start += STRIDE_CHARACTERS) {
    windows.push(characters.slice(start, start + WINDOW_CHARACTERS).join(""));
    if (start + WINDOW_CHARACTERS >= characters.length) return windows;
  }
}
