/** Maximum length of a provider's text in logs and failures. */
const TEXT_MAX = 200;
/** Minimum length of a part of an RPC URL that may be a key; shorter parts are names such as `v3`. */
const KEY_MIN = 8;

/** Returns a provider's text in one line, without URLs and without any part of its own URL that may be a key. */
export function plainText(text: string, rpcUrl: string): string {
  const oneLine = text.replaceAll(/\p{Cc}+/gu, " ").replaceAll(/\b[a-z][a-z0-9+.-]*:\/\/\S+/gi, "[url]");
  return keysIn(rpcUrl)
    .reduce((plain, key) => plain.replaceAll(key, "[hidden]"), oneLine)
    .trim()
    .slice(0, TEXT_MAX);
}

function keysIn(rpcUrl: string): readonly string[] {
  const { hostname, password, pathname, searchParams, username } = new URL(rpcUrl);
  const parts = [
    username,
    password,
    ...pathname.split("/"),
    ...searchParams.values(),
    ...hostname.split("."),
  ];
  return parts.flatMap((part) => [part, decoded(part)]).filter(({ length }) => length >= KEY_MIN);
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
