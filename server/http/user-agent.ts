/** The longest that is kept: those of browsers have about 120 characters. */
const USER_AGENT_CHARACTERS_MAX = 200;

/**
 * What a client calls itself, as it may be kept and shown: printable ASCII without what begins a tag or ends an attribute,
 * and not longer than a line or two. Null: nothing is left.
 */
export function shownUserAgent(header: string | undefined): string | null {
  const plain = (header ?? "").replaceAll(/[^\x20-\x7e]|[<>"]/g, "").trim();
  return plain === "" ? null : plain.slice(0, USER_AGENT_CHARACTERS_MAX);
}
