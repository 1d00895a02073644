import { expect } from "chai";
import { randomInt } from "node:crypto";
import type { RailOutcome } from "../../src/domain/ledger/payment.ts";
import { type ChainProxy, type Mishap, startChainProxy } from "../../lab/chaos/chain-proxy.ts";
import { inTime } from "../support/in-time.ts";
import { shortOrSoak, someOrAll } from "../support/soak.ts";
import {
  ended,
  eventually,
  hashOf,
  type Instance,
  newPayment,
  newPayments,
  openScene,
  randomFrom,
  type Scene,
  sharedChainUrl,
} from "./support.ts";

const pass = (): Mishap => "pass";
const UNREADABLE: readonly Mishap[] = ["silence", "too-many", "garbage", "nonsense", "cut-before"];
const DISTURBED: readonly Mishap[] = ["cut-before", "cut-after", "twice", "late"];

describe("a chain that answers badly or not at all", () => {
  let scene: Scene;
  let proxy: ChainProxy;
  let instance: Instance;
  before(async () => {
    scene = await openScene();
    proxy = await startChainProxy(sharedChainUrl());
    instance = scene.open({ rpcUrl: proxy.url });
  });
  after(async () => {
    proxy.behave(pass);
    await scene.close();
    await proxy.close();
  });

  for (const mishap of someOrAll(UNREADABLE, 2)) {
    it(`${mishap}: balance unknown, not zero; nothing is decided; later the payment is made once`, async () => {
      const agent = await scene.funded(500);
      const payment = newPayment(200);
      const { rail } = instance.wallets;
      const before = await scene.transactions.countDocuments();
      proxy.behave(() => mishap);
      const [balance, thrown] = await Promise.all([
        rail.balance(agent.profile),
        rail.send(agent.profile, payment).then(
          () => null,
          (error: unknown) => error,
        ),
      ]);
      expect(balance).to.deep.equal({ kind: "unreadable" });
      expect(thrown).to.be.an("error");
      expect(await scene.transactions.countDocuments(), "nothing was recorded").to.equal(before);
      proxy.behave(pass);
      // As the service does: asks again with the same id for as long as there is no answer, and then for the end.
      const made = async () => {
        const sent = await eventuallySent(() => rail.send(agent.profile, payment));
        return sent.status === "pending" ? ended(instance, agent, payment) : sent;
      };
      const outcomes = await Promise.all([made(), made()]);
      expect(outcomes.map(({ status }) => status)).to.deep.equal(["settled", "settled"]);
      const { spent } = await scene.audit([agent], [payment]);
      expect(spent.get(payment.request.transactionId)).to.deep.equal([hashOf(outcomes[0] ?? null)]);
      expect(await rail.balance(agent.profile)).to.deep.equal({ kind: "cents", cents: 300, pocketCents: 0 });
    });
  }

  it("silence after the decision: the payment is pending, never failed, and made once it is back", async () => {
    const agent = await scene.funded(500);
    const payment = newPayment(200);
    const { rail } = instance.wallets;
    proxy.behave((body) => (body.includes("eth_sendRawTransaction") ? "cut-before" : "pass"));
    const outcome = await rail.send(agent.profile, payment);
    expect(outcome.status).to.equal("pending");
    expect(hashOf(outcome)).to.match(/^0x/);
    proxy.behave(() => "too-many");
    expect((await rail.query(payment).catch(() => null))?.status ?? "pending").to.equal("pending");
    proxy.behave(pass);
    const keeper = scene.open({ clock: () => new Date(Date.now() + 60_000) });
    await keeper.wallets.start();
    const end = await ended(instance, agent, payment);
    await keeper.wallets.stop();
    expect([end.status, hashOf(end)]).to.deep.equal(["settled", hashOf(outcome)]);
  });

  it("a process can end while the chain is silent and much is to be sent again", async () => {
    const agent = await scene.funded(1_000);
    const payments = newPayments(4, 100);
    proxy.behave((body) => (body.includes("eth_sendRawTransaction") ? "cut-before" : "pass"));
    await Promise.all(payments.map((payment) => instance.wallets.rail.send(agent.profile, payment)));
    const keeper = scene.open({ rpcUrl: proxy.url, clock: () => new Date(Date.now() + 60_000) });
    const sendsBefore = proxy.calls.get("eth_sendRawTransaction") ?? 0;
    await keeper.wallets.start();
    proxy.behave((body) => (body.includes("eth_sendRawTransaction") ? "silence" : "pass"));
    await eventually("the keeper sends", () =>
      Promise.resolve((proxy.calls.get("eth_sendRawTransaction") ?? 0) > sendsBefore),
    );
    await inTime("the end", keeper.wallets.stop(), 5_000);
    proxy.behave(pass);
    for (const { raw } of await instance.outbox.from(0, 10_000)) await instance.wallets.rpc.send(raw);
    const outcomes = await Promise.all(payments.map((payment) => ended(instance, agent, payment)));
    expect(outcomes.every(({ status }) => status === "settled")).to.equal(true);
  });

  const seed = Number(process.env["TEST_SEED"] ?? randomInt(2 ** 31));
  it(`payments on a line that cuts, doubles and delays settle once (TEST_SEED=${String(seed)})`, async () => {
    const random = randomFrom(seed);
    const [keeper, other] = [scene.open({ rpcUrl: proxy.url }), scene.open({ rpcUrl: proxy.url })];
    await keeper.wallets.start();
    const each = shortOrSoak(6, 20);
    const agents = await Promise.all([1, 2, 3].map(() => scene.funded(each * 100)));
    const payments = newPayments(agents.length * each, 100);
    proxy.behave(() =>
      random() < 0.25 ? (DISTURBED[Math.floor(random() * DISTURBED.length)] ?? "pass") : "pass",
    );
    const outcomes: RailOutcome[] = await Promise.all(
      payments.map(async (payment, at) => {
        const agent = agents[at % agents.length];
        if (agent === undefined) throw new Error("no agent");
        const from = at % 2 === 0 ? keeper : other;
        // As the service does: asks again with the same id for as long as there is no answer.
        const sent = await eventuallySent(() => from.wallets.rail.send(agent.profile, payment));
        return sent.status === "pending" ? ended(from, agent, payment) : sent;
      }),
    );
    proxy.behave(pass);
    await keeper.wallets.stop();
    const { spent, spentCents } = await scene.audit(agents, payments);
    expect(spentCents).to.equal(payments.length * 100);
    for (const [at, payment] of payments.entries()) {
      expect(outcomes[at]?.status).to.equal("settled");
      expect(spent.get(payment.request.transactionId)).to.deep.equal([hashOf(outcomes[at] ?? null)]);
    }
    for (const { wallet } of agents) expect(await scene.balanceCents(wallet)).to.equal(0);
  });
});

const CALLS_MAX = 200;

async function eventuallySent(send: () => Promise<RailOutcome>): Promise<RailOutcome> {
  for (let call = 0; call < CALLS_MAX; call += 1) {
    const outcome = await send().catch(() => null);
    if (outcome !== null) return outcome;
  }
  throw new Error("never sent");
}
