import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { TooMuchWork } from "../../src/lib/bounded-work.ts";
import { chosenPasswordIssue } from "../../src/identity/passwords.ts";
import { timed } from "../support/in-time.ts";
import { longestPauseMs } from "../support/pauses.ts";
import { times } from "../support/world.ts";
import { PASSWORD } from "./support.ts";

const ABOUT = ["ada.lovelace@engines.example", "Ada Lovelace", "Analytical Engines"];
const HARD = "kV7#mQ2x!pL9zRw4";

/** Breached words in other letters, which take longest to be scored, and are all known of the person: no part of them is hard. */
const SLOW_NAME = "p4$$w0rdm0nk3y4d m1nl3tm31ndr4g0n";
const SLOW_WORDS = SLOW_NAME.split(" ");

/** 1,024 characters of the two words in the order of Thue and Morse, which repeats nothing three times in a row. */
const SLOWEST = times(64, (index) => SLOW_WORDS[parityOf(index + 2)] ?? "").join("");

function parityOf(number: number): number {
  return number.toString(2).replaceAll("0", "").length % 2;
}

const isAccepted = async (password: string, about = ABOUT): Promise<boolean> =>
  (await chosenPasswordIssue(password, about)) === null;

describe("A password that a user chooses", () => {
  before(async () => {
    // The lists are loaded with the first one, which a busy machine takes its time for.
    await isAccepted(PASSWORD);
  });

  const REFUSED: readonly (readonly [why: string, password: string])[] = [
    ["a breached one", "password1234"],
    ["one in other letters", "P4$$w0rd1234"],
    ["one twice", "passwordpassword"],
    ["a row of keys", "qwertyuiop[]"],
    ["digits in order", "123456789012345"],
    ["one letter", "aaaaaaaaaaaaaaaaaaaa"],
    ["one letter, very often", "x".repeat(1024)],
    ["one sign outside the BMP", "🔑".repeat(12)],
    ["a breached one, very often", "iloveyou".repeat(128)],
    ["a breached one, very often and in the middle of it", `you${"iloveyou".repeat(120)}ilove`],
    ["digits in order, again and again", "0123456789".repeat(102)],
    ["the e-mail", "ada.lovelace@engines.example"],
    ["the name and a year", "AdaLovelace1815"],
    ["the organization and a number", "analyticalengines1"],
  ];
  for (const [why, password] of REFUSED) {
    it(`is refused, without being repeated: ${why}`, async () => {
      const issue = await chosenPasswordIssue(password, ABOUT);
      expect(issue).to.include("easy to guess").and.not.include(password);
    });
  }

  const ACCEPTED: readonly (readonly [why: string, password: string])[] = [
    ["a few unrelated words", PASSWORD],
    ["random characters", HARD],
    ["words of another language", "mot de passé long"],
    ["a weak beginning before something hard", `${"a".repeat(300)}${HARD}`],
    ["a weak end after something hard", `${HARD}${"a".repeat(300)}`],
    [
      "something hard across the place where a long text is cut",
      `${"a".repeat(56)}${HARD}${"a".repeat(300)}`,
    ],
    ["1,024 random bytes of text", randomBytes(768).toString("base64")],
  ];
  for (const [why, password] of ACCEPTED) {
    it(`is accepted: ${why}`, async () => {
      expect(await isAccepted(password)).to.equal(true);
    });
  }

  it("is judged by what is known of its own person alone", async () => {
    expect(await isAccepted("AdaLovelace1815", [])).to.equal(true);
  });

  it("many at once let other work through in between", async () => {
    const password = "01/02/2003".repeat(6);
    // On a busy machine the last ones are refused for now.
    const work = () => Promise.allSettled(times(15, () => isAccepted(password)));
    const began = performance.now();
    const pauseMs = await longestPauseMs(work);
    // A busy machine makes all of it slow; what counts is that it is not one piece.
    expect(pauseMs).to.be.below(Math.max(500, (performance.now() - began) / 4));
  });

  it("beyond a short queue, is refused for now instead of judged", async () => {
    const asked = times(40, () => isAccepted(HARD).catch((error: unknown) => error));
    const refused = await Promise.all(asked.slice(33));
    for (const outcome of refused) expect(outcome).to.be.instanceOf(TooMuchWork);
    expect(await asked[0]).to.equal(true);
    await Promise.all(asked);
    expect(await isAccepted(HARD)).to.equal(true);
  });

  it("costs no more than some of its parts, however slow and long it was made", async () => {
    const about = ["eve@example.com", SLOW_NAME, "Acme"];
    const costMs = async (password: string) => (await timed(isAccepted(password, about))).ownMs;
    const part = SLOWEST.slice(0, 64);
    const parts: number[] = [];
    const wholes: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      parts.push(await costMs(part));
      wholes.push(await costMs(SLOWEST));
    }
    expect(SLOWEST).to.have.lengthOf(1_024);
    expect(await isAccepted(SLOWEST, about)).to.equal(false);
    // Three parts, and noise; all of them are twenty-one.
    expect(Math.min(...wholes) / Math.min(...parts)).to.be.below(7);
  });

  it("takes bounded time, whatever its length", async () => {
    for (const password of [
      "0123456789".repeat(102),
      "P@ssw0rd!".repeat(113),
      `${"ab".repeat(255)}${"ba".repeat(255)}`,
      "1.1.19 2/2/20 ".repeat(73),
      randomBytes(768).toString("base64"),
      "é".repeat(512),
    ]) {
      const { ownMs } = await timed(isAccepted(password));
      expect(ownMs, password.slice(0, 20)).to.be.below(2_000);
    }
  });
});
