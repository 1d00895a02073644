/** Names of recipients, as rules compare them. */

/** Soft hyphens, zero-width and variation characters: invisible. */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}/gu;
const SPACES = /\p{White_Space}+/gu;

/**
 * What recipients are compared by, so that a rule about one is not evaded by how its name is written: compatibility forms
 * (NFKC), letters without their case in every script, no invisible characters, one space wherever there are some, none at
 * the ends. Through upper case first, since some letters have more than one lower case, or more than one letter for it, and
 * through lower case before, since one capital becomes such a letter (ẞ).
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
