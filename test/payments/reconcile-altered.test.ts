import { expect } from "chai";
import { type AgentDocument, COLLECTIONS, type TransactionDocument } from "../../src/store/documents.ts";
import type { CardLedgerDocument } from "../../src/rails/card/network-books.ts";
import type { Difference } from "../../server/admin/reconcile/difference.ts";
import { reconciledText } from "../../server/admin/reconcile/text.ts";
import type { Collections } from "../../src/store/collections.ts";
import { someOrAll } from "../support/soak.ts";
import { newWorld, type World } from "../support/world.ts";
import { atRest, captureLess, capTeam, kindsOf, newScene, run, type Scene } from "./reconcile-scenes.ts";

interface Case {
  readonly what: string;
  readonly alter: (scene: Scene) => Promise<unknown>;
  /** Kinds of what is found, sorted, each once. */
  readonly found: readonly string[];
  /** Whether `--repair` may write all of it. */
  readonly repairs: boolean;
}

const CASES: readonly Case[] = [
  {
    what: "an agent's record with other totals",
    alter: ({ agent, books }) => books.agents.updateOne({ _id: agent.id }, { $inc: { spentCents: 1 } }),
    found: ["agent_record_differs"],
    repairs: true,
  },
  {
    what: "an agent's record with another state and policy",
    alter: ({ agent, books }) =>
      books.agents.updateOne(
        { _id: agent.id },
        { $set: { lifecycle: "paused", "policy.budgetCents": 1, policyVersion: 7 } },
      ),
    found: ["agent_record_differs"],
    repairs: true,
  },
  {
    what: "an agent's record from before",
    alter: ({ agent, books }) =>
      books.agents.updateOne(
        { _id: agent.id },
        { $set: { accountRevision: 1, spentCents: 0, reservedCents: 0 } },
      ),
    found: ["agent_record_differs"],
    repairs: true,
  },
  {
    what: "an agent's record that is ahead of its actor",
    alter: ({ agent, books }) => books.agents.updateOne({ _id: agent.id }, { $inc: { revision: 100 } }),
    found: ["agent_record_differs"],
    repairs: false,
  },
  {
    what: "an agent's record that is ahead of its account",
    alter: ({ agent, books }) =>
      books.agents.updateOne({ _id: agent.id }, { $inc: { accountRevision: 100 } }),
    found: ["agent_record_differs"],
    repairs: false,
  },
  {
    what: "an agent's record with another name and end",
    alter: ({ agent, books }) =>
      books.agents.updateOne({ _id: agent.id }, { $set: { name: "Another", walletDetached: true } }),
    found: ["agent_record_differs"],
    repairs: true,
  },
  {
    what: "an agent's record that has lost its key",
    alter: ({ agent, books }) => books.agents.updateOne({ _id: agent.id }, { $set: { key: null } }),
    found: ["agent_record_differs"],
    repairs: false,
  },
  {
    what: "an agent's record that is lost",
    alter: ({ agent, books }) => books.agents.deleteOne({ _id: agent.id }),
    found: ["agent_record_lost"],
    repairs: false,
  },
  {
    what: "an agent's record without an actor and an account",
    alter: async ({ agent, books }) => {
      const record = await recorded<AgentDocument>(books.agents.findOne({ _id: agent.id }));
      await books.agents.insertOne({ ...record, _id: `${agent.id}-copy`, key: null });
    },
    found: ["account_lost", "actor_lost", "agent_record_differs"],
    repairs: false,
  },
  {
    what: "a payment on hold whose record is lost",
    alter: ({ books, held }) => books.transactions.deleteOne({ _id: held }),
    found: ["payment_record_differs"],
    repairs: true,
  },
  {
    what: "a payment on hold whose record says that it was paid",
    alter: ({ books, held }) => books.transactions.updateOne({ _id: held }, { $set: { status: "approved" } }),
    found: ["payment_record_differs"],
    repairs: true,
  },
  {
    what: "a payment on hold whose record has another amount",
    alter: ({ books, held }) => books.transactions.updateOne({ _id: held }, { $inc: { amountCents: 1 } }),
    found: ["payment_record_differs"],
    repairs: true,
  },
  {
    what: "a payment on hold whose record has another purpose",
    alter: ({ books, held }) => books.transactions.updateOne({ _id: held }, { $set: { purpose: "Another" } }),
    found: ["payment_record_differs"],
    repairs: true,
  },
  {
    what: "a payment on hold whose record could not restore its ledger",
    alter: ({ books, held }) =>
      books.transactions.updateOne({ _id: held }, { $set: { "ledgerState.proof": "another" } }),
    found: ["payment_record_differs"],
    repairs: true,
  },
  {
    what: "a payment on hold whose approval is lost",
    alter: ({ books, held }) => books.approvals.deleteOne({ transactionId: held }),
    found: ["approval_record_differs"],
    repairs: true,
  },
  {
    what: "a payment on hold whose approval says that it was decided",
    alter: ({ books, held }) =>
      books.approvals.updateOne({ transactionId: held }, { $set: { state: "completed" } }),
    found: ["approval_record_differs"],
    repairs: true,
  },
  {
    what: "an ended payment whose approval still waits",
    alter: ({ books, denied }) =>
      books.approvals.updateOne({ transactionId: denied }, { $set: { state: "pending" } }),
    found: ["approval_record_differs"],
    repairs: false,
  },
  {
    what: "a paid payment whose record is lost",
    alter: ({ books, paid }) => books.transactions.deleteOne({ _id: paid }),
    found: ["card_ledger_differs", "payment_record_lost", "payments_sum_differs"],
    repairs: false,
  },
  {
    what: "a paid payment whose record has another amount",
    alter: ({ books, paid }) => books.transactions.updateOne({ _id: paid }, { $inc: { amountCents: -1 } }),
    found: ["payment_record_differs"],
    repairs: false,
  },
  {
    what: "a paid payment whose record has other books",
    alter: ({ books, paid }) => captureLess(books, paid),
    found: ["card_ledger_differs", "payment_record_differs", "payments_sum_differs"],
    repairs: false,
  },
  {
    what: "a paid payment whose record says that it is pending",
    alter: ({ books, paid }) => books.transactions.updateOne({ _id: paid }, { $set: { status: "pending" } }),
    found: ["payment_record_differs"],
    repairs: false,
  },
  {
    what: "a paid payment whose record has another idempotency key",
    alter: ({ books, paid }) => books.transactions.updateOne({ _id: paid }, { $set: { keyHash: "another" } }),
    found: ["payment_record_differs"],
    repairs: false,
  },
  {
    what: "a paid payment whose record has another purpose",
    alter: ({ books, paid }) =>
      books.transactions.updateOne({ _id: paid }, { $set: { purpose: "Another." } }),
    found: ["payment_record_differs"],
    repairs: false,
  },
  {
    what: "a payment on hold whose record has another purpose",
    alter: ({ books, held }) =>
      books.transactions.updateOne({ _id: held }, { $set: { purpose: "Another." } }),
    found: ["payment_record_differs"],
    repairs: true,
  },
  {
    what: "a payment on hold whose approval has another purpose",
    alter: ({ books, held }) =>
      books.approvals.updateOne({ transactionId: held }, { $set: { purpose: "Another." } }),
    found: ["approval_record_differs"],
    repairs: true,
  },
  {
    what: "a payment on hold whose approval names who decided on it",
    alter: ({ books, held }) =>
      books.approvals.updateOne(
        { transactionId: held },
        { $set: { resolvedBy: { userId: "another", name: "Another" } } },
      ),
    found: ["approval_record_differs"],
    repairs: true,
  },
  {
    what: "an ended payment whose approval names another person",
    alter: ({ books, denied }) =>
      books.approvals.updateOne({ transactionId: denied }, { $set: { "resolvedBy.userId": "another" } }),
    found: ["approval_record_differs"],
    repairs: false,
  },
  {
    what: "an ended payment whose approval has another purpose",
    alter: ({ books, denied }) =>
      books.approvals.updateOne({ transactionId: denied }, { $set: { purpose: "Another." } }),
    found: ["approval_record_differs"],
    repairs: false,
  },
  {
    what: "an agent's record with the hash of another key",
    alter: ({ agent, books }) =>
      books.agents.updateOne({ _id: agent.id }, { $set: { "key.hash": `not ${agent.id}'s` } }),
    found: ["agent_record_differs"],
    repairs: false,
  },
  {
    what: "an agent's record with other scopes",
    alter: ({ agent, books }) =>
      books.agents.updateOne({ _id: agent.id }, { $set: { scopes: ["create_payment"] } }),
    found: ["agent_record_differs"],
    repairs: false,
  },
  {
    what: "a payment's record that no ledger has decided",
    alter: async ({ books, denied }) => {
      const record = await recorded<TransactionDocument>(books.transactions.findOne({ _id: denied }));
      await books.transactions.insertOne({ ...record, _id: `${denied}X`, keyHash: "another", sequence: 99 });
    },
    found: ["payment_record_unknown"],
    repairs: false,
  },
  {
    what: "a payment without its capture",
    alter: ({ books, paid }) => books.cardLedger.deleteOne({ transactionId: paid }),
    found: ["card_ledger_differs"],
    repairs: false,
  },
  {
    what: "a payment that was captured twice",
    alter: ({ books, paid }) => copyCapture(books, paid, { status: "captured" }),
    found: ["card_ledger_differs"],
    repairs: false,
  },
  {
    what: "a payment that was given back without a record",
    alter: ({ books, paid }) => copyCapture(books, paid, { status: "refunded" }),
    found: ["card_ledger_differs"],
    repairs: false,
  },
  {
    what: "a capture of another amount",
    alter: ({ books, paid }) =>
      books.cardLedger.updateOne({ transactionId: paid }, { $inc: { amountMc: 1_000 } }),
    found: ["card_ledger_differs"],
    repairs: false,
  },
  {
    what: "a denied payment that was captured",
    alter: ({ books, denied, paid }) => copyCapture(books, paid, { transactionId: denied }),
    found: ["card_ledger_differs"],
    repairs: false,
  },
];

async function recorded<T>(record: Promise<T | null>): Promise<T> {
  const there = await record;
  if (there === null) throw new Error("a record is missing before it is altered");
  return there;
}

async function copyCapture(books: Collections, paid: string, change: Partial<CardLedgerDocument>) {
  const capture = await recorded<CardLedgerDocument>(books.cardLedger.findOne({ transactionId: paid }));
  await books.cardLedger.insertOne({ ...capture, _id: `${capture._id}/again`, ...change });
}

const classOf = ({ found, repairs }: Case) => `${found.join()} ${String(repairs)}`;

/** Those that are about a scene. */
const of = ({ agent, paid }: Scene, differences: readonly Difference[]): readonly Difference[] =>
  differences.filter(({ agentId, id }) => agentId?.startsWith(agent.id) === true || id === paid);

/** The scene's agent rests, so one look is enough. */
const PATIENCE_MS = 1;

describe("npm run admin -- reconcile, of books that were altered by hand", () => {
  let world: World;
  let scene: Scene;
  let kept: Awaited<ReturnType<typeof records>>;

  before(async () => {
    world = await newWorld();
    await capTeam(world);
    scene = await newScene(world);
    await atRest(world, scene);
    kept = await records();
  });
  afterEach(() => putBack());

  const collections = () =>
    [COLLECTIONS.agents, COLLECTIONS.approvals, COLLECTIONS.sandboxCardLedger, COLLECTIONS.transactions].map(
      (name) => world.service.db.collection(name),
    );
  const ofWorld = () => ({ organizationId: world.organization.organizationId });
  const records = () =>
    Promise.all(collections().map((each) => each.find(ofWorld()).sort({ _id: 1 }).toArray()));
  const putBack = () =>
    Promise.all(
      collections().map(async (each, at) => {
        await each.deleteMany(ofWorld());
        await each.insertMany(kept[at] ?? []);
      }),
    );

  const classes = [...new Set(CASES.map(classOf))].map((name) =>
    CASES.filter((each) => classOf(each) === name),
  );
  for (const { alter, found: wanted, repairs, what } of classes.flatMap((each) => someOrAll(each, 1))) {
    it(`finds ${what}; ${repairs ? "repairs it for good" : "invents nothing for it"}`, async () => {
      await alter(scene);
      const altered = await records();
      const first = await run(world, true, PATIENCE_MS);
      expect(kindsOf(of(scene, first.differences)), reconciledText(first)).to.deep.equal(wanted);
      expect(of(scene, first.left).length === 0, reconciledText(first)).to.equal(repairs);
      if (!repairs) return expect(await records()).to.deep.equal(altered);
      const second = await run(world, false, PATIENCE_MS);
      expect(of(scene, second.differences), reconciledText(second)).to.deep.equal([]);
      const written = [scene.agent.id, scene.held];
      expect(first.repaired.filter(({ id }) => written.includes(id))).to.have.lengthOf(1);
    });
  }
});
