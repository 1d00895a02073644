import { expect } from "chai";
import { keccak256, toHex } from "viem";
import { comparePockets, type PocketEvent, type PocketSources } from "../../src/rails/pocket/reconcile.ts";
import type { PaymentEntry } from "../../src/rails/findings.ts";
import { randomAddress } from "../chain/support.ts";

const hash = (text: string) => keccak256(toHex(text));
const pocket = randomAddress();
const shop = randomAddress();

const payment: PaymentEntry = {
  id: "txn_1",
  agentId: "agt_1",
  rail: "wallet",
  to: shop,
  amountCents: 2,
  authorizations: [],
  status: "approved",
  hash: hash("settled"),
  isOnCard: false,
};
const event: PocketEvent = {
  pocket,
  nonce: hash("one"),
  to: shop,
  units: 15_000n,
  hash: hash("settled"),
  by: shop,
};
const sound: PocketSources = {
  pockets: [{ agentId: "agt_1", address: pocket, topUps: 1, sweeps: new Set([hash("sweep")]) }],
  signed: [{ transactionId: "txn_1", pocket, nonce: hash("one"), to: shop, units: 15_000n }],
  events: [event],
  payments: [payment],
  unitsPerCent: 10_000n,
};

const idsIn = (change: Partial<PocketSources>) => comparePockets({ ...sound, ...change }).map(({ id }) => id);

describe("reconcile holds what left a pocket against the purchases", () => {
  it("finds nothing where each purchase is one transfer, and the rest was the owner's to take", () => {
    const back = { ...event, nonce: hash("sweep"), hash: hash("back") };
    const owners = { ...event, nonce: null, hash: hash("pulled"), by: randomAddress() };
    expect(idsIn({ events: [event, back, owners] })).to.deep.equal([]);
  });

  it("agrees where a node had lost the event when the chain said that the purchase was paid", () => {
    expect(idsIn({ payments: [{ ...payment, hash: null }] })).to.deep.equal([]);
    const unknown = { payments: [{ ...payment, hash: null }] };
    expect(idsIn({ ...unknown, events: [{ ...event, units: 20_001n }] })).to.deep.equal(["txn_1"]);
  });

  it("names a purchase that was not paid, or twice, or to another, or by another transaction", () => {
    const second = { ...sound.signed[0], transactionId: "txn_1", nonce: hash("two"), pocket, to: shop };
    const signed = [...sound.signed, { ...second, units: 15_000n }];
    const twice = [event, { ...event, nonce: hash("two"), hash: hash("again") }];
    expect(idsIn({ events: [] })).to.deep.equal(["txn_1"]);
    expect(idsIn({ events: twice, signed })).to.deep.equal(["txn_1"]);
    expect(idsIn({ events: [{ ...event, to: randomAddress() }] })).to.deep.equal(["txn_1"]);
    expect(idsIn({ events: [{ ...event, units: 20_001n }] })).to.deep.equal(["txn_1"]);
    expect(idsIn({ payments: [{ ...payment, hash: hash("other") }] })).to.deep.equal(["txn_1"]);
  });

  it("names money that left for a purchase that failed, or for none", () => {
    expect(idsIn({ payments: [{ ...payment, status: "failed" }] })).to.deep.equal(["txn_1"]);
    expect(idsIn({ signed: [], payments: [] })).to.deep.equal([pocket]);
    const stolen = { ...event, nonce: null, hash: hash("stolen"), by: pocket };
    expect(idsIn({ events: [event, stolen] })).to.deep.equal([pocket]);
  });
});
