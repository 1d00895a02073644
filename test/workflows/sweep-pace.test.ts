import { expect } from "chai";
import type { UnfinishedPayment } from "../../activities/types.ts";
import { type Rail, type RailOutcome, settle, type StoredPayment } from "../../src/domain/ledger/payment.ts";
import type { LedgerCommand } from "../../src/domain/ledger/commands.ts";
import { confirmationOf, type Execution } from "../../src/messages/ledger.ts";
import { LedgerActor } from "../../workflows/ledger-actor.ts";
import { TestAccount } from "../domain/support/account.ts";
import { profile } from "../domain/support/actor.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const settings = { sweepAfterMs: 10 * SECOND };
const SETTLED: RailOutcome = { status: "settled" };
const { agentId } = profile;

/** A ledger's actor over rails that are down or up, on a clock that jumps from one thing that is due to the next. */
class Sweeping {
  readonly account = new TestAccount();
  readonly tries: { readonly id: string; readonly at: number }[] = [];
  /** What a rail has no answer for, by payment or rail. */
  readonly broken = new Set<string>();
  readonly hanging = new Set<Rail>();
  /** What the agent's actor has received. */
  readonly told: { readonly revision: number; readonly status: string }[] = [];
  onTold: () => Promise<void> = () => Promise.resolve();
  readonly #actor: LedgerActor;
  readonly #began = this.account.now;

  constructor() {
    const { account } = this;
    this.#actor = new LedgerActor(account.ledger, settings, {
      activities: {
        executePayments: (rail, { payments }) => this.#execute(rail, payments),
        mirrorLimits: ({ limits }) => Promise.resolve(limits.map((each) => each.agentId)),
        tellActors: async ({ accounts }) => {
          for (const { revision, status } of accounts) this.told.push({ revision, status });
          await this.onTold();
          return accounts.map((each) => each.agentId);
        },
        writeAccounts: ({ accounts }) => Promise.resolve(accounts.map((each) => each.agentId)),
        writeCaps: () => Promise.resolve(),
      },
      judge: (command) => account.judge(command),
      now: () => account.now,
      onFailed: () => undefined,
      isEnding: () => false,
      emitCommand: () => undefined,
    });
  }

  /** Decided, by a server that is gone after it. */
  pay(rail: Rail = "card"): string {
    const { transactionId } = this.account.pay(10, { rail }).request;
    this.#actor.sweeps.recheck();
    return transactionId;
  }

  submit(command: LedgerCommand): void {
    this.#actor.submit([command]);
  }

  /** Another agent's payment by this rail has come to its end. */
  succeed(rail: Rail): void {
    const payment = this.account.payment(this.pay(rail));
    this.submit(confirmationOf(agentId, done(payment, this.account.now)));
  }

  async skip(ms: number): Promise<void> {
    const until = this.account.now + ms;
    for (;;) {
      const { sweeps } = this.#actor;
      if (sweeps.nextAt > until) break;
      this.account.now = Math.max(this.account.now, sweeps.nextAt);
      sweeps.sweep(this.account.now);
      // What it has begun ends at once, in some turns.
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.account.now = until;
  }

  /** When a payment was tried, in seconds from the beginning. */
  triedAt(id: string): number[] {
    return this.tries.filter((each) => each.id === id).map(({ at }) => (at - this.#began) / SECOND);
  }

  #execute(rail: Rail, payments: readonly UnfinishedPayment[]): Promise<readonly Execution[]> {
    const { now } = this.account;
    for (const { payment } of payments) this.tries.push({ id: payment.request.transactionId, at: now });
    if (this.hanging.has(rail)) return new Promise(() => undefined);
    return Promise.resolve(
      payments.map(({ payment }): Execution => {
        const { transactionId } = payment.request;
        const isBroken = this.broken.has(rail) || this.broken.has(transactionId);
        if (isBroken) return { transactionId, revision: 0, outcome: null, hasFailed: true };
        return done(payment, now);
      }),
    );
  }
}

function done(decided: StoredPayment, at: number): Execution {
  const payment = settle(decided, SETTLED, at);
  const { transactionId } = payment.request;
  return { transactionId, revision: payment.revision, outcome: { result: SETTLED, at } };
}

describe("payments that a ledger could not carry out", () => {
  it("are tried ever less often while their rail is down, and every 320 s in the end", async () => {
    const sweeping = new Sweeping();
    sweeping.broken.add("card");
    const id = sweeping.pay();
    await sweeping.skip(20 * MINUTE);
    expect(sweeping.triedAt(id)).to.deep.equal([10, 20, 40, 80, 160, 320, 640, 960]);
  });

  it("are tried 10 s after the last time once their rail has answered again", async () => {
    const sweeping = new Sweeping();
    sweeping.broken.add("card");
    const id = sweeping.pay();
    await sweeping.skip(12 * MINUTE);
    sweeping.broken.clear();
    sweeping.succeed("wallet");
    await sweeping.skip(MINUTE);
    expect(sweeping.triedAt(id).at(-1), "another rail's answer says nothing").to.equal(640);
    sweeping.succeed("card");
    await sweeping.skip(SECOND);
    expect(sweeping.triedAt(id).at(-1)).to.equal(13 * 60);
    expect(sweeping.account.state.open.has(id)).to.equal(false);
  });

  it("keep their own pace where they fail though their rail answers others", async () => {
    const sweeping = new Sweeping();
    const id = sweeping.pay();
    sweeping.broken.add(id);
    for (let second = 0; second < 600; second += 1) {
      sweeping.succeed("card");
      await sweeping.skip(SECOND);
    }
    expect(sweeping.triedAt(id).length, "else it is tried with each answer").to.be.at.most(8);
  });

  it("are tried at once when their agent is resumed, whatever they had failed before", async () => {
    const sweeping = new Sweeping();
    sweeping.broken.add("card");
    const id = sweeping.pay();
    await sweeping.skip(12 * MINUTE);
    sweeping.submit({ kind: "pause", agentId });
    sweeping.broken.clear();
    sweeping.submit({ kind: "resume", agentId });
    await sweeping.skip(SECOND);
    expect(sweeping.triedAt(id).at(-1)).to.equal(12 * 60);
  });

  it("take no room from the other rail's, however many of them hang", async () => {
    const sweeping = new Sweeping();
    sweeping.hanging.add("wallet");
    const hanging = Array.from({ length: 150 }, () => sweeping.pay("wallet"));
    await sweeping.skip(20 * SECOND);
    const id = sweeping.pay("card");
    await sweeping.skip(MINUTE);
    expect(sweeping.triedAt(id)).to.deep.equal([30]);
    expect(sweeping.tries.filter((each) => hanging.includes(each.id))).to.have.length(120);
  });
});

describe("an agent's actor", () => {
  it("is told that the agent was resumed, where the answer to what it was told before is lost", async () => {
    const sweeping = new Sweeping();
    sweeping.onTold = () => {
      sweeping.onTold = () => Promise.resolve();
      sweeping.submit({ kind: "resume", agentId });
      return Promise.reject(new Error("no answer"));
    };
    sweeping.submit({ kind: "pause", agentId });
    await sweeping.skip(HOUR);
    expect(sweeping.told.map(({ status }) => status)).to.deep.equal(["paused", "active"]);
    expect(sweeping.told.map(({ revision }) => revision)).to.deep.equal(
      sweeping.told.map(({ revision }) => revision).toSorted((one, other) => one - other),
    );
    await sweeping.skip(HOUR);
    expect(sweeping.told, "and not again").to.have.lengthOf(2);
  });
});
