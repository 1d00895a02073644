import { createServer } from "node:http";
import type { Db } from "mongodb";
import { gate } from "../workflows/support/doubles.ts";

/** The steps of one process: what it asks of MongoDB and of the chain, and the answers to that. It can be stopped before any one. */
export class Steps {
  #passed = 0;
  readonly #stop = gate();
  readonly #goOn = gate();

  readonly #stopsAt: number;

  constructor(stopsAt: number) {
    this.#stopsAt = stopsAt;
  }

  /** Resolves once the process is stopped. */
  get stopped(): Promise<unknown> {
    return this.#stop.opened;
  }

  goOn(): void {
    this.#goOn.open();
  }

  /** One step. */
  async pass(): Promise<void> {
    this.#passed += 1;
    if (this.#passed < this.#stopsAt) return;
    // A stopped process does nothing at all: what comes after waits, too.
    if (this.#passed === this.#stopsAt) this.#stop.open();
    await this.#goOn.opened;
  }
}

const EXCHANGES: ReadonlySet<string | symbol> = new Set([
  "bulkWrite",
  "countDocuments",
  "findOne",
  "findOneAndUpdate",
  "insertMany",
  "insertOne",
  "replaceOne",
  "toArray",
  "updateOne",
]);

/** A process's way to MongoDB: a step before each exchange, and one before its answer is heard. */
export const steppedDb = (db: Db, steps: Steps): Db => stepped(db, steps);

function stepped<T extends object>(target: T, steps: Steps): T {
  return new Proxy(target, {
    get(object, name) {
      const value: unknown = Reflect.get(object, name, object);
      if (typeof value !== "function") return value;
      return (...args: readonly unknown[]): unknown => {
        const call = (): unknown => Reflect.apply(value, object, args);
        if (EXCHANGES.has(name)) return exchange(call, steps);
        const made = call();
        return isHandle(made) ? stepped(made, steps) : made;
      };
    },
  });
}

async function exchange(call: () => unknown, steps: Steps): Promise<unknown> {
  await steps.pass();
  const answered = await Promise.allSettled([call()]);
  await steps.pass();
  const [answer] = answered;
  if (answer.status === "rejected") throw answer.reason;
  return answer.value;
}

/** A collection or a cursor. */
const isHandle = (made: unknown): made is object =>
  typeof made === "object" && made !== null && !("then" in made);

export interface SteppedChain {
  readonly url: string;
  close(): Promise<void>;
}

/** A process's way to the chain, in the same steps. */
export async function steppedChain(target: string, steps: Steps): Promise<SteppedChain> {
  const server = createServer((request, response) => {
    void (async () => {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(Buffer.from(part));
      await steps.pass();
      const headers = { "content-type": "application/json" };
      const answered = await fetch(target, { method: "POST", headers, body: Buffer.concat(parts) });
      const text = await answered.text();
      await steps.pass();
      response.writeHead(answered.status, headers).end(text);
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a TCP server has a port");
  return {
    url: `http://127.0.0.1:${String(address.port)}`,
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
