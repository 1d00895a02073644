import { expect } from "chai";
import { KEY, TestAccount } from "./support/account.ts";

/** What has become of an agent since a server has read its record. */
const CHANGES: readonly (readonly [what: string, change: (account: TestAccount) => unknown])[] = [
  ["was paused", (account) => account.do({ kind: "pause" })],
  ["has lost its key", (account) => account.follow({ keyId: null })],
  ["has got another key", (account) => account.follow({ keyId: "akey_2" })],
  ["has got another name", (account) => account.follow({ name: "Renamed" })],
  ["was archived", (account) => account.archive()],
];

/** A payment of 100 by the agent as it was at this revision. */
function reply(account: TestAccount, cachedAgentRevision: number, keyHash = "a new key") {
  const request = account.request(100, { keyHash });
  const pay = {
    kind: "pay",
    keyId: KEY,
    request,
    approvalWindowSeconds: 60,
    recordsCheckedThrough: 0,
  } as const;
  return account.do({ ...pay, cachedAgentRevision });
}

describe("a payment by an agent that its caller remembers", () => {
  for (const [what, change] of CHANGES) {
    it(`that ${what} is neither decided nor answered by what it paid before`, () => {
      const account = new TestAccount();
      const { followedRevision } = account.state;
      account.payReply(account.request(100, { keyHash: "a used key" }));
      change(account);
      const before = structuredClone(account.ledger);
      for (const keyHash of ["a used key", "a new key"]) {
        expect(reply(account, followedRevision, keyHash)).to.deep.equal({ kind: "stale_agent" });
      }
      expect(account.ledger).to.deep.equal(before);
    });
  }

  it("of which the ledger knows nothing is not decided", () => {
    const account = new TestAccount();
    account.ledger.accounts.clear();
    expect(reply(account, 1_000)).to.deep.equal({ kind: "stale_agent" });
  });

  it("that is as it is remembered, or newer than the ledger has it, is decided", () => {
    const account = new TestAccount();
    account.follow({ name: "Renamed" });
    const { followedRevision } = account.state;
    expect(reply(account, followedRevision).kind).to.equal("decided");
    expect(reply(account, followedRevision + 1, "another key").kind).to.equal("decided");
  });
});
