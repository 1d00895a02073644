import { traced } from "../../src/lib/tracing.ts";
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { ForwardSeals, OpenedCommands } from "../../src/actors/forwarding.ts";
import { BEAT_MS, FORWARD_PATH } from "../../src/actors/ledger-peers.ts";
import type { Ledgers } from "../../src/actors/ledgers.ts";
import type { Logger } from "../../src/lib/logger.ts";

/** Maximum size of a whole sealed update. */
const MAX_BODY_BYTES = 2 * 1024 * 1024;

export interface ForwardedCommandsDependencies {
  readonly ledgers: Pick<Ledgers, "accept">;
  readonly seals: ForwardSeals;
  /** Id to which other servers seal commands for this one. */
  readonly serverId: string;
  readonly logger: Logger;
}

/** Serves the internal port: accepts commands that other servers forward, and nothing else. */
export function forwardedCommands(dependencies: ForwardedCommandsDependencies): RequestListener {
  const { ledgers, logger, seals, serverId } = dependencies;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== "POST" || request.url !== FORWARD_PATH) return end(response, 404);
    const body = await bodyOf(request);
    if (body === null) return end(response, 413);
    let opened: OpenedCommands;
    try {
      opened = seals.openCommands(serverId, body);
    } catch (err) {
      logger.warn({ err, address: request.socket.remoteAddress }, "forwarded commands were refused");
      return end(response, 403);
    }
    response.writeHead(200, { "content-type": "text/plain" });
    // The beats distinguish a busy server from one that hangs.
    const beat = setInterval(() => response.write(" "), BEAT_MS);
    try {
      const span = { kind: "server", causedBy: request.headers } as const;
      const accepted = await traced("forwarded commands", span, () => ledgers.accept(opened));
      response.end(seals.sealAnswer(opened.nonce, accepted));
    } finally {
      clearInterval(beat);
    }
  }

  return (request, response) => {
    answer(request, response).catch((err: unknown) => {
      logger.error({ err }, "forwarded commands failed unexpectedly");
      response.destroy();
    });
  };
}

function end(response: ServerResponse, status: number): void {
  response.writeHead(status, { connection: "close" });
  response.end();
}

/** Returns the body; null if it is too long. */
async function bodyOf(request: IncomingMessage): Promise<string | null> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request) {
    const read = Buffer.from(part);
    bytes += read.length;
    if (bytes > MAX_BODY_BYTES) return null;
    parts.push(read);
  }
  return Buffer.concat(parts).toString("utf8");
}
