import { expect } from "chai";
import type { Collection } from "mongodb";
import { awaitPayment, WaitingCalls } from "../../src/payments/waiting-calls.ts";
import { PaymentChanges } from "../../src/payments/payment-changes.ts";
import type { TransactionDocument } from "../../src/store/documents.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";
import { transactionOf } from "../support/payments-in-place.ts";
import { times, until } from "../support/world.ts";

const LONG_MS = 60_000;
const OF_AGENT_MAX = 100;

describe("calls that wait for a payment's outcome", () => {
  let database: TestDatabase;
  let transactions: Collection<TransactionDocument>;
  let changes: PaymentChanges;
  beforeEach(async () => {
    database = await testDatabase();
    transactions = database.db.collection("transactions");
    changes = new PaymentChanges(transactions, () => undefined);
  });
  afterEach(async () => {
    await changes.end();
    await database.close();
  });

  /** A pending payment of an agent, and a call that waits for it. */
  async function pending(agentId: string, organizationId: string) {
    const place = { agentId, projectId: "prj_1", teamId: "tem_1" };
    const record = transactionOf(organizationId, place, { status: "pending" });
    await transactions.insertOne(record);
    const { _id } = record;
    let transaction = record;
    // From memory: a read that a busy machine makes slow would end the call's wait.
    const read = () => Promise.resolve({ transaction, approval: null });
    const wait = async (calls: WaitingCalls): Promise<string> => {
      const dependencies = { calls, changes, read, onError: () => undefined };
      return (await awaitPayment(await read(), LONG_MS, dependencies)).transaction.status;
    };
    const end = async () => {
      transaction = { ...record, status: "approved" };
      await transactions.updateOne({ _id }, { $set: { status: "approved" } });
    };
    return { wait, end };
  }

  it("beyond an agent's share are answered at once as it is, and no other agent's are", async () => {
    const calls = new WaitingCalls(10_000);
    const [own, other] = [await pending("agt_1", "org_1"), await pending("agt_2", "org_1")];
    const waiting = times(OF_AGENT_MAX, () => own.wait(calls));
    await until("all of them wait", () => Promise.resolve(calls.waiting === OF_AGENT_MAX || null));
    expect(await own.wait(calls)).to.equal("pending");
    const others = other.wait(calls);
    await until("the other's waits", () => Promise.resolve(calls.waiting === OF_AGENT_MAX + 1 || null));
    await Promise.all([own.end(), other.end()]);
    expect(new Set(await Promise.all([...waiting, others]))).to.deep.equal(new Set(["approved"]));
    expect(calls.waiting).to.equal(0);
  });

  it("an organization's agents have half of a process's, and what is left is others'", async () => {
    const calls = new WaitingCalls(6);
    const crowd = await Promise.all(times(4, (index) => pending(`agt_${String(index)}`, "org_many")));
    const single = await pending("agt_single", "org_single");
    const answered: string[] = [];
    const waiting = crowd.map((each) => each.wait(calls).then((status) => answered.push(status)));
    await until("one is answered", () => Promise.resolve(answered.length === 1 || null));
    expect([answered, calls.waiting]).to.deep.equal([["pending"], 3]);
    const others = single.wait(calls);
    await until("the other's waits", () => Promise.resolve(calls.waiting === 4 || null));
    await Promise.all([...crowd, single].map((each) => each.end()));
    await Promise.all(waiting);
    expect(await others).to.equal("approved");
  });
});
