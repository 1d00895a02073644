/**
 * Returns an agent's name for the Markdown of a workflow's details: as it was chosen, but never a link, an image or a
 * separate line, nor reversed by invisible characters.
 */
export const shownName = (name: string): string =>
  name
    .replaceAll(/\p{Cf}/gu, "")
    .replaceAll(/\s+/g, " ")
    .trim()
    .replaceAll(/[!-/:-@[-`{-~]/g, "\\$&");
