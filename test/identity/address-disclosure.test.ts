import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { authCollections } from "../../src/store/identity-documents.ts";
import { AUDIT_LOG } from "../../src/store/audit-documents.ts";
import { PASSWORD_COST } from "../../src/identity/passwords.ts";
import { entriesOf } from "../audit/support.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { newWorld, until, type World } from "../support/world.ts";

const SAMPLES = 30;
const WARM_UP = 4;

/**
 * The share of pairs in which the one of the left took longer: 0.5 where nothing tells the two apart, 0 or 1 where each single try does.
 * With so many samples of the same distribution its standard deviation is 0.075, so that four of them hardly ever happen.
 */
const TOLD_APART = 0.3;

describe("whether an e-mail has an account", () => {
  let service: TestService;
  let world: World;
  let known: readonly string[];
  before(async () => {
    service = await startTestService({ worker: false, passwordCost: PASSWORD_COST });
    world = await newWorld(service);
    known = await people(world, SAMPLES + WARM_UP);
  });
  after(() => service.stop());

  it("can't be told from how long a wrong password's answer takes", async () => {
    const times: { known: number[]; unknown: number[] } = { known: [], unknown: [] };
    for (const [index, email] of known.entries()) {
      const tries = [["known", email] as const, ["unknown", `nobody-${randomUUID()}@example.com`] as const];
      // The first request may find something warmed up, or cold.
      for (const [which, address] of index % 2 === 0 ? tries : tries.toReversed()) {
        const took = await millisecondsOf(address);
        if (index >= WARM_UP) times[which].push(took);
      }
    }
    const share = shareLonger(times.known, times.unknown);
    expect(share, `known ${shown(times.known)}, unknown ${shown(times.unknown)}`).to.be.within(
      0.5 - TOLD_APART,
      0.5 + TOLD_APART,
    );
  });

  it("can't be told from the entry that a refused sign-in leaves in its organization's log", async () => {
    // Of its own: of one address only so many refusals have an entry each in a minute.
    const another = await newWorld(service);
    const { organizationId } = another.organization;
    const [email = ""] = await people(another, 1);
    const held = await holdChain(another, organizationId);
    try {
      const body = { email, password: "wrong horse battery" };
      // The entry can't be written now, and the client is not told.
      const answer = await world.service.api.call("POST", "/v1/auth/sign-in", { body });
      expect(answer.status).to.equal(401);
      expect(await refusals(organizationId), "entries while their chain is held").to.equal(held.refusals);
    } finally {
      await held.release();
    }
    await until("the entry", async () =>
      (await refusals(organizationId)) > held.refusals ? "written" : null,
    );
  });

  const refusals = async (organizationId: string): Promise<number> =>
    (await entriesOf(world.service.db, organizationId)).filter(({ result }) => result.code === "UNAUTHORIZED")
      .length;

  /** Takes the place of the chain's next entry in a transaction that is not committed: a writer there waits for its end. */
  async function holdChain({ service: { db } }: World, organizationId: string) {
    const entries = await entriesOf(db, organizationId);
    const last = entries.at(-1);
    if (last === undefined) throw new Error("a chain begins with its organization");
    const next = `${organizationId}/${String(last.sequence + 1).padStart(15, "0")}`;
    const session = db.client.startSession();
    session.startTransaction();
    await db.collection<{ _id: string }>(AUDIT_LOG).insertOne({ _id: next }, { session });
    const release = async () => {
      await session.abortTransaction();
      await session.endSession();
    };
    return { release, refusals: await refusals(organizationId) };
  }

  async function millisecondsOf(email: string): Promise<number> {
    const began = performance.now();
    const body = { email, password: "wrong horse battery" };
    await world.api.refused("signIn", 401, "UNAUTHORIZED", { body });
    return performance.now() - began;
  }
});

/** Each is asked about once, far below any limit: more members of the world's organization. */
async function people(world: World, count: number): Promise<readonly string[]> {
  const { users } = authCollections(world.service.db);
  const owner = await users.findOne({ organizationId: world.organization.organizationId });
  if (owner === null) throw new Error("an organization has its owner");
  const members = Array.from({ length: count }, () => {
    const email = `somebody-${randomUUID()}@example.com`;
    return { ...owner, _id: randomUUID(), email, emailNormalized: email, role: "member" as const };
  });
  await users.insertMany(members.map((member) => TEST_ACCESS_PROOFS.proven("user", member)));
  return members.map(({ email }) => email);
}

function shareLonger(left: readonly number[], right: readonly number[]): number {
  const longer = left.flatMap((one) => right.map((other) => (one > other ? 1 : one === other ? 0.5 : 0)));
  return longer.reduce<number>((sum, each) => sum + each, 0) / longer.length;
}

const shown = (times: readonly number[]): string =>
  times
    .toSorted((one, other) => one - other)
    .map((ms) => ms.toFixed(1))
    .join(" ");
