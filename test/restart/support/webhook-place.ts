import { expect } from "chai";
import { Api } from "../../support/api.ts";
import type { Child } from "../../support/process.ts";
import { Roles } from "./roles.ts";

/** One server and one worker, which are killed and started again while clients and receivers go on. */
export class WebhookPlace {
  readonly #roles: Roles;
  #worker: Child | null = null;
  #server: Child | null = null;
  #api: Promise<Api>;
  #baseUrl = "";
  #kills = 0;

  private constructor(env: NodeJS.ProcessEnv) {
    this.#roles = new Roles(env);
    this.#api = this.#startServer();
    // The reader of the report is told.
    this.#api.catch(() => undefined);
  }

  static async start(env: NodeJS.ProcessEnv): Promise<WebhookPlace> {
    const place = new WebhookPlace(env);
    await Promise.all([place.api, place.#startWorker()]);
    return place;
  }

  /** The server that there is, or the next one as soon as it is reached. */
  get api(): Promise<Api> {
    return this.#api;
  }

  get baseUrl(): string {
    return this.#baseUrl;
  }

  get kills(): number {
    return this.#kills;
  }

  async killWorker(): Promise<void> {
    this.#kills += 1;
    await this.#worker?.end("SIGKILL");
    await this.#startWorker();
  }

  async killServer(): Promise<void> {
    this.#kills += 1;
    await this.#server?.end("SIGKILL");
    await this.#nextServer();
  }

  async restartServer(): Promise<void> {
    expect(await this.#server?.end("SIGTERM")).to.deep.equal({ code: 0, signal: null });
    await this.#nextServer();
  }

  stop(): Promise<void> {
    return this.#roles.stop();
  }

  async #nextServer(): Promise<void> {
    this.#api = this.#startServer();
    await this.#api;
  }

  async #startServer(): Promise<Api> {
    const { baseUrl, child } = await this.#roles.startServer();
    this.#server = child;
    this.#baseUrl = baseUrl;
    return new Api(baseUrl);
  }

  async #startWorker(): Promise<void> {
    this.#worker = await this.#roles.startWorker();
  }
}
