/** Names of recipients, as rules compare them. */

/** Soft hyphens, zero-width and variation characters: invisible. */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}/gu;
const SPACES = /\p{White_Space}+/gu;

/**
 * Returns the form by which recipients are compared, so that spelling does not evade a rule: NFKC, no case in any
 * script, no invisible characters, single spaces, none at the ends. Upper case comes before the final lower case,
 * since some letters have several lower-case forms; lower case comes first, since one capital becomes such a letter
 * (ẞ).
 */
export const comparedName = (recipient: string): string =>
  recipient
    .normalize("NFKC")
    .replaceAll(INVISIBLE, "")
    .toLowerCase()
    .toUpperCase()
    .toLowerCase()
    .normalize("NFKC")
    .replaceAll(SPACES, " ")
    .trim();

/** The most UTF-16 units that a name may have once its compatibility forms are folded; four for each of its characters. */
export const FOLDED_NAME_MAX = 800;

/**
 * Whether a name stays short when its compatibility forms are folded: a single character can become 18, and whatever
 * compares names would work by what they become. No name that people write comes near the bound.
 */
export const foldsShort = (name: string): boolean =>
  name.length <= FOLDED_NAME_MAX && name.normalize("NFKC").length <= FOLDED_NAME_MAX;
