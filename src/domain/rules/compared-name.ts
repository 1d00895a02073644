/** Names of recipients, as compared by rules. */

/** Soft hyphens, zero-width and variation characters, which are invisible. */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}/gu;
const SPACES = /\p{White_Space}+/gu;

/**
 * Returns the form in which recipients are compared, so that spelling does not evade a rule: NFKC, case-insensitive in
 * every script, without invisible characters, with single spaces and none at the ends. Upper-casing precedes the final
 * lower-casing, since some letters have several lower-case forms; lower-casing comes first, since one capital (ẞ)
 * becomes such a letter.
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

/** Maximum UTF-16 units of a name after folding of compatibility forms; four per character. */
export const FOLDED_NAME_MAX = 800;

/**
 * Whether a name stays short after folding of compatibility forms: a single character can become 18, which each
 * comparison would go through. No name that people write comes near the bound.
 */
export const foldsShort = (name: string): boolean =>
  name.length <= FOLDED_NAME_MAX && name.normalize("NFKC").length <= FOLDED_NAME_MAX;
