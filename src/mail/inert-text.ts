const NAME_CHARACTERS_MAX = 100;

/**
 * Prepares text written by others for a mail: on one line, limited, without invisible characters, and without anything
 * that mail programs turn into a link, such as domains and addresses. A middle dot reads the same and is part of
 * neither.
 */
export const inertText = (text: string, charactersMax = NAME_CHARACTERS_MAX): string =>
  Array.from(text.replace(/[\p{C}\p{Z}]+/gu, " ").trim())
    .slice(0, charactersMax)
    .join("")
    .replace(/[.\u3002\uff0e\uff61](?=\S)/gu, "·")
    .replaceAll("/", "∕")
    .replaceAll('"', "'");
