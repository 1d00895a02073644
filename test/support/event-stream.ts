import { randomUUID } from "node:crypto";
import { type StreamEventName, streamEvents } from "../../src/contract/stream.ts";
import { freshAddress } from "./api.ts";
import { until } from "./world.ts";

export interface StreamEvent {
  readonly name: string;
  readonly id: string | null;
  readonly data: unknown;
}

export interface OpenOptions {
  readonly token?: string;
  readonly query?: string;
  readonly lastEventId?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A reader of the stream of changes that holds every event against the contract. */
export class EventReader {
  readonly response: Response;
  readonly events: StreamEvent[] = [];
  /** Resolves once the service has ended the stream, or the line broke. */
  readonly ended: Promise<void>;
  readonly #abort: AbortController;

  private constructor(response: Response, abort: AbortController) {
    this.response = response;
    this.#abort = abort;
    this.ended = this.#read();
  }

  static async open(baseUrl: string, options: OpenOptions = {}): Promise<EventReader> {
    const { headers = {}, lastEventId, query = "", token } = options;
    const abort = new AbortController();
    const response = await fetch(`${baseUrl}/v1/stream${query}`, {
      signal: abort.signal,
      headers: {
        "x-forwarded-for": freshAddress(),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
        ...headers,
      },
    });
    return new EventReader(response, abort);
  }

  /** As the browser would say it. */
  get lastEventId(): string {
    const id = this.events.findLast((event) => event.id !== null)?.id;
    if (id === undefined || id === null) throw new Error(`no id yet, of ${randomUUID()}`);
    return id;
  }

  named(name: string): StreamEvent[] {
    return this.events.filter((event) => event.name === name);
  }

  /** All that was told of a kind, in its order. */
  told<K extends StreamEventName>(name: K): ReturnType<(typeof streamEvents)[K]["parse"]>[];
  told(name: StreamEventName): unknown[] {
    return this.named(name).map(({ data }) => streamEvents[name].parse(data));
  }

  /** The first event that the probe answers something of. */
  async until<T>(what: string, probe: (reader: this) => T | null | undefined): Promise<T> {
    return until(what, () => Promise.resolve(probe(this) ?? null));
  }

  close(): void {
    this.#abort.abort();
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder();
    let rest = "";
    try {
      for await (const chunk of this.response.body ?? []) {
        const blocks = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
        rest = blocks.pop() ?? "";
        for (const block of blocks) this.#take(block);
      }
    } catch {
      // The line broke, by our hand or the service's.
    }
  }

  #take(block: string): void {
    const fields = new Map(
      block.split("\n").map((line) => {
        const colon = line.indexOf(": ");
        return [line.slice(0, colon), line.slice(colon + 2)] as const;
      }),
    );
    const [name, data] = [fields.get("event"), fields.get("data")];
    if (name === undefined || data === undefined) return;
    const parsed: unknown = JSON.parse(data);
    const schema = Object.entries(streamEvents).find(([each]) => each === name)?.[1];
    if (schema === undefined) throw new Error(`the contract has no event ${name}`);
    schema.parse(parsed);
    this.events.push({ name, id: fields.get("id") ?? null, data: parsed });
  }
}
