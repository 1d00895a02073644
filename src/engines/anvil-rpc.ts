import { z } from "zod";

const CALL_TIMEOUT_MS = 30_000;

const answerSchema = z.union([
  z.object({ error: z.object({ message: z.string() }) }),
  z.object({ result: z.unknown() }),
]);

/** Calls a JSON-RPC method of the local chain; throws if it cannot be reached, refuses, or takes over 30 s. */
export async function callRpc(
  rpcUrl: string,
  method: string,
  params: readonly unknown[] = [],
  signal?: AbortSignal,
): Promise<unknown> {
  const timeout = AbortSignal.timeout(CALL_TIMEOUT_MS);
  const response = await fetch(rpcUrl, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
  });
  const answer = answerSchema.parse(await response.json());
  if ("error" in answer) throw new Error(`${method}: ${answer.error.message}`);
  return answer.result;
}
