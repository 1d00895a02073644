import type { WholeAnswer } from "../../lib/guarded-fetch/exchange.ts";
import type { ShopAnswer } from "./orders.ts";

/** Headers of the connection, which mean nothing to the agent. */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
]);

/** A shop's answer as the agent is given it: a body that is no UTF-8 in base64. */
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

/** Null: it is no UTF-8. A character that the bound has cut is left out. */
function textIn(body: Buffer, isCut: boolean): string | null {
  try {
    return new TextDecoder("utf8", { fatal: true, ignoreBOM: true }).decode(body, { stream: isCut });
  } catch {
    return null;
  }
}
