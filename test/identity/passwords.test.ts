import { setImmediate as breathe } from "node:timers/promises";
import { expect } from "chai";
import { BoundedWork, TooMuchWork } from "../../src/lib/bounded-work.ts";
import { isSamePassword, NO_PASSWORD, passwordIssue, Passwords } from "../../src/identity/passwords.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";
import { times } from "../support/world.ts";
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

  describe("is hashed", () => {
    let database: TestDatabase;
    let passwords: Passwords;
    before(async () => {
      database = await testDatabase();
      passwords = await Passwords.on(database.db);
    });
    after(() => database.close());

    it("as Argon2id with the parameters of OWASP, with a salt of its address in this database", async () => {
      const hash = await passwords.hash(EMAIL, PASSWORD);
      expect(hash).to.match(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/);
      expect(hash).to.equal(await (await Passwords.on(database.db)).hash(EMAIL.toUpperCase(), PASSWORD));
      expect(saltOf(hash)).not.to.equal(saltOf(await passwords.hash("bob@example.test", PASSWORD)));
      const elsewhere = await testDatabase();
      const other = await (await Passwords.on(elsewhere.db)).hash(EMAIL, PASSWORD);
      await elsewhere.close();
      expect(saltOf(hash)).not.to.equal(saltOf(other));
    });

    it("so that it matches itself, however its accents were typed, and nothing else", async () => {
      const hash = await passwords.hash(EMAIL, "mot de passé long");
      const [long, empty] = ["x".repeat(200_000), ""];
      for (const [password, fits] of [
        ["mot de passé long".normalize("NFD"), true],
        ["mot de passe long", false],
        [empty, false],
        [long, false],
      ] as const) {
        expect(await passwords.matches(hash, password)).to.equal(fits);
        expect(isSamePassword(hash, await passwords.hash(EMAIL, password))).to.equal(fits);
      }
      expect(isSamePassword("", hash)).to.equal(false);
    });

    it("and of a person without one, who signs in elsewhere, none fits", async () => {
      for (const password of [PASSWORD, ""])
        expect(await passwords.matches(NO_PASSWORD, password)).to.equal(false);
    });
  });
});

describe("Work that an anonymous caller can ask for", () => {
  it("goes on so often at once, waits in a short queue in its order, and is refused beyond it", async () => {
    const bounded = new BoundedWork({ atOnceMax: 2, waitingMax: 3, waitMs: 1_000 });
    const begun: number[] = [];
    const ends: (() => void)[] = [];
    const work = (index: number) => () => {
      begun.push(index);
      return new Promise<number>((resolve) => ends.push(() => resolve(index)));
    };
    const all = [0, 1, 2, 3, 4].map((index) => bounded.run(work(index)));
    await breathe();
    expect(begun).to.deep.equal([0, 1]);
    const refused = await bounded.run(work(5)).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(TooMuchWork);
    for (const index of [0, 1, 2, 3, 4]) {
      ends[index]?.();
      await all[index];
      await breathe();
    }
    expect(begun).to.deep.equal([0, 1, 2, 3, 4]);
    expect(await Promise.all(all)).to.deep.equal([0, 1, 2, 3, 4]);
  });

  it("is not begun once it has waited too long, and does not hold up later callers", async () => {
    let nowMs = 0;
    const bounded = new BoundedWork({ atOnceMax: 1, waitingMax: 2, waitMs: 1_000 }, () => nowMs);
    const ends: (() => void)[] = [];
    const begun: string[] = [];
    const work = (name: string) => () => {
      begun.push(name);
      return Promise.resolve(name);
    };
    const running = bounded.run(() => new Promise<string>((resolve) => ends.push(() => resolve("first"))));
    await breathe();
    const late = bounded.run(work("late")).catch((error: unknown) => error);
    nowMs = 600;
    const later = bounded.run(work("later"));
    nowMs = 1_001;
    ends[0]?.();
    expect(await running).to.equal("first");
    expect(await late).to.be.instanceOf(TooMuchWork);
    expect(await later).to.equal("later");
    expect(begun).to.deep.equal(["later"]);
  });

  it("is run one at a time while it yields, and all at once again afterwards", async () => {
    let isYielding = true;
    const bounds = { atOnceMax: 3, waitingMax: 8, waitMs: 60_000, isYielding: () => isYielding };
    const bounded = new BoundedWork(bounds);
    const ends: (() => void)[] = [];
    const all = times(5, () => bounded.run(() => new Promise<void>((resolve) => ends.push(resolve))));
    await breathe();
    expect(ends).to.have.lengthOf(1);
    ends[0]?.();
    await breathe();
    expect(ends).to.have.lengthOf(2);
    isYielding = false;
    ends[1]?.();
    await breathe();
    expect(ends).to.have.lengthOf(5);
    for (const end of ends) end();
    await Promise.all(all);
  });

  it("of one sender takes its share of the places, and senders take turns", async () => {
    const share = { atOnceMax: 1, waitingMax: 3 };
    const bounded = new BoundedWork({ atOnceMax: 2, waitingMax: 8, waitMs: 60_000, share });
    const begun: string[] = [];
    const ends: (() => void)[] = [];
    const run = (sender: string) =>
      bounded.run(() => {
        begun.push(sender);
        return new Promise<void>((resolve) => ends.push(resolve));
      }, sender);
    const loud = times(4, () => run("loud"));
    expect(await run("loud").catch((error: unknown) => error)).to.be.instanceOf(TooMuchWork);
    const others = ["a", "b", "b"].map(run);
    await breathe();
    expect(begun, "one of the loud sender, so that another finds a place").to.deep.equal(["loud", "a"]);
    for (let ended = 0; ended < 7; ended += 1) {
      await breathe();
      ends[ended]?.();
    }
    await Promise.all([...loud, ...others]);
    expect(begun).to.deep.equal(["loud", "a", "loud", "b", "loud", "b", "loud"]);
  });

  it("that fails gives its place to the next one", async () => {
    const bounded = new BoundedWork({ atOnceMax: 1, waitingMax: 1, waitMs: 1_000 });
    const failing = bounded.run(() => Promise.reject(new Error("it failed")));
    const next = bounded.run(() => Promise.resolve("done"));
    expect(await failing.catch(() => "failed")).to.equal("failed");
    expect(await next).to.equal("done");
    expect(await bounded.run(() => Promise.resolve("again"))).to.equal("again");
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
});

const saltOf = (hash: string) => hash.split("$")[4];
