import { expect } from "chai";
import type { LedgerCommand } from "../../src/domain/ledger/commands.ts";
import { judge } from "../../src/domain/ledger/judge.ts";
import type { Ledger } from "../../src/domain/ledger/state.ts";
import { contentOf, KEY, TestAccount } from "./support/account.ts";
import { HOUR, profile } from "./support/actor.ts";
import { ledgerExamples } from "./support/command-examples.ts";

/** A ledger in which every command finds something to do. */
function busy(): { readonly ledger: Ledger; readonly now: number; readonly held: string } {
  const account = new TestAccount({ autoApprovalThresholdCents: 500 });
  account.open("agent-2", profile.teamId);
  const { transactionId: held } = account.pay(600).request;
  account.pay(100);
  account.paid(50);
  account.do({ kind: "pause" });
  return { ledger: account.ledger, now: account.now + HOUR, held };
}

class Cut extends Error {}

/** The same command, but reading it for the `cutAt`-th time throws. What the ledger keeps as it is stays whole. */
function cutting(command: LedgerCommand, cutAt: number): { command: LedgerCommand; reads: () => number } {
  let reads = 0;
  const wrapped = <T extends object>(value: T): T =>
    new Proxy(value, {
      get(target, name, receiver): unknown {
        const found: unknown = Reflect.get(target, name, receiver);
        if (name === "requestId" || typeof name === "symbol") return found;
        reads += 1;
        if (reads === cutAt) throw new Cut(`cut at ${name}`);
        const isKept = ["request", "policy", "by", "outcome"].includes(name);
        return typeof found === "object" && found !== null && !isKept ? wrapped(found) : found;
      },
    });
  return { command: wrapped(command), reads: () => reads };
}

describe("a command that throws half-way", () => {
  for (const kind of Object.keys(ledgerExamples("")) as LedgerCommand["kind"][]) {
    it(`${kind} changes nothing and is answered failed, wherever it breaks off`, () => {
      const before = contentOf(busy().ledger);
      let failures = 0;
      for (let cutAt = 1; ; cutAt += 1) {
        const { held, ledger, now } = busy();
        const { command, reads } = cutting(ledgerExamples(held)[kind], cutAt);
        const reply = judge(ledger, command, now);
        if (reads() < cutAt) break;
        expect(reply, `cut at read ${cutAt}`).to.deep.include({ kind: "failed" });
        expect(contentOf(ledger), `cut at read ${cutAt}`).to.deep.equal(before);
        failures += 1;
      }
      expect(failures).to.be.above(0);
    });
  }

  it("never fails what comes with it: the others of its batch are judged as without it", () => {
    const { held, ledger, now } = busy();
    const { command } = cutting(ledgerExamples(held).replace_team, 9);
    const [pause, failed, resume] = [
      { kind: "pause", agentId: "agent-2" } as const,
      command,
      { kind: "resume", agentId: "agent-2" } as const,
    ].map((each) => judge(ledger, each, now));
    expect([pause?.kind, failed?.kind, resume?.kind]).to.deep.equal([
      "account_status",
      "failed",
      "account_status",
    ]);
  });

  it("that would hold less than nothing is refused, and nothing of it is so", () => {
    const account = new TestAccount();
    const before = contentOf(account.ledger);
    const request = { ...account.request(-700), rulesVersions: { project: 4, team: 4, agent: 4 } };
    const pay = {
      kind: "pay",
      keyId: KEY,
      request,
      approvalWindowSeconds: 60,
      recordsCheckedThrough: 0,
    } as const;
    const { agentId } = profile;
    for (const amountCents of [-700, 0.5]) {
      const broken = { ...pay, agentId, request: { ...request, amountCents } };
      expect(judge(account.ledger, broken, account.now).kind).to.equal("failed");
      expect(contentOf(account.ledger)).to.deep.equal(before);
    }
  });

  it("is judged anew when it comes again: a failure is no first answer", () => {
    const { ledger, now } = busy();
    const whole = {
      kind: "replace_team",
      teamId: profile.teamId,
      version: 1,
      capCents: 5,
      agents: [],
    } as const;
    const { command } = cutting({ ...whole, requestId: "r1" }, 3);
    expect(judge(ledger, command, now).kind).to.equal("failed");
    expect(judge(ledger, { ...whole, requestId: "r1" }, now).kind).to.equal("replaced");
  });
});
