import { expect } from "chai";
import { z } from "zod";
import type { Counts } from "../../src/limits/counts.ts";
import type { Answer } from "../support/api.ts";
import { Api, freshAddress } from "../support/api.ts";
import { type OrganizationLimits, startLastingService, type TestService } from "../support/service.ts";
import { elevate, type World, worldOf } from "../support/world.ts";

const MINUTE_MS = 60_000;

/** A clock that stands still at the beginning of a minute until a test moves it. */
export class FixedClock {
  #now = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;

  readonly read = (): Date => new Date(this.#now);

  advance(ms: number): void {
    this.#now += ms;
  }

  /** To the next minute's beginning. */
  nextMinute(): void {
    this.#now = this.resetSeconds * 1_000;
  }

  /** When the minute at hand ends. */
  get resetSeconds(): number {
    return (Math.floor(this.#now / MINUTE_MS) + 1) * 60;
  }
}

/** Counts of which a test can use up a part beforehand, and that it can start anew. */
export class SpentCounts implements Counts {
  readonly #counts = new Map<string, number>();
  readonly #left = new Map<number, number>();
  forget(): void {
    this.#counts.clear();
    this.#left.clear();
  }

  /** From now on, whoever first meets a limit of this number has `left` of it left, in each minute. */
  leave(left: number, limit: number): void {
    this.#left.set(limit, left);
  }

  add(key: string, points: number, limit: number): Promise<number> {
    const count = this.#count(key, limit) + points;
    this.#counts.set(key, count);
    return Promise.resolve(count);
  }

  read(key: string, limit: number): Promise<number> {
    return Promise.resolve(this.#count(key, limit));
  }

  #count(key: string, limit: number): number {
    return this.#counts.get(key) ?? limit - (this.#left.get(limit) ?? limit);
  }
}

export interface LimitedService {
  readonly clock: FixedClock;
  readonly counts: SpentCounts;
  readonly service: TestService;
}

let limited: Promise<LimitedService> | null = null;

/**
 * The service that the tests of limits share. Its clock stands still, so nothing here ever waits for a minute, and its
 * counts can be used up beforehand, so nothing here asks a hundred times.
 */
export const limitedService = (): Promise<LimitedService> => (limited ??= startLimited());

async function startLimited(): Promise<LimitedService> {
  const [clock, counts] = [new FixedClock(), new SpentCounts()];
  return { clock, counts, service: await startLastingService({ clock: clock.read, counts }) };
}

export const FREE: OrganizationLimits = { plan: "free" };

/** An organization of the test's own, by default on the free plan. */
export const limitedWorld = async (service: TestService, limits = FREE): Promise<World> =>
  worldOf(service, await service.organization(limits));

export interface Shown {
  readonly limit: number;
  readonly remaining: number;
  readonly reset: number;
}

const whole = z.string().regex(/^\d+$/).transform(Number);
const shownSchema = z.object({ limit: whole, remaining: whole, reset: whole });

/** The three headers of an answer, which must be there, once each, and be whole numbers. */
export function shown({ headers }: Pick<Answer, "headers">): Shown {
  return shownSchema.parse({
    limit: headers.get("x-ratelimit-limit"),
    remaining: headers.get("x-ratelimit-remaining"),
    reset: headers.get("x-ratelimit-reset"),
  });
}

const limitedBody = z.strictObject({
  error: z.literal("RATE_LIMITED"),
  message: z.string(),
  retry_after_seconds: z.int().min(1).max(60),
  requestId: z.uuid(),
});

/** A 429 as it must be: body and header say the same number of seconds. Answers them. */
export function expectLimited(answer: Answer): number {
  expect(answer.status, JSON.stringify(answer.body)).to.equal(429);
  const { retry_after_seconds } = limitedBody.parse(answer.body);
  expect(answer.headers.get("retry-after")).to.equal(String(retry_after_seconds));
  shown(answer);
  return retry_after_seconds;
}

/** Answers' statuses, counted. */
export function statuses(answers: readonly Answer[]): Record<number, number> {
  const seen: Record<number, number> = {};
  for (const { status } of answers) seen[status] = (seen[status] ?? 0) + 1;
  return seen;
}

/** All at once. */
export const atOnce = (count: number, ask: (index: number) => Promise<Answer>): Promise<Answer[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => ask(index)));

/** An address as a client of one proxy has it. */
export const from = (address = freshAddress()) => ({ headers: { "x-forwarded-for": address } });

const minted = z.object({ organizationKey: z.object({ id: z.string() }), key: z.string() });

/** A new organization key's value. */
export async function mintKey(
  world: World,
  clock: FixedClock,
  scopes: readonly string[] = ["agents:read", "agents:write"],
): Promise<string> {
  await elevate(world, clock.read());
  const body = { name: "Orchestrator", scopes, binding: { type: "organization" } };
  const answer = await new Api(world.service.baseUrl).call("POST", "/v1/organization-keys", {
    token: world.token,
    body,
  });
  return minted.parse(answer.body).key;
}

const ACCEPT = { accept: "application/json, text/event-stream" };

/** A JSON-RPC request over MCP. */
export const rpc = (
  service: TestService,
  token: string,
  body: unknown,
  { headers } = from(),
): Promise<Answer> =>
  new Api(service.baseUrl).call("POST", "/mcp", { token, body, headers: { ...ACCEPT, ...headers } });

export const message = (method: string, params: object = {}) => ({
  jsonrpc: "2.0",
  id: 1,
  method,
  params,
});

const toolAnswer = z.object({
  result: z.object({
    isError: z.boolean().optional(),
    structuredContent: z.looseObject({
      error: z.string().optional(),
      retry_after_seconds: z.number().optional(),
    }),
    content: z.tuple([z.object({ type: z.literal("text"), text: z.string() })]),
  }),
});

/** What a tool answered: null for a success, else its error's code; `RATE_LIMITED` with a time to wait. */
export async function callTool(
  service: TestService,
  token: string,
  name: string,
  args: object,
): Promise<string | null> {
  const answer = await rpc(service, token, message("tools/call", { name, arguments: args }));
  expect(answer.status, JSON.stringify(answer.body)).to.equal(200);
  const { content, isError, structuredContent } = toolAnswer.parse(answer.body).result;
  expect(JSON.parse(content[0].text)).to.deep.equal(structuredContent);
  expect(isError === true).to.equal(structuredContent.error !== undefined);
  const isLimited = structuredContent.error === "RATE_LIMITED";
  expect(structuredContent.retry_after_seconds !== undefined).to.equal(isLimited);
  if (isLimited) expect(structuredContent.retry_after_seconds).to.be.within(1, 60);
  return structuredContent.error ?? null;
}
