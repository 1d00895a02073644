import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { chosenPasswordIssue } from "../../server/auth/passwords.ts";
import { longestPauseMs } from "../support/pauses.ts";
import { PASSWORD } from "./support.ts";

const ABOUT = ["ada.lovelace@engines.example", "Ada Lovelace", "Analytical Engines"];
const HARD = "kV7#mQ2x!pL9zRw4";

const isAccepted = async (password: string, about = ABOUT): Promise<boolean> =>
  (await chosenPasswordIssue(password, about)) === null;

describe("A password that somebody chooses", () => {
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
    const work = () => Promise.all(Array.from({ length: 40 }, () => isAccepted(password)));
    const began = performance.now();
    const pauseMs = await longestPauseMs(work);
    // A busy machine makes all of it slow; what counts is that it is not one piece.
    expect(pauseMs).to.be.below(Math.max(500, (performance.now() - began) / 4));
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
      const began = performance.now();
      await isAccepted(password);
      expect(performance.now() - began, password.slice(0, 20)).to.be.below(2_000);
    }
  });
});
