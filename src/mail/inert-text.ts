const NAME_CHARACTERS_MAX = 100;

/**
 * A text by somebody else as a mail shows it: on one line, bounded, without invisible characters, and without anything that a mail
 * program makes a link of, since such programs make links of what looks like a domain or an address. A middle dot reads the same and is
 * part of neither.
 */
export const inertText = (text: string, charactersMax = NAME_CHARACTERS_MAX): string =>
  Array.from(text.replace(/[\p{C}\p{Z}]+/gu, " ").trim())
    .slice(0, charactersMax)
    .join("")
    .replace(/[.\u3002\uff0e\uff61](?=\S)/gu, "·")
    .replaceAll("/", "∕")
    .replaceAll('"', "'");
