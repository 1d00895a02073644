import { expect } from "chai";
import { type Address, getAddress, keccak256, toBytes } from "viem";
import { topUpId } from "../../src/rails/pocket/agent-pockets.ts";
import type { PocketEvent } from "../../src/rails/pocket/reconcile.ts";
import type { SpentEvent } from "../../src/rails/wallet/spent-events.ts";
import type { Books, RecordEntry, TransactionEntry } from "../../lab/chaos/audit/books.ts";
import { capturedInFull } from "../../src/domain/ledger/books.ts";
import type { Increase } from "../../src/domain/ledger/increases.ts";
import { mcOf } from "../../src/domain/money.ts";
import type { CardLedgerDocument } from "../../src/rails/card/network-books.ts";
import { compare } from "../../lab/chaos/audit/compare.ts";
import type { Arrival } from "../../lab/chaos/audit/delivered.ts";
import { RECIPIENTS } from "../../lab/chaos/orders.ts";
import type { PayingAgent } from "../../lab/chaos/tenant.ts";

const WALLET: Address = getAddress("0x1111111111111111111111111111111111111111");
const UNITS_PER_CENT = 10_000n;

const agent: PayingAgent = {
  id: "agent-1",
  name: "rich",
  apiKey: "none",
  wallet: WALLET,
  budgetCents: 1_000,
  fundedCents: 2_000,
  wellFunded: true,
  teamId: "team-1",
  isChanged: true,
  isPlain: true,
  isBrief: false,
};

const charged = (amountCents: number): TransactionEntry["authorizations"] => [
  capturedInFull(mcOf(amountCents)),
];

const transaction = (change: Partial<TransactionEntry>): TransactionEntry => ({
  id: "txn_card",
  agentId: agent.id,
  keyHash: "key-card",
  sequence: 1,
  rail: "card",
  to: "shop",
  amountCents: 100,
  requestedCents: 100,
  authorizations: charged(100),
  status: "approved",
  denialCode: null,
  breach: null,
  isOnCard: false,
  hash: null,
  createdAt: new Date("2027-01-15T08:00:00.000Z"),
  approvedAt: null,
  projectId: "project-1",
  teamId: "team-1",
  ...change,
});

const card = transaction({});
const wallet = transaction({
  id: "txn_wallet",
  keyHash: "key-wallet",
  sequence: 2,
  rail: "wallet",
  to: RECIPIENTS[0],
  amountCents: 200,
  requestedCents: 200,
  authorizations: charged(200),
  hash: "0xaa",
});
const spent: SpentEvent = {
  wallet: WALLET,
  id: keccak256(toBytes(wallet.id)),
  to: RECIPIENTS[0],
  units: 200n * UNITS_PER_CENT,
  hash: "0xaa",
};
const ticketOf = ({ amountCents, id, keyHash: key, rail, status, to }: TransactionEntry) => ({
  order: { agent, key, rail, to, amountCents, url: null },
  transactionId: id,
  status,
  isHeld: false,
  isRefused: false,
  requests: 1,
});
const capture: CardLedgerDocument = {
  _id: "capture/txn_card",
  organizationId: "organization-1",
  transactionId: card.id,
  merchant: "shop",
  amountCents: 100,
  amountMc: mcOf(100),
  authorizedMc: mcOf(100),
  isOpen: false,
  status: "captured",
  createdAt: card.createdAt,
  settlesAt: null,
};
const arrival = (type: string, record: string): Arrival => ({
  deliveryId: `dlv_${type}_${record}`,
  type,
  record,
  createdAt: "2027-01-15T08:00:00.000Z",
  agentId: agent.id,
  teamId: "team-1",
  body: `${type} ${record}`,
  isAcknowledged: true,
});
const held = {
  id: "apr_wallet",
  transactionId: wallet.id,
  agentId: agent.id,
  isDecidedByPerson: true,
  resolution: "approved",
} as const;
const arrivals = [
  arrival("agent.created", agent.id),
  arrival("transaction.completed", card.id),
  arrival("transaction.completed", wallet.id),
  arrival("approval.requested", held.id),
  arrival("approval.completed", held.id),
];
const entryOf = ({ deliveryId: id }: Arrival) => ({ id, status: "succeeded" });
const delivered = { agentIds: [agent.id], arrivals, forged: [], deliveries: arrivals.map(entryOf) };
/** What came, and was recorded, beside what should. */
const toldMore = (more: Arrival): Partial<Books> => ({
  delivered: [
    { ...delivered, arrivals: [...arrivals, more], deliveries: [...delivered.deliveries, entryOf(more)] },
  ],
});
const fewerArrivals = arrivals.slice(1);
const record: RecordEntry = {
  agentId: agent.id,
  name: agent.name,
  keyId: "akey_1",
  state: "active",
  policy: {
    budgetCents: 1_000,
    autoApprovalThresholdCents: null,
    perTransactionLimitCents: null,
    dailySpendLimitCents: null,
    hourlyVelocityLimit: null,
    dailyVelocityLimit: null,
  },
  policyVersion: 1,
  spentCents: 300,
  reservedCents: 0,
};
const account = { ...record, sequence: 2, openCount: 0 };
const life = {
  agentId: agent.id,
  name: agent.name,
  keyId: "akey_1",
  state: "active",
  isWindowOpen: false,
} as const;
const totals = { spentMc: mcOf(300), reservedMc: 0 };
const cap = { capCents: 300, version: 2 };
const level = { projectId: "project-1", teamId: "team-1", cap, recordedCap: cap, totals };
const archived = { ...record, state: "archived", keyId: null } as const;

const yearOf = (used: number, value = 300) => [{ level: "agent", limit: "year", value, used }] as const;
const decision = { id: card.id, outcome: "approved", amountCents: 100, limits: yearOf(200) } as const;
const raise = {
  id: "raise-1",
  agentId: agent.id,
  teamId: "team-1",
  projectId: "project-1",
  status: "granted",
  raised: [{ level: "agent", limit: "year", fromCents: 250, toCents: 300, endsAt: null }],
} as const;
const increase: Increase = { id: raise.id, limit: "year", cents: 50, endsAt: 1 };
const increased = (...increases: readonly Increase[]): Partial<Books> => ({
  accounts: [{ ...account, policy: { ...account.policy, increases } }],
  records: [{ ...record, policy: { ...record.policy, increases } }],
});
const restricted = {
  path: "/v1/agents/a/restrictions",
  agentIds: [agent.id],
  never: [card.to],
  onlyRail: null,
  from: card.createdAt.getTime() - 1,
  until: card.createdAt.getTime() + 1,
};

const stoppedAround = (at: Date) => ({
  agentId: agent.id,
  from: at.getTime() - 1,
  until: at.getTime() + 1,
  isPaused: true,
});

const recordedSpend = { purpose: "spend/txn_wallet/1", nonce: 0, hash: "0xaa", isReplaced: false } as const;

const good: Books = {
  agents: [agent],
  tickets: [ticketOf(card), ticketOf(wallet)],
  transactions: [card, wallet],
  cardLedger: [capture],
  sent: [{ transactionId: card.id, at: card.createdAt }],
  accounts: [account],
  actors: [life],
  records: [record],
  levels: [level],
  caps: [{ projectId: "project-1", teamId: "team-1", capCents: 300 }],
  stopped: [],
  restricted: [],
  spendLimits: [{ of: agent.id, limit: "year", mostCents: 250 }],
  decisions: [decision],
  raises: [raise],
  approvals: [held],
  delivered: [delivered],
  chain: {
    spent: [spent],
    pockets: { pockets: [], signed: [], events: [] },
    wallets: [
      { agentId: agent.id, mintedUnits: 2_000n * UNITS_PER_CENT, balanceUnits: 1_800n * UNITS_PER_CENT },
    ],
    supplyUnits: 2_000n * UNITS_PER_CENT,
    heldUnits: 2_000n * UNITS_PER_CENT,
    nonce: 1,
    recorded: [recordedSpend],
    foreign: [],
    withoutReceipt: [],
  },
};

const onChain = (change: Partial<Books["chain"]>): Partial<Books> => ({
  chain: { ...good.chain, ...change },
});

const POCKET: Address = getAddress("0x2222222222222222222222222222222222222222");
const nonce = keccak256(toBytes("authorization"));
const purchase: PocketEvent = {
  pocket: POCKET,
  nonce,
  to: RECIPIENTS[0],
  units: spent.units,
  hash: "0xaa",
  by: RECIPIENTS[1],
};

/** A payment that is bought from a shop: the wallet has topped up its pocket, which has paid. */
const fromPocket = (events: readonly PocketEvent[]): Partial<Books> => {
  const order = { ...ticketOf(wallet).order, url: "http://shop/" };
  const signed = [
    { transactionId: wallet.id, pocket: POCKET, nonce, to: purchase.to, units: purchase.units },
  ];
  const pockets = [{ agentId: agent.id, address: POCKET, topUps: 1, sweeps: new Set<never>() }];
  const topUp = { ...spent, id: keccak256(toBytes(topUpId(agent.id, 1))), to: POCKET, hash: "0xbb" } as const;
  return {
    tickets: [ticketOf(card), { ...ticketOf(wallet), order }],
    ...onChain({ spent: [topUp], pockets: { pockets, signed, events } }),
  };
};

/** Books that something is wrong with. */
const WRONG: Readonly<Record<string, Partial<Books>>> = {
  "a payment without its capture": { cardLedger: [] },
  "a payment that was captured twice": { cardLedger: [capture, { ...capture, _id: "capture/again" }] },
  "an unknown capture": {
    cardLedger: [capture, { ...capture, _id: "capture/txn_other", transactionId: "txn_other" }],
  },
  "a capture of another amount": { cardLedger: [{ ...capture, amountMc: mcOf(101) }] },
  "a denied payment that was captured": {
    transactions: [{ ...card, status: "denied", authorizations: [] }, wallet],
  },
  "a wallet payment that the chain has not made": onChain({ spent: [] }),
  "a wallet payment that the chain has made twice": onChain({ spent: [spent, { ...spent, hash: "0xbb" }] }),
  "a wallet payment to another recipient": onChain({ spent: [{ ...spent, to: RECIPIENTS[1] }] }),
  "a wallet payment of another amount": onChain({ spent: [{ ...spent, units: 1n }] }),
  "a wallet payment from another wallet": onChain({ spent: [{ ...spent, wallet: RECIPIENTS[2] }] }),
  "a purchase that its pocket has not paid": fromPocket([]),
  "a purchase that its pocket has paid twice": fromPocket([purchase, { ...purchase, hash: "0xcc" }]),
  "a pocket's money that left for no purchase": fromPocket([
    purchase,
    { ...purchase, units: 1n, nonce: keccak256(toBytes("another")), hash: "0xcc" },
  ]),
  "a failed payment that the chain has made": {
    transactions: [card, { ...wallet, status: "failed", denialCode: "RAIL_UNAVAILABLE", authorizations: [] }],
  },
  "a balance that does not follow from what was spent": onChain({
    wallets: [{ agentId: agent.id, mintedUnits: 2_000n * UNITS_PER_CENT, balanceUnits: 0n }],
  }),
  "tokens that are nowhere": onChain({ heldUnits: 0n }),
  "a nonce that is not in the chain": onChain({ nonce: 0 }),
  "a gap in the nonces": onChain({ recorded: [{ ...recordedSpend, nonce: 1 }] }),
  "a nonce that was recorded twice": onChain({ recorded: [recordedSpend, recordedSpend] }),
  "a foreign transaction that is not counted": onChain({ nonce: 2 }),
  "a recorded transaction without a receipt": onChain({ withoutReceipt: ["0xaa"] }),
  "an account with other totals": { accounts: [{ ...account, spentCents: 299 }] },
  "an account that keeps something on hold": { accounts: [{ ...account, reservedCents: 1 }] },
  "an account with something open": { accounts: [{ ...account, openCount: 1 }] },
  "an account that has decided more than there is": { accounts: [{ ...account, sequence: 3 }] },
  "an account of another policy than the record's": { accounts: [{ ...account, policyVersion: 2 }] },
  "an account that is not there": { accounts: [] },
  "a key that pays and is not the record's": { accounts: [{ ...account, keyId: "akey_2" }] },
  "an actor with another key": { actors: [{ ...life, keyId: null }] },
  "an actor that does not run": { actors: [] },
  "an archived agent's account": { records: [archived], actors: [] },
  "an archived agent's actor that runs on": {
    records: [archived],
    accounts: [],
    actors: [{ ...life, keyId: null, state: "archived" }],
  },
  "a record with other totals": { records: [{ ...record, spentCents: 1 }] },
  "a cap that was passed": { caps: [{ projectId: "project-1", teamId: "team-1", capCents: 299 }] },
  "a team whose ledger has other sums": { levels: [{ ...level, totals: { ...totals, spentMc: 1 } }] },
  "a team that keeps something on hold": { levels: [{ ...level, totals: { ...totals, reservedMc: 1 } }] },
  "a project whose ledger has other sums": {
    levels: [{ ...level, teamId: null, totals: { ...totals, spentMc: mcOf(301) } }],
  },
  "a record with another cap": { levels: [{ ...level, recordedCap: { capCents: null, version: 1 } }] },
  "a payment that was decided while its agent was paused": {
    stopped: [stoppedAround(card.createdAt)],
  },
  "a capture that MongoDB's log does not have": { sent: [] },
  "a payment that was sent while its agent was paused": {
    stopped: [stoppedAround(new Date(card.createdAt.getTime() + 10))],
    sent: [{ transactionId: card.id, at: new Date(card.createdAt.getTime() + 10) }],
  },
  "a decision above a period's limit": { decisions: [{ ...decision, limits: yearOf(201) }] },
  "a limit above what its owner set and raises added": {
    decisions: [{ ...decision, limits: yearOf(0, 301) }],
  },
  "spending in a period above its limit": { raises: [{ ...raise, status: "refused" }], decisions: [] },
  "a raise that was granted twice": increased(increase, increase),
  "an increase that nobody granted": increased({ ...increase, cents: 51 }),
  "a payment that restrictions in force forbade": { restricted: [restricted] },
  "a payment on a rail that restrictions in force forbade": {
    restricted: [{ ...restricted, never: [], onlyRail: "card" }],
  },
  "an approval that restrictions in force forbade": {
    restricted: [{ ...restricted, from: 1, until: 3 }],
    transactions: [{ ...card, approvedAt: new Date(2) }, wallet],
  },
  "a budget that was passed": { agents: [{ ...agent, budgetCents: 299 }] },
  "a payment that was answered and is not there": { transactions: [wallet], cardLedger: [] },
  "an unrequested payment": { tickets: [ticketOf(card)] },
  "a payment that was never answered": {
    tickets: [ticketOf(card), { ...ticketOf(wallet), transactionId: null }],
  },
  "two keys with one payment": { tickets: [ticketOf(card), ticketOf(wallet), ticketOf(card)] },
  "one key with two payments": { transactions: [card, { ...wallet, keyHash: card.keyHash }] },
  "a payment that is still pending": { transactions: [card, { ...wallet, status: "pending" }] },
  "a change that was never delivered": {
    delivered: [{ ...delivered, arrivals: fewerArrivals, deliveries: fewerArrivals.map(entryOf) }],
  },
  "a change that was never acknowledged": {
    delivered: [{ ...delivered, arrivals: arrivals.map((each) => ({ ...each, isAcknowledged: false })) }],
  },
  "a change that was delivered under two ids": toldMore({
    ...arrival("transaction.completed", card.id),
    deliveryId: "dlv_again",
  }),
  "a delivery that came with another body": {
    delivered: [{ ...delivered, arrivals: arrivals.flatMap((each) => [each, { ...each, body: "another" }]) }],
  },
  "a delivery of what never happened": toldMore(arrival("transaction.denied", card.id)),
  "a delivery of another organization's change": toldMore(arrival("agent.created", "agent-2")),
  "an unrequested pause": toldMore(arrival("agent.paused", agent.id)),
  "a delivery that is not genuine": { delivered: [{ ...delivered, forged: ["a signature does not fit"] }] },
  "a delivery that did not come to a good end": {
    delivered: [
      { ...delivered, deliveries: delivered.deliveries.map((each) => ({ ...each, status: "failed" })) },
    ],
  },
  "a delivery without a record": { delivered: [{ ...delivered, deliveries: [] }] },
  "a decision that is missing": { transactions: [card, { ...wallet, sequence: 3 }] },
};

describe("the audit of the chaos run", () => {
  it("finds nothing in books that agree", () => {
    expect(compare(good)).to.deep.equal([]);
  });

  it("finds nothing in a granted increase, nor in a payment after restrictions were lifted", () => {
    const lifted = { ...restricted, from: 1, until: 2 };
    expect(compare({ ...good, ...increased(increase), restricted: [lifted] })).to.deep.equal([]);
  });

  it("finds nothing in a purchase that its pocket has paid once", () => {
    expect(compare({ ...good, ...fromPocket([purchase]) })).to.deep.equal([]);
  });

  it("finds nothing in deliveries that came again as they were", () => {
    const again = [...arrivals.map((each) => ({ ...each, isAcknowledged: false })), ...arrivals];
    expect(compare({ ...good, delivered: [{ ...delivered, arrivals: again }] })).to.deep.equal([]);
  });

  it("finds nothing in a foreign transaction's nonce, before the service's or in its place", () => {
    const before = { nonce: 2, recorded: [{ ...recordedSpend, nonce: 1 }] };
    const inItsPlace = {
      nonce: 2,
      recorded: [
        { ...recordedSpend, isReplaced: true },
        { ...recordedSpend, nonce: 1 },
      ],
    };
    const foreign = [{ nonce: 0, hash: "0xff" }] as const;
    for (const change of [before, inItsPlace])
      expect(compare({ ...good, ...onChain({ ...change, foreign }) })).to.deep.equal([]);
  });

  it("finds nothing in an agent that was archived while it was paused", () => {
    const ended = [arrival("agent.paused", agent.id), arrival("agent.archived", agent.id)].map(
      (each, index) => ({ ...each, createdAt: `2027-01-15T08:00:0${String(index + 1)}.000Z` }),
    );
    const all = [...arrivals, ...ended];
    const books = { ...good, records: [archived], accounts: [], actors: [] };
    const ending = { ...delivered, arrivals: all, deliveries: all.map(entryOf) };
    expect(compare({ ...books, delivered: [ending] })).to.deep.equal([]);
  });

  for (const [what, change] of Object.entries(WRONG)) {
    it(`finds ${what}`, () => {
      expect(compare({ ...good, ...change })).not.to.deep.equal([]);
    });
  }
});
