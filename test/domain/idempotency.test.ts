import { expect } from "chai";
import type { PaymentRequest } from "../../src/domain/ledger/payment.ts";
import { contentOf, TestAccount } from "./support/account.ts";
import { NOON, profile, SECOND } from "./support/actor.ts";

/** The same order again, as a server would send it: new ids, the same hashes. */
const again = (request: PaymentRequest, change: Partial<PaymentRequest> = {}): PaymentRequest => ({
  ...request,
  transactionId: "txn_again",
  approvalId: "apr_again",
  ...change,
});

/** Few enough that a test comes to them. */
const KEYS_MAX = 40;
const OPEN_MAX = 10;

const newAccount = (policy = {}): TestAccount =>
  new TestAccount({ budgetCents: 1_000_000, ...policy }, NOON, {
    closedKeys: KEYS_MAX,
    openOfAgent: OPEN_MAX,
    openOfProject: 5 * OPEN_MAX,
  });

const paid = (account: TestAccount, count: number): PaymentRequest[] =>
  Array.from({ length: count }, () => account.paid(1).request);

describe("idempotency keys: a replay never decides again", () => {
  it("a key of an open payment answers that payment as it is now", () => {
    const account = newAccount();
    const { request } = account.pay(100);
    const { payment } = account.as("replayed", account.payReply(again(request)));
    expect(payment).to.equal(account.payment(request.transactionId));
    expect(account.totals()).to.deep.equal({ spent: 0, reserved: 100, today: 100, count: 1 });
  });

  it("a key of a closed payment is answered by the records", () => {
    const account = newAccount();
    const { request } = account.paid(100);
    expect(account.payReply(again(request))).to.deep.equal({ kind: "recorded" });
    expect(account.payReply(again(request, { payloadHash: "another" }))).to.deep.equal({ kind: "recorded" });
  });

  it("the same key with another payload is told apart while the first is open", () => {
    const account = newAccount({ perTransactionLimitCents: 100 });
    for (const request of [account.pay(100).request, account.pay(101).request]) {
      const reply = account.as("replayed", account.payReply(again(request, { payloadHash: "another" })));
      expect(reply).to.include({ transactionId: request.transactionId, samePayload: false });
    }
    expect(account.state.sequence).to.equal(2);
  });

  it("a denial is remembered too: a replay is denied again although the limit was raised since", () => {
    const account = newAccount({ perTransactionLimitCents: 100 });
    const { request } = account.pay(101);
    account.change({ perTransactionLimitCents: null });
    const { payment } = account.as("replayed", account.payReply(again(request)));
    expect(payment.denial?.code).to.equal("PER_TRANSACTION_LIMIT_EXCEEDED");
    account.close(request.transactionId);
    expect(account.payReply(again(request)).kind).to.equal("recorded");
  });

  it("comes before everything else: paused, no key, old rules, too many open", () => {
    const account = newAccount();
    const { request } = account.pay(0);
    for (let open = 1; open < OPEN_MAX; open += 1) account.pay(0);
    account.do({ kind: "pause" });
    account.follow({ keyId: null });
    account.judge({ kind: "follow_rules", teamId: null, version: 5 });
    expect(account.payReply(again(request)).kind).to.equal("replayed");
  });

  it("a replay changes nothing of the ledger", () => {
    const account = newAccount();
    const { request } = account.pay(100);
    const { request: closed } = account.paid(1);
    const before = contentOf(account.ledger);
    account.now += SECOND;
    account.payReply(again(request));
    account.payReply(again(closed));
    expect(contentOf(account.ledger)).to.deep.equal(before);
  });

  it("the same key of two agents is two keys", () => {
    const account = newAccount();
    account.open("agent-2", profile.teamId);
    const { request } = account.paid(1);
    const pay = { keyId: "akey_1", approvalWindowSeconds: 60, recordsCheckedThrough: 0 } as const;
    const reply = account.judge({ kind: "pay", agentId: "agent-2", request: again(request), ...pay });
    expect(reply.kind).to.equal("decided");
  });
});

describe("idempotency keys: what the ledger has forgotten is looked up", () => {
  it("it remembers so many of all its agents, and forgets the oldest, a few at once", () => {
    const account = newAccount();
    const requests = paid(account, KEYS_MAX);
    for (const request of requests) expect(account.payReply(again(request)).kind).to.equal("recorded");
    account.paid(1);
    const forgotten = requests.filter(
      (request) => account.payReply(again(request)).kind === "records_check_required",
    );
    expect(forgotten).to.deep.equal(requests.slice(0, KEYS_MAX / 20));
  });

  it("a key that it does not know is decided only after a look-up of all that is forgotten", () => {
    const account = newAccount();
    paid(account, KEYS_MAX + 10);
    const request = account.request(1);
    const { closed } = account.as("records_check_required", account.payReply(request));
    expect(account.payReply(request, 9).kind).to.equal("records_check_required");
    expect(account.payReply(request, closed).kind).to.equal("decided");
  });

  it("before anything is forgotten no payment needs a look-up", () => {
    const account = newAccount();
    paid(account, KEYS_MAX);
    expect(account.payReply(account.request(1), 0).kind).to.equal("decided");
  });

  it("an agent none of whose keys is forgotten needs none, though another's are", () => {
    const account = newAccount();
    paid(account, KEYS_MAX + 10);
    account.open("agent-2", profile.teamId);
    const pay = { keyId: "akey_1", approvalWindowSeconds: 60, recordsCheckedThrough: 0 } as const;
    const reply = account.judge({ kind: "pay", agentId: "agent-2", request: account.request(1), ...pay });
    expect(reply.kind).to.equal("decided");
  });

  it("a look-up that began before a payment closed does not count once that payment is forgotten", () => {
    const account = newAccount();
    const { request } = account.pay(1);
    const { closed } = account.state;
    account.settle(request.transactionId);
    paid(account, KEYS_MAX);
    // The caller looked before the first payment was in the records, and found nothing.
    expect(account.payReply(again(request), closed).kind).to.equal("records_check_required");
  });

  it("keys of open payments are never forgotten, however many payments follow", () => {
    const account = newAccount({ autoApprovalThresholdCents: 100 });
    const held = Array.from({ length: OPEN_MAX - 1 }, () => account.pay(101).request);
    paid(account, 3 * KEYS_MAX);
    for (const request of held) {
      const reply = account.as("replayed", account.payReply(again(request), account.state.closed));
      expect(reply.payment.request).to.deep.equal(request);
    }
    expect(account.ledger.keys.count).to.be.at.most(KEYS_MAX);
  });

  it("one that closes late is forgotten late: a look-up from before its closing is refused then", () => {
    const account = newAccount();
    const late = account.pay(1).request;
    paid(account, KEYS_MAX + 20);
    const before = account.state.closed;
    account.settle(late.transactionId);
    expect(account.payReply(again(late), account.state.closed).kind).to.equal("recorded");
    paid(account, 2 * KEYS_MAX);
    expect(account.payReply(again(late), before).kind).to.equal("records_check_required");
  });

  it("keys of an agent whose account is no more are forgotten with it", () => {
    const account = newAccount();
    account.open("agent-2", profile.teamId);
    paid(account, 10);
    account.archive();
    const { agentId, revision } = account.state;
    account.judge({ kind: "confirm_records", records: [{ agentId, revision }] });
    expect(account.ledger.accounts.has(agentId)).to.equal(false);
    expect([account.ledger.keys.count, account.ledger.keys.byAgent.size]).to.deep.equal([0, 0]);
  });
});

describe("open payments", () => {
  it("only so many of an agent; the next leaves no trace, and is accepted once one has closed", () => {
    const account = newAccount();
    const first = account.pay(1).request;
    for (let open = 1; open < OPEN_MAX; open += 1) account.pay(1);
    const before = contentOf(account.ledger);
    const request = account.request(1);
    expect(account.payReply(request)).to.include({ kind: "too_many_open", of: "agent", bound: "payments" });
    expect(contentOf(account.ledger)).to.deep.equal(before);
    account.settle(first.transactionId);
    expect(account.payReply(request).kind).to.equal("decided");
  });

  it("only so many of a project: an agent with none open is told so, and nothing is left of it", () => {
    const account = newAccount();
    account.open("agent-2", profile.teamId);
    const pay = {
      kind: "pay",
      keyId: "akey_1",
      approvalWindowSeconds: 60,
      recordsCheckedThrough: 0,
    } as const;
    for (let open = 0; open < 5 * OPEN_MAX; open += 1) {
      account.open(`agent-${open}`, profile.teamId);
      account.judge({ ...pay, agentId: `agent-${open}`, request: account.request(1) });
    }
    account.open("one more", profile.teamId);
    const reply = account.judge({ ...pay, agentId: "one more", request: account.request(1) });
    expect(reply).to.include({ kind: "too_many_open", of: "project", bound: "payments" });
  });

  it("a denied payment is open until its record is confirmed, and closes without an outcome", () => {
    const account = newAccount({ budgetCents: 0 });
    const { request, denial } = account.pay(1);
    const { transactionId } = request;
    expect(denial?.code).to.equal("BUDGET_EXCEEDED");
    expect(account.isOpen(transactionId)).to.equal(true);
    account.do({ kind: "confirm", transactionId, revision: 1, outcome: null });
    expect(account.isOpen(transactionId)).to.equal(false);
  });

  it("sequence numbers count all payments, denied ones too, from 1 and without a gap", () => {
    const account = newAccount({ perTransactionLimitCents: 1 });
    account.now += SECOND;
    expect([1, 2, 1, 2].map((amount) => account.pay(amount).sequence)).to.deep.equal([1, 2, 3, 4]);
  });
});

describe("the request ids of what people and backends ask for", () => {
  it("what comes again gets its first answer, and changes nothing", () => {
    const account = newAccount();
    const change = { kind: "change_policy", patch: { budgetCents: 5 }, version: 1, requestId: "r1" } as const;
    const pause = { kind: "pause", requestId: "r2" } as const;
    const first = [account.do(change), account.do(pause)];
    const before = contentOf(account.ledger);
    expect([account.do(change), account.do(pause)]).to.deep.equal(first);
    expect(contentOf(account.ledger)).to.deep.equal(before);
  });

  it("a resolution that comes again says what it did, and the payment as it is by now", () => {
    const account = newAccount({ autoApprovalThresholdCents: 0 });
    const { transactionId } = account.pay(10).request;
    const deny = {
      kind: "deny",
      transactionId,
      by: { userId: "u", name: "A" },
      feedback: "",
      proof: "",
    } as const;
    const first = account.as("payment", account.do({ ...deny, requestId: "r1" }));
    expect(account.as("payment", account.do({ ...deny, requestId: "r1" }))).to.deep.equal(first);
    expect(account.as("payment", account.do({ ...deny, requestId: "r2" })).changed).to.equal(false);
    account.close(transactionId);
    expect(account.do({ ...deny, requestId: "r1" })).to.deep.equal({ kind: "not_open" });
  });

  it("a replaced budget that comes again names the caps whose records don't show them yet", () => {
    const account = newAccount();
    const { teamId } = profile;
    const replace = {
      kind: "replace_project",
      version: 1,
      capCents: 100,
      teams: [{ teamId, capCents: 50 }],
      requestId: "r1",
    } as const;
    const first = account.as("replaced", account.judge(replace));
    expect(first.caps.map(({ cap }) => cap)).to.deep.equal([
      { capCents: 100, version: 2 },
      { capCents: 50, version: 2 },
    ]);
    expect(account.judge(replace)).to.deep.equal(first);
    account.judge({ kind: "confirm_caps", caps: [{ teamId: null, version: 2 }] });
    const repeated = account.as("replaced", account.judge(replace));
    expect([repeated.version, repeated.caps.map((cap) => cap.teamId)]).to.deep.equal([2, [teamId]]);
  });

  it("answers are kept for five minutes, and the 256 newest of them", () => {
    const account = newAccount();
    const ask = (number: number) => account.do({ kind: "pause", requestId: `r${number}` });
    for (let number = 0; number < 300; number += 1) ask(number);
    expect([...account.ledger.replies.keys()]).to.deep.equal(
      Array.from({ length: 256 }, (_, at) => `r${at + 44}`),
    );
    account.now += 300 * SECOND;
    ask(300);
    expect([...account.ledger.replies.keys()]).to.deep.equal(["r300"]);
  });
});
