import { expect } from "chai";
import { pauseBefore } from "../../src/client/retries.ts";
import type { Refused } from "../../src/client/types.ts";

type Case = readonly [
  code: Refused["code"],
  status: number | null,
  reads: boolean,
  creates: boolean,
  else_: boolean,
];

/** Whether a call is sent again after this refusal: one that reads, a create with its key, anything else. */
const CASES: readonly Case[] = [
  ["NO_ANSWER", null, true, true, false],
  ["UNREADABLE", 502, true, true, false],
  ["INTERNAL", 500, true, true, false],
  ["SERVICE_UNAVAILABLE", 503, true, true, false],
  ["CREATE_RETRYABLE", 503, true, true, false],
  ["REQUEST_IN_PROGRESS", 409, false, true, false],
  ["ORG_NOT_READY", 409, false, true, false],
  ["RATE_LIMITED", 429, true, true, true],
  ["DAILY_CREATE_LIMIT_REACHED", 429, false, false, false],
  ["IDEMPOTENCY_KEY_REUSED", 422, false, false, false],
  ["VERSION_CONFLICT", 409, false, false, false],
  ["UNAUTHORIZED", 401, false, false, false],
  ["VALIDATION_FAILED", 400, false, false, false],
];

const limited = (retryAfterSeconds: number | null) =>
  ({ code: "RATE_LIMITED", status: 429, retryAfterSeconds }) as const;

const after = (seconds: number | null, tries: number) =>
  pauseBefore({ method: "POST" }, false, limited(seconds), tries);

describe("the client's retries", () => {
  it("send again what may be sent again, by the table of the replay rules", () => {
    for (const [code, status, reads, creates, others] of CASES) {
      const refused = { code, status, retryAfterSeconds: null };
      const again = (method: "GET" | "POST", hasKey: boolean) =>
        pauseBefore({ method }, hasKey, refused, 1) !== null;
      expect([again("GET", false), again("POST", true), again("POST", false)], code).to.deep.equal([
        reads,
        creates,
        others,
      ]);
    }
  });

  it("wait as long as the service says, twice as long each time, and give up at their bounds", () => {
    expect([after(null, 1), after(null, 2), after(null, 3)]).to.deep.equal([250, 500, 1_000]);
    expect([after(7, 1), after(61, 1), after(null, 6)]).to.deep.equal([7_000, null, null]);
  });
});
