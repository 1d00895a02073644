import { expect } from "chai";
import { RetryTurns } from "../../src/lib/retry-turns.ts";
import { tally, times } from "../support/world.ts";

const BOUNDS = { firstMs: 10_000, lastMs: 60_000, stepMs: 100 };

/** Turns at an instant that the test moves. */
function turnsAt(now: { ms: number }) {
  const turns = new RetryTurns(BOUNDS, () => now.ms);
  return (name = "one") => turns.nextSeconds(name);
}

describe("turns of refused callers", () => {
  it("spread those refused at once from the shortest pause, and a crowd over the last turns", () => {
    const next = turnsAt({ ms: 0 });
    // 501 turns, then five times the last 101.
    const perSecond = tally(times(501 + 5 * 101, () => next()));
    const early = times(39, (at) => [String(11 + at), 10]);
    const late = times(10, (at) => [String(51 + at), 10 + 5 * 10]);
    expect(perSecond).to.deep.equal({
      10: 1,
      ...Object.fromEntries(early),
      50: 10 + 5,
      ...Object.fromEntries(late),
    });
  });

  it("come no more often than callers can be served, however often they are refused", () => {
    const now = { ms: 0 };
    const next = turnsAt(now);
    const dueSeconds = times(400, () => {
      now.ms += BOUNDS.stepMs / 4;
      return Math.floor(now.ms / 1_000) + next();
    });
    // Pauses are whole seconds, so that the turns of three may fall into one.
    for (const [second, callers] of Object.entries(tally(dueSeconds)))
      expect(callers, `due in second ${second}`).to.be.at.most(30);
    expect(Math.max(...dueSeconds)).to.be.at.least(10 + 400 / 10 - 1);
  });

  it("begin with the shortest pause for another name, and once earlier turns have come", () => {
    const now = { ms: 0 };
    const next = turnsAt(now);
    times(200, () => next());
    expect(next("another")).to.equal(10);
    expect(next()).to.be.above(20);
    now.ms += BOUNDS.lastMs;
    expect(next()).to.equal(10);
  });
});
