import { expect } from "chai";
import * as fc from "fast-check";
import { SequenceRun } from "./sequences/run.ts";
import { sequences } from "./sequences/workload.ts";
import { shortOrSoak } from "../support/soak.ts";
import { seed } from "../support/seed.ts";

/** How long fresh sequences are tried; a longer run sets more. */
const SECONDS = shortOrSoak(6, 600);
const LAST_SEQUENCE_MS = 300_000;

/** Fixed, so that whether the workload gets everywhere is no matter of luck, or of a slow machine. */
const FIXED_SEED = 20_261_121;
const FIXED_RUNS = 1_000;
const SEEN_MIN = 5;

/** What must come up for the property to mean anything. */
const NOTEWORTHY = [
  "key accepted",
  "key refused",
  "key minted",
  "key revoked",
  "second key refused",
  "no key to revoke",
  "archived",
  "archived before",
  "archived by a machine",
  "archived with payments on hold",
  "refused to a machine, since it was used",
  "MACHINE_ARCHIVE_DENIED",
  "KEY_STILL_DELIVERABLE",
  "KEY_DELIVERY_UNPROVEN",
  "BALANCE_UNVERIFIABLE",
  "proven",
  "not proven",
  "not proven in the window",
  "held",
  "unasked",
  "replayed",
  "approve",
  "approve too late",
  "deny",
  "cancel",
  "expire too late",
  "approved",
  "failed",
  "reversed",
  "paused",
  "resumed",
  "policy changed",
  "stale policy",
  "AGENT_PAUSED",
  "PER_TRANSACTION_LIMIT_EXCEEDED",
  "BUDGET_EXCEEDED",
  "DAILY_SPEND_LIMIT_EXCEEDED",
  "HOURLY_VELOCITY_EXCEEDED",
  "DAILY_VELOCITY_EXCEEDED",
] as const;

describe("an agent, whatever is asked of it, against the book of it", function () {
  this.timeout(SECONDS * 1_000 + LAST_SEQUENCE_MS);

  it(`money, keys, records and events are right after each command (TEST_SEED=${seed})`, () => {
    let commands = 0;
    const property = fc.property(sequences, (sequence) => {
      const run = new SequenceRun(sequence);
      run.run();
      commands += run.commands;
    });
    const numRuns = Number.MAX_SAFE_INTEGER;
    fc.assert(property, { seed, numRuns, interruptAfterTimeLimit: SECONDS * 1_000 });
    process.stdout.write(`      ${commands} commands\n`);
  });

  it("the sequences come to every answer that matters", () => {
    const seen = new Map<string, number>(NOTEWORTHY.map((what) => [what, 0]));
    for (const sequence of fc.sample(sequences, { seed: FIXED_SEED, numRuns: FIXED_RUNS })) {
      const run = new SequenceRun(sequence);
      run.run();
      for (const what of run.tally.keys()) seen.set(what, (seen.get(what) ?? 0) + 1);
    }
    for (const what of NOTEWORTHY) expect(seen.get(what), what).to.be.at.least(SEEN_MIN);
  });
});
