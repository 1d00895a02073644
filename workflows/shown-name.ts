/**
 * An agent's name for the Markdown of a workflow's details: as it was chosen, and never a link, an image or a
 * line of its own, nor turned around by invisible characters.
 */
export const shownName = (name: string): string =>
  name
    .replaceAll(/\p{Cf}/gu, "")
    .replaceAll(/\s+/g, " ")
    .trim()
    .replaceAll(/[!-/:-@[-`{-~]/g, "\\$&");
