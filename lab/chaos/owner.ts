import { setTimeout as sleep } from "node:timers/promises";
import { generateSync } from "otplib";
import { z } from "zod";
import { type Answer, codeOf, type Request, type Service } from "./http.ts";

export const PASSWORD = "correct horse battery staple";

const TRIES_MAX = 60;
const PAUSE_MS = 500;
const STEP_SECONDS = 30;
/** The service takes a code so many steps early, or late. */
const STEPS_APART = 1;
/** Stepping up lasts for 5 minutes; most rounds take less than what is left. */
const STEP_UP_MS = 300_000;
const STEP_UP_AGAIN_MS = 150_000;

const limited = z.object({ retry_after_seconds: z.number().max(600) });
const retryAfterMs = (body: unknown): number => limited.parse(body).retry_after_seconds * 1_000;

const session = z.object({ token: z.string() });
const enrolled = z.object({ secret: z.string() });

export type OwnerRequest = Omit<Request, "token">;

/** The owner of an organization at work: signed in, with a second factor, stepped up as long as it takes. */
export class Owner {
  readonly #service: Service;
  readonly #email: string;
  #token: string | null = null;
  #secret: string | null = null;
  #lastStep = 0;
  #steppedUpAt = -Infinity;
  #renewal: Promise<void> | null = null;

  constructor(service: Service, email: string) {
    this.#service = service;
    this.#email = email;
  }

  /** Once, while nothing disturbs it. */
  async enrol(): Promise<void> {
    await this.#signIn();
    const answer = await this.do("enrolling", { method: "POST", path: "/v1/auth/totp", body: {} });
    this.#secret = enrolled.parse(answer).secret;
    await this.#withCode("confirming the second factor", "/v1/auth/totp/confirm", {});
    await this.freshen();
  }

  /** For the next minutes: a session ends after 15, and stepping up before that. */
  async freshen(): Promise<void> {
    if (performance.now() - this.#steppedUpAt < STEP_UP_AGAIN_MS) return;
    if (this.#steppedUpAt > -Infinity) await this.#signIn();
    await this.#stepUp();
  }

  /** Once, and once more where the session or its stepping up had ended; a missing answer and refusals are answers too. */
  async ask(request: OwnerRequest): Promise<Answer> {
    const answer = await this.#ask(request);
    const isSteppedUp = performance.now() - this.#steppedUpAt < STEP_UP_MS;
    const isOver = answer.status === 401 || (codeOf(answer) === "STEP_UP_REQUIRED" && !isSteppedUp);
    if (!isOver || this.#secret === null) return answer;
    this.#renewal ??= this.#renew().finally(() => {
      this.#renewal = null;
    });
    await this.#renewal;
    return this.#ask(request);
  }

  #ask(request: OwnerRequest): Promise<Answer> {
    return this.#service.ask({ ...request, token: this.#token });
  }

  async #renew(): Promise<void> {
    await this.#signIn();
    await this.#stepUp();
  }

  async #stepUp(): Promise<void> {
    await this.#withCode("stepping up", "/v1/auth/step-up", { method: "totp" });
    this.#steppedUpAt = performance.now();
  }

  /** Until it is done: what is asked for here must be repeatable. */
  async do(what: string, request: OwnerRequest | (() => OwnerRequest)): Promise<unknown> {
    let last = "";
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const answer = await this.ask(typeof request === "function" ? request() : request);
      if (answer.status !== null && answer.status >= 200 && answer.status < 300) return answer.body;
      last = JSON.stringify(answer);
      await sleep(answer.status === 429 ? retryAfterMs(answer.body) : PAUSE_MS);
    }
    throw new Error(`${what} does not succeed while nothing is down: ${last}`);
  }

  async #signIn(): Promise<void> {
    const body = { email: this.#email, password: PASSWORD };
    const path = "/v1/auth/sign-in";
    const signedIn = await (this.#secret === null
      ? this.do("signing in", { method: "POST", path, body })
      : this.#withCode("signing in", path, body));
    this.#token = session.parse(signedIn).token;
  }

  /** A code is good once, and so is the next one at the earliest. */
  async #withCode(what: string, path: string, body: Readonly<Record<string, unknown>>): Promise<unknown> {
    const stepNow = (): number => Math.floor(Date.now() / 1_000 / STEP_SECONDS);
    const step = Math.max(this.#lastStep + 1, stepNow());
    while (step > stepNow() + STEPS_APART) await sleep(PAUSE_MS);
    this.#lastStep = step;
    const code = generateSync({ secret: this.#secret ?? "", epoch: step * STEP_SECONDS });
    const answer = await this.#ask({ method: "POST", path, body: { ...body, code } });
    if (answer.status !== null && answer.status >= 200 && answer.status < 300) return answer.body;
    // Other owners sign in from the same address.
    if (answer.status === 429) await sleep(retryAfterMs(answer.body));
    else if (answer.status !== null && answer.status < 500)
      throw new Error(`${what}: ${JSON.stringify(answer)}`);
    // Whether it was used up is not known.
    return this.#withCode(what, path, body);
  }
}
