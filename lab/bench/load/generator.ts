import type { LoadMeasured } from "../cases.ts";
import { type Role, runRole } from "../processes/role.ts";
import { LoadClient } from "./client.ts";
import type { Load, RequestTemplate } from "./messages.ts";
import { LOAD_REQUESTS_MAX, LOAD_SECONDS_MAX } from "./messages.ts";

/** Each connection sends its next request when the last was answered; all take their turns from one list. */
class LoadRun {
  readonly #load: Load;
  readonly #client: LoadClient;
  readonly #latenciesMs: number[] = [];
  #sent = 0;
  #errors = 0;
  #firstError: string | null = null;

  constructor(load: Load) {
    this.#load = load;
    this.#client = new LoadClient(load.port, load.connections);
  }

  async measure(): Promise<LoadMeasured> {
    const startedAt = performance.now();
    const endsAt = startedAt + Math.min(this.#load.seconds, LOAD_SECONDS_MAX) * 1_000;
    await Promise.all(Array.from({ length: this.#load.connections }, () => this.#connection(endsAt)));
    const seconds = (performance.now() - startedAt) / 1_000;
    this.#client.close();
    return {
      latenciesMs: this.#latenciesMs,
      errors: this.#errors,
      firstError: this.#firstError,
      seconds,
    };
  }

  async #connection(endsAt: number): Promise<void> {
    while (performance.now() < endsAt && this.#sent < LOAD_REQUESTS_MAX) {
      const template = this.#next();
      const sentAt = performance.now();
      const error = await this.#client.send(template);
      this.#latenciesMs.push(performance.now() - sentAt);
      if (error === null) continue;
      this.#errors += 1;
      this.#firstError ??= error;
    }
  }

  #next(): RequestTemplate {
    const { templates } = this.#load;
    const template = templates[this.#sent % templates.length];
    this.#sent += 1;
    if (template === undefined) throw new Error("a load without requests");
    return template;
  }
}

await runRole(async (): Promise<Role> => ({
  port: null,
  answer: (load) => new LoadRun(load as Load).measure(),
  stop: () => Promise.resolve(),
}));
