import { expect } from "chai";
import { DUPLICATE_WINDOW_MS } from "../../src/domain/ledger/duplicates.ts";
import { packLedger, unpackLedger } from "../../src/domain/ledger/pack.ts";
import { possibleDuplicate } from "../../src/domain/ledger/duplicates.ts";
import { TestAccount } from "./support/account.ts";
import { NOON, profile } from "./support/actor.ts";

const declined = { status: "failed", code: "CARD_DECLINED", reason: "Declined." } as const;
const SHOP = { fingerprint: "the shop's" };

/** Few enough that a test comes to them. */
const KEYS_MAX = 20;

const newAccount = (policy = {}): TestAccount =>
  new TestAccount({ budgetCents: 1_000_000, ...policy }, NOON, { closedKeys: KEYS_MAX });

/** The ledger's hint about one more payment like those before. */
function hint(account: TestAccount) {
  const reply = account.payReply(account.request(1, SHOP), account.state.closed);
  return account.as("decided", reply).duplicate;
}

/** A payment and its settlement; the ledger remembers its key. */
function closed(account: TestAccount, outcome?: typeof declined) {
  const { request } = account.pay(1, SHOP);
  account.settle(request.transactionId, outcome);
  return { kind: "closed", keyHash: request.keyHash } as const;
}

describe("the payment that another one may duplicate, as the ledger knows it", () => {
  it("is an open one by its id, a closed one by its key, and none for another fingerprint", () => {
    const account = newAccount();
    account.pay(1, { fingerprint: "another shop's" });
    expect(hint(account)).to.equal(undefined);
    const other = newAccount();
    const { transactionId } = other.pay(1, SHOP).request;
    expect(hint(other)).to.deep.equal({ kind: "open", transactionId });
    const third = newAccount();
    const last = closed(third);
    expect(hint(third)).to.deep.equal(last);
  });

  it("is the newest, whether open or closed", () => {
    const account = newAccount({ autoApprovalThresholdCents: 0 });
    const { transactionId } = account.pay(1, SHOP).request;
    account.change({ autoApprovalThresholdCents: null });
    account.now += 1;
    const last = closed(account);
    account.now += 1;
    expect(hint(account)).to.deep.equal(last);
    const next = account.payment(`txn_3`).request.transactionId;
    expect(next).not.to.equal(transactionId);
    expect(hint(account)).to.deep.equal({ kind: "open", transactionId: next });
  });

  it("is at most 10 minutes old, open or closed", () => {
    for (const make of [closed, (account: TestAccount) => account.pay(1, SHOP)]) {
      const account = newAccount();
      make(account);
      account.now += DUPLICATE_WINDOW_MS;
      const before = packLedger(account.ledger, account.now);
      expect(hint(account)).not.to.equal(undefined);
      const later = unpackLedger(before);
      const known = later.accounts.get(profile.agentId);
      if (known === undefined) throw new Error("the account is gone");
      expect(possibleDuplicate(later, known, SHOP.fingerprint, account.now + 1)).to.equal(null);
    }
  });

  it("is none that was denied, cancelled or failed, as far as the ledger knows", () => {
    const account = newAccount({ perTransactionLimitCents: 0 });
    account.pay(1, SHOP);
    account.change({ perTransactionLimitCents: null, autoApprovalThresholdCents: 0 });
    account.resolve("cancel", account.pay(1, SHOP).request.transactionId);
    account.change({ autoApprovalThresholdCents: null });
    const { transactionId } = account.pay(1, SHOP).request;
    account.do({
      kind: "confirm",
      transactionId,
      revision: 0,
      outcome: { result: declined, at: account.now },
    });
    expect(account.payment(transactionId).status).to.equal("failed");
    expect(hint(account)).to.equal(undefined);
  });

  it("a payment of another agent is none", () => {
    const account = newAccount();
    account.open("agent-2", profile.teamId);
    const pay = { keyId: "akey_1", approvalWindowSeconds: 60, recordsCheckedThrough: 0 } as const;
    account.judge({ kind: "pay", agentId: "agent-2", request: account.request(1, SHOP), ...pay });
    expect(hint(account)).to.equal(undefined);
  });

  it("a denied payment is told of it too", () => {
    const account = newAccount();
    const last = closed(account);
    account.change({ budgetCents: 0 });
    expect(hint(account)).to.deep.equal(last);
  });

  it("is unknown while keys that recent were evicted, and no longer once they are older", () => {
    const account = newAccount();
    for (let index = 0; index <= KEYS_MAX; index += 1) account.paid(1);
    expect(hint(account)).to.deep.equal({ kind: "unknown" });
    account.now += DUPLICATE_WINDOW_MS;
    const carried = unpackLedger(packLedger(account.ledger, account.now));
    const known = carried.accounts.get(profile.agentId);
    if (known === undefined) throw new Error("the account is gone");
    expect(possibleDuplicate(carried, known, "new", account.now)).to.deep.equal({ kind: "unknown" });
    expect(possibleDuplicate(carried, known, "new", account.now + 1)).to.equal(null);
    account.open("agent-2", profile.teamId);
    const other = account.ledger.accounts.get("agent-2");
    if (other === undefined) throw new Error("the account is gone");
    expect(possibleDuplicate(account.ledger, other, "new", NOON), "of an agent none of whose").to.equal(null);
  });
});
