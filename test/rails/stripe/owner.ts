import { createServer, type Server } from "node:http";
import type { CardIssuer } from "../../../src/payments/card-issuer.ts";
import type { Incoming } from "../../../src/payments/card-issuer.ts";

/** The owner of cards, as far as a network sees it: answers requests, takes events. */
export class CardOwner {
  readonly #server: Server;
  /** The adapter that reads messages; set before the first one comes. */
  issuer: CardIssuer | null = null;
  /** Null: approves. */
  refusal: string | null = null;
  /** Never answers a request. */
  isSilent = false;
  readonly messages: Incoming[] = [];

  constructor() {
    this.#server = createServer((request, response) => {
      void (async () => {
        const parts: Buffer[] = [];
        for await (const part of request) parts.push(Buffer.from(part));
        const { issuer } = this;
        if (issuer === null) throw new Error("no adapter");
        const headers = { "stripe-signature": String(request.headers["stripe-signature"]) };
        const message = issuer.read({ headers, body: Buffer.concat(parts) }, new Date());
        this.messages.push(message);
        if (this.isSilent && message.kind === "request") return;
        const answer = message.kind === "request" ? issuer.answer(message, this.refusal) : null;
        response.writeHead(message.kind === "forged" ? 401 : 200, answer?.headers ?? {});
        response.end(answer?.body ?? "");
      })();
    });
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    return `http://127.0.0.1:${address.port}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
