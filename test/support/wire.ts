import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type Answer, freshAddress } from "./api.ts";
import { exchange, type Sent } from "./exchange.ts";

interface Later {
  readonly pauseMs: number;
  readonly bytes: string;
}

/** A request whose body is sent as it is, from an address of its own unless it names one. */
export async function send(baseUrl: string, path: string, request: Sent = {}): Promise<Answer> {
  const headers = { "x-forwarded-for": freshAddress(), ...request.headers };
  const { headers: received, status, text } = await exchange(`${baseUrl}${path}`, { ...request, headers });
  return answerOf(status, received, text);
}

/**
 * Bytes on a socket, for what no HTTP client would send; the whole answer as text. The rest of them, if any, comes so much
 * later.
 */
export async function wire(baseUrl: string, bytes: string, later?: Later): Promise<Answer> {
  const { hostname, port } = new URL(baseUrl);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  let text = "";
  socket.setEncoding("latin1").on("data", (chunk: string) => (text += chunk));
  const ended = once(socket, "close");
  socket.on("error", () => undefined);
  socket.write(bytes, "latin1");
  if (later !== undefined) {
    await sleep(later.pauseMs);
    socket.write(later.bytes, "latin1");
  }
  await ended;
  const [head = "", ...body] = text.split("\r\n\r\n");
  const [status = "", ...fields] = head.split("\r\n");
  const headers = new Headers(
    fields.map((field): [string, string] => {
      const at = field.indexOf(":");
      return [field.slice(0, at), field.slice(at + 1).trim()];
    }),
  );
  return answerOf(Number(status.split(" ")[1]), headers, body.join("\r\n\r\n"));
}

function answerOf(status: number, headers: Headers, text: string): Answer {
  const isJson = headers.get("content-type")?.startsWith("application/json") === true;
  const body: unknown = isJson && text !== "" ? JSON.parse(text) : text;
  return { status, headers, body };
}
