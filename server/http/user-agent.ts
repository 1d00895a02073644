/** The longest that is kept: those of browsers have about 120 characters. */
const USER_AGENT_CHARACTERS_MAX = 200;

/**
 * Returns the client's name of itself in printable ASCII, without characters of markup, cut to a line or two. Null:
 * nothing is left.
 */
export function shownUserAgent(header: string | undefined): string | null {
  const plain = (header ?? "").replaceAll(/[^\x20-\x7e]|[<>"]/g, "").trim();
  return plain === "" ? null : plain.slice(0, USER_AGENT_CHARACTERS_MAX);
}
