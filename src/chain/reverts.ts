import { BaseError, decodeErrorResult, type Hex, isHex } from "viem";

/** JSON-RPC error code of a reverted call. Not all nodes use it. */
const REVERTED = 3;
/** Nodes' messages for a call that ends without success, as opposed to a node's own failure. */
const ENDS_WITHOUT_SUCCESS = /revert|out ?of ?gas|gas required exceeds|invalid opcode|vm execution/i;

/**
 * Returns the contract's message, or the node's, for a call that ended without success; empty if there is none. Null:
 * the error says nothing about the call's end.
 */
export function revertTextOf(error: unknown): string | null {
  if (!(error instanceof BaseError)) return null;
  const isRevert = error.walk((each) => each instanceof Error && "code" in each && each.code === REVERTED);
  if (isRevert === null && !ENDS_WITHOUT_SUCCESS.test(error.details)) return null;
  const data = dataIn(error);
  return (data === null ? null : errorIn(data)) ?? error.details.replace(/^.*?reverted:?\s*/i, "");
}

function dataIn(error: BaseError): Hex | null {
  const found = error.walk((each) => each instanceof Error && "data" in each && isHex(each.data));
  return found !== null && "data" in found && isHex(found.data) && found.data.length > 2 ? found.data : null;
}

/** Returns the text of `Error(string)`, the code of a panic, or the selector of a custom error. */
function errorIn(data: Hex): string {
  try {
    const [value] = decodeErrorResult({ data }).args ?? [];
    return typeof value === "bigint" ? `panic ${String(value)}` : typeof value === "string" ? value : "";
  } catch {
    return `error ${data.slice(0, "0x12345678".length)}`;
  }
}
