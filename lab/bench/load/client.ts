import { randomUUID } from "node:crypto";
import { Agent, request } from "node:http";
import type { RequestTemplate } from "./messages.ts";
import { REQUEST_MS } from "./messages.ts";

const HOST = "127.0.0.1";

/** Sends requests over a bounded number of connections that stay open. */
export class LoadClient {
  readonly #agent: Agent;
  readonly #port: number;

  constructor(port: number, connections: number) {
    this.#port = port;
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections, maxFreeSockets: connections });
  }

  /** Null for a 2xx, else what went wrong. Never throws. */
  send(template: RequestTemplate): Promise<string | null> {
    const { method = "POST", path } = template;
    const body =
      template.body === null ? "" : JSON.stringify({ idempotencyKey: randomUUID(), ...template.body });
    const headers = {
      ...template.headers,
      "content-length": Buffer.byteLength(body),
      ...(template.body === null ? {} : { "content-type": "application/json" }),
    };
    return new Promise((resolve) => {
      const outgoing = request(
        { agent: this.#agent, host: HOST, port: this.#port, method, path, headers },
        (incoming) => {
          const status = incoming.statusCode ?? 0;
          const ok = status >= 200 && status < 300;
          let text = "";
          if (ok) incoming.resume();
          else incoming.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
          incoming.on("end", () => resolve(ok ? null : `${String(status)} ${text}`));
          incoming.on("error", (error) => resolve(error.message));
        },
      );
      outgoing.setTimeout(REQUEST_MS, () => outgoing.destroy(new Error("no answer in time")));
      outgoing.on("error", (error) => resolve(error.message));
      outgoing.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
