/** Maximum length kept. Browsers send about 120 characters. */
const USER_AGENT_CHARACTERS_MAX = 200;

/**
 * Returns the client's User-Agent in printable ASCII, without markup characters and truncated; null if nothing is left.
 */
export function shownUserAgent(header: string | undefined): string | null {
  const plain = (header ?? "").replaceAll(/[^\x20-\x7e]|[<>"]/g, "").trim();
  return plain === "" ? null : plain.slice(0, USER_AGENT_CHARACTERS_MAX);
}
