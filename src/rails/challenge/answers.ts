import type { WholeAnswer } from "../../lib/guarded-fetch/exchange.ts";
import type { ShopAnswer } from "./orders.ts";

/** Hop-by-hop headers, which mean nothing to the agent. */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
]);

/** Returns a shop's answer as given to the agent. A body that is not UTF-8 is base64. */
export function answerIn({ body, headers, httpStatus, isCut }: WholeAnswer): ShopAnswer {
  const shown = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined || OF_CONNECTION.has(name)
      ? []
      : [[name, typeof value === "string" ? value : value.join(", ")] as const],
  );
  const text = textIn(body, isCut);
  return {
    httpStatus,
    headers: Object.fromEntries(shown),
    body: text ?? body.toString("base64"),
    bodyEncoding: text === null ? "base64" : "utf8",
    isCut,
  };
}

/** Returns the body as text, without a character that the size limit cut; null if the body is not UTF-8. */
function textIn(body: Buffer, isCut: boolean): string | null {
  try {
    return new TextDecoder("utf8", { fatal: true, ignoreBOM: true }).decode(body, { stream: isCut });
  } catch {
    return null;
  }
}
