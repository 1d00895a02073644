import { expect } from "chai";
import { compareAccountRecord } from "../../server/admin/reconcile/agent-records.ts";
import { summaryOf } from "../../src/domain/ledger/state.ts";
import { TestAccount } from "../domain/support/account.ts";

describe("an agent's record that is ahead of its ledger", () => {
  it("is no difference while it shows the charge that the ledger foresees, to the cent", () => {
    const account = new TestAccount({ budgetCents: 1_000 });
    account.pay(100);
    const { confirmedRevision, keyId, name, sequence, teamId } = account.state;
    const known = summaryOf(account.state);
    const { agentId: _id, policy, policyVersion, revision } = known;
    const snapshot = { ...known, confirmedRevision, keyId, name, sequence, teamId, open: [] };
    const record = { _id, policy, policyVersion, archivedAt: null, lifecycle: "active" } as const;
    const compare = (spentCents: number, accountRevision: number) =>
      compareAccountRecord(snapshot, { ...record, spentCents, reservedCents: 0, accountRevision }).map(
        ({ what }) => what,
      );
    expect(compare(100, revision + 1)).to.deep.equal([]);
    expect(compare(99, revision + 1)).to.deep.equal(["spentCents in the agent's record"]);
    expect(compare(100, revision + 2)).to.deep.equal(["the revision of the agent's account in its record"]);
  });
});
