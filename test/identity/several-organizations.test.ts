import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { z } from "zod";
import { authCollections, type UserDocument } from "../../src/store/identity-documents.ts";
import { invite, newEmail } from "../support/people.ts";
import { PASSWORD } from "../support/service.ts";
import { entriesOf } from "../audit/support.ts";
import { newWorld, times, until, type World } from "../support/world.ts";
import {
  EMAIL,
  fixture,
  type Fixture,
  laterCode,
  outcomeOf,
  PASSWORD as OWN_PASSWORD,
  valueOf,
  withTotp,
} from "./support.ts";

const OTHER_PASSWORD = "Wn4-qilto-Rb";

const required = z.object({ organizations: z.array(z.strictObject({ id: z.string(), name: z.string() })) });

/** Makes the e-mail a member, as an admin can who reads the invite's token in the answer. */
async function member(world: World, email: string, password = PASSWORD): Promise<string> {
  const { token } = await invite(world, "member", email);
  const body = { token, name: "A person", password };
  const session = await world.api.ok("acceptInvite", 201, { body });
  return session.user.id;
}

const idOf = (world: World): string => world.organization.organizationId;

const asked = (answer: { readonly body: unknown }) =>
  required.parse(answer.body).organizations.map(({ id }) => id);

const signInsOf = async (world: World, userId: string) =>
  (await entriesOf(world.service.db, idOf(world))).filter(
    ({ action, actor }) => action === "signIn" && actor.id === userId,
  );

/** Done when it is so: the answer to a wrong password does not wait for its entries. */
const seenAs = (seen: () => Promise<unknown>, wanted: readonly unknown[]) =>
  until(`entries as ${JSON.stringify(wanted)}`, async () => {
    const found = JSON.stringify(await seen());
    if (found.length > JSON.stringify(wanted).length) throw new Error(`more is told: ${found}`);
    return found === JSON.stringify(wanted) ? true : null;
  });

/** From where the account's entries say that its sign-ins came. */
const origins = async (world: World, userId: string) =>
  (await signInsOf(world, userId)).map(({ from }) => from?.address);

/** From where the log says that a wrong password was tried on the account. */
async function tried(world: World, userId: string, email: string) {
  const body = { email, password: "neither of the two" };
  const headers = { "x-forwarded-for": "198.51.100.5" };
  await world.service.api.call("POST", "/v1/auth/sign-in", { body, headers });
  return await until("the entry", async () => {
    const seen = await origins(world, userId);
    return seen.length > 0 ? seen : null;
  });
}

describe("an e-mail with accounts in several organizations", () => {
  let one: World;
  let other: World;
  before(async () => {
    [one, other] = [await newWorld(), await newWorld()];
  });

  const signIn = (body: object) => one.service.api.call("POST", "/v1/auth/sign-in", { body });
  it("who takes an e-mail that is not theirs keeps its owner from nothing, in no organization", async () => {
    const email = newEmail();
    const squatter = await member(one, email, OTHER_PASSWORD);
    const person = await member(other, email.toUpperCase());
    const answer = await signIn({ email, password: PASSWORD });
    expect(answer.status).to.equal(200);
    expect(answer.body).to.have.nested.property("user.id", person);
    expect((await signIn({ email, password: OTHER_PASSWORD })).body).to.have.nested.property(
      "user.id",
      squatter,
    );
  });

  it("a password that fits several accounts is answered their organizations, and signs in by one", async () => {
    const email = newEmail();
    const ids = [await member(one, email), await member(other, email)];
    const answer = await signIn({ email, password: PASSWORD });
    expect(answer.status).to.equal(409);
    expect(answer.body).to.include({ error: "ORGANIZATION_REQUIRED" });
    expect(asked(answer)).to.have.members([idOf(one), idOf(other)]);
    for (const [index, world] of [one, other].entries()) {
      const named = await signIn({ email, password: PASSWORD, organizationId: idOf(world) });
      expect(named.body).to.have.nested.property("user.id", ids[index]);
      expect(named.body).to.have.nested.property("organization.id", idOf(world));
    }
  });

  it("answers nothing of another organization, neither to a wrong password nor to a foreign id", async () => {
    const email = newEmail();
    await member(one, email, OTHER_PASSWORD);
    await member(other, email);
    const unknown = await signIn({ email: newEmail(), password: PASSWORD });
    for (const body of [
      { email, password: "neither of the two" },
      { email, password: PASSWORD, organizationId: idOf(one) },
      { email, password: PASSWORD, organizationId: randomUUID() },
    ]) {
      const answer = await signIn(body);
      expect(answer.status).to.equal(401);
      expect({ ...Object(answer.body), requestId: "" }).to.deep.equal({
        ...Object(unknown.body),
        requestId: "",
      });
    }
  });

  it("a wrong password tells no address to a user who only says that an e-mail is theirs", async () => {
    const email = newEmail();
    const squatter = await member(one, email, OTHER_PASSWORD);
    const person = await member(other, email);
    const seen = async () => [await origins(one, squatter), await origins(other, person)];
    const from = (address: string, body: object) =>
      one.service.api.call("POST", "/v1/auth/sign-in", { body, headers: { "x-forwarded-for": address } });
    const wrong = { email, password: "neither of the two" };
    await from("198.51.100.1", wrong);
    await seenAs(seen, [[null], [null]]);
    await from("198.51.100.2", { email, password: PASSWORD });
    await seenAs(seen, [[null], [null, "198.51.100.2"]]);
    await from("198.51.100.3", { ...wrong, organizationId: idOf(other) });
    await seenAs(seen, [[null], [null, "198.51.100.2", "198.51.100.3"]]);
  });

  it("other accounts of an e-mail, proved or not, change nothing in an account's log", async () => {
    const proved = { $set: { emailVerified: true } };
    for (const elsewhere of ["none", "unproved", "proved"] as const) {
      for (const isProved of [false, true]) {
        const email = newEmail();
        if (elsewhere !== "none") {
          const person = await member(other, email);
          if (elsewhere === "proved")
            await authCollections(other.service.db).users.updateOne({ _id: person }, proved);
        }
        const own = await member(one, email, OTHER_PASSWORD);
        if (isProved) await authCollections(one.service.db).users.updateOne({ _id: own }, proved);
        expect(await tried(one, own, email), `elsewhere ${elsewhere}`).to.deep.equal([
          isProved ? "198.51.100.5" : null,
        ]);
      }
    }
  });
});

describe("Sign-in to one of several accounts", () => {
  let the: Fixture;
  beforeEach(async () => {
    the = await fixture();
  });
  afterEach(() => the.database.close());

  const signIn = (fields: object = {}) =>
    the.auth.signIn({ email: EMAIL, password: OWN_PASSWORD, ...fields });

  /** Accounts of the owner's e-mail and password in so many other organizations, older than the owner's own. */
  async function olderAccounts(count: number, fields: Partial<UserDocument> = {}): Promise<void> {
    const owner = await the.collections.users.findOne({ _id: the.userId });
    if (owner === null) throw new Error("an organization has its owner");
    const accounts = times(count, (index) => ({
      ...owner,
      _id: randomUUID(),
      organizationId: randomUUID(),
      createdAt: new Date(owner.createdAt.getTime() - 60_000 + index),
      ...fields,
    }));
    await the.collections.users.insertMany(accounts);
    await the.prove("user");
  }

  it("asks for no second factor and uses up no code before it is known which account is meant", async () => {
    const { secret } = await withTotp(the);
    await olderAccounts(1);
    expect(outcomeOf(await signIn())).to.equal("ORGANIZATION_REQUIRED");
    const code = await laterCode(the, secret);
    expect(outcomeOf(await signIn({ code }))).to.equal("ORGANIZATION_REQUIRED");
    const { organizationId } = the;
    expect(outcomeOf(await signIn({ organizationId, password: "wrong horse battery" }))).to.equal(
      "UNAUTHORIZED",
    );
    expect(outcomeOf(await signIn({ organizationId }))).to.equal("SECOND_FACTOR_REQUIRED");
    expect(valueOf(await signIn({ organizationId, code })).user.id).to.equal(the.userId);
  });

  it("beyond five accounts needs the organization; one whose address is proved comes first", async () => {
    await olderAccounts(5, { passwordHash: "$argon2id$of$another$password" });
    expect(outcomeOf(await signIn())).to.equal("UNAUTHORIZED");
    expect(valueOf(await signIn({ organizationId: the.organizationId })).user.id).to.equal(the.userId);
    await the.collections.users.updateOne({ _id: the.userId }, { $set: { emailVerified: true } });
    expect(valueOf(await signIn()).user.id).to.equal(the.userId);
  });

  it("takes as much work for an address with five accounts as for one with none", async () => {
    await olderAccounts(4);
    // Processor time, since other processes take theirs of what a clock would show.
    const took: { five: number[]; none: number[] } = { five: [], none: [] };
    for (const round of times(5, (index) => index)) {
      for (const [which, email] of [["five", EMAIL] as const, ["none", `no${round}@example.test`] as const]) {
        const before = process.cpuUsage();
        expect(outcomeOf(await signIn({ email, password: "wrong horse battery" }))).to.equal("UNAUTHORIZED");
        const { system, user } = process.cpuUsage(before);
        took[which].push(system + user);
      }
    }
    // A hash for each account would make it five.
    expect(median(took.five) / median(took.none)).to.be.within(0.4, 2.5);
  });
});

const median = (all: readonly number[]) => all.toSorted((a, b) => a - b)[2] ?? Number.NaN;
