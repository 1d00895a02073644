import { expect } from "chai";
import type { TransactionDocument } from "../../src/store/documents.ts";
import { COLLECTIONS } from "../../src/store/documents.ts";
import type { CardLedgerDocument } from "../../src/rails/card/network-books.ts";
import { type TestAgent, until, type World } from "./world.ts";

const SETTLED_MS = 120_000;

/**
 * The independent auditor: whatever was done to an agent, what its record says was spent and reserved is what its
 * transactions add up to, and the processor has exactly one effect for each payment that was made.
 */
export async function expectBooksAgree(world: World, agent: TestAgent): Promise<Books> {
  const { db } = world.service;
  const record = (await world.api.ok("getAgent", 200, { token: world.token, id: agent.id })).agent;
  const transactions = await db
    .collection<TransactionDocument>(COLLECTIONS.transactions)
    .find({ agentId: agent.id })
    .toArray();
  const ids = transactions.map(({ _id }) => _id);
  const entries = await db
    .collection<CardLedgerDocument>(COLLECTIONS.sandboxCardLedger)
    .find({ transactionId: { $in: ids } })
    .toArray();
  const books = {
    spentCents: sum(transactions, "approved"),
    reservedCents: sum(transactions, "pending"),
    ledgerCents: entries
      .filter(({ status }) => status === "captured")
      .reduce((total, { amountCents }) => total + amountCents, 0),
    entries: entries.length,
  };
  expect([record.spentCents, record.reservedCents], "the record").to.deep.equal([
    books.spentCents,
    books.reservedCents,
  ]);
  const charged = transactions.filter(({ status }) => status === "approved" || status === "reversed");
  const captured = entries.filter(({ status }) => status === "captured");
  expect(captured.map(({ transactionId }) => transactionId).toSorted(), "the ledger").to.deep.equal(
    charged.map(({ _id }) => _id).toSorted(),
  );
  expect(record.spentCents + record.reservedCents, "within the budget").to.be.at.most(record.budgetCents);
  return books;
}

/** The same of what settles or expires by itself: its transaction is written a moment before its agent's record is. */
export async function booksOnceAgreed(world: World, agent: TestAgent): Promise<Books> {
  await until("the books agree", () => expectBooksAgree(world, agent).catch(() => null), SETTLED_MS);
  return expectBooksAgree(world, agent);
}

export interface Books {
  readonly spentCents: number;
  readonly reservedCents: number;
  /** What the processor captured. */
  readonly ledgerCents: number;
  readonly entries: number;
}

const sum = (transactions: readonly TransactionDocument[], status: string): number =>
  transactions
    .filter((transaction) => transaction.status === status)
    .reduce((total, { amountCents }) => total + amountCents, 0);
