import { expect } from "chai";
import { hashPassword, passwordIssue, PasswordVerifier } from "../../server/auth/passwords.ts";
import { EMAIL, fixture, PASSWORD, refusalOf, type Fixture } from "./support.ts";

describe("A password", () => {
  const TABLE: readonly (readonly [why: string, password: string, accepted: boolean])[] = [
    ["12 characters", "twelve chars", true],
    ["11 characters", "eleven char", false],
    ["12 characters outside the BMP", "🔑".repeat(12), true],
    ["11 of them, 22 code units", "🔑".repeat(11), false],
    ["six letters whose accents are separate, 12 code points", "é".normalize("NFD").repeat(6), false],
    ["1,024 bytes", "x".repeat(1024), true],
    ["1,025 bytes", "x".repeat(1025), false],
    ["1,026 bytes of 513 characters", "é".repeat(513), false],
  ];
  for (const [why, password, accepted] of TABLE) {
    it(`is ${accepted ? "accepted" : "refused"}: ${why}`, () => {
      expect(passwordIssue(password) === null).to.equal(accepted);
    });
  }

  it("is stored as Argon2id with the parameters of OWASP, and salted", async () => {
    const hash = await hashPassword(PASSWORD);
    expect(hash).to.match(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(hash).not.to.equal(await hashPassword(PASSWORD));
  });

  it("matches itself, however its accents were typed, and nothing else", async () => {
    const verifier = await PasswordVerifier.create();
    const hash = await hashPassword("mot de passé long");
    expect(await verifier.matches(hash, "mot de passé long".normalize("NFD"))).to.equal(true);
    expect(await verifier.matches(hash, "mot de passe long")).to.equal(false);
    expect(await verifier.matches(hash, "")).to.equal(false);
    expect(await verifier.matches(hash, "x".repeat(200_000))).to.equal(false);
    expect(await verifier.matches(null, "mot de passé long")).to.equal(false);
  });
});

describe("Sign-in", () => {
  let the: Fixture;
  before(async () => {
    the = await fixture();
  });
  after(() => the.database.close());

  const attempt = (email: string, password: string) => the.auth.signIn({ email, password });

  it("finds a person whatever the case of the e-mail, and shows it as it was given", async () => {
    const result = await attempt("  aDA@exAMPLE.TEST ", PASSWORD);
    expect(result.ok && result.value.user.email).to.equal(EMAIL);
  });

  it("answers the same for an unknown e-mail as for a wrong password", async () => {
    const unknown = refusalOf(await attempt("nobody@example.test", PASSWORD));
    const wrong = refusalOf(await attempt(EMAIL, "wrong horse battery"));
    expect(unknown.code).to.equal("UNAUTHORIZED");
    expect(unknown).to.deep.equal(wrong);
  });

  it("takes as long for an unknown e-mail as for a wrong password", async () => {
    const unknown: number[] = [];
    const wrong: number[] = [];
    for (let round = 0; round < 9; round += 1) {
      unknown.push(await millisecondsOf(() => attempt(`nobody${round}@example.test`, PASSWORD)));
      wrong.push(await millisecondsOf(() => attempt(EMAIL, `wrong horse battery ${round}`)));
    }
    // Without the stand-in hash the ratio is below 0.1; with it, it is 1 but for the noise of a busy machine.
    expect(median(unknown) / median(wrong)).to.be.within(0.5, 2);
  });
});

async function millisecondsOf(run: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await run();
  return performance.now() - start;
}

const median = (values: readonly number[]): number =>
  values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)] ?? Number.NaN;
