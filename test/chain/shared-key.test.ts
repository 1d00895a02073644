import { expect } from "chai";
import type { RailOutcome } from "../../src/domain/ledger/payment.ts";
import { startOwnAnvil } from "../support/own-anvil.ts";
import { shortOrSoak } from "../support/soak.ts";
import { cancel } from "./foreign.ts";
import { ended, eventually, hashOf, newPayment, newPayments, openScene } from "./support.ts";

/** As if everything recorded were old already: then the keeper looks after it at once. */
const AHEAD = { clock: () => new Date(Date.now() + 60_000) };

describe("a key that another sender uses", () => {
  const PAYMENTS = shortOrSoak(4, 8);

  it("two services at once make no payment twice; each has the end that the chain shows", async () => {
    const anvil = await startOwnAnvil();
    const one = await openScene(anvil.url);
    // One after the other: test money is not waited for where it lost its nonce.
    const agents = [await one.funded(1_000)];
    const scenes = [one, await openScene(anvil.url, one)];
    for (const scene of scenes.slice(1)) agents.push(await scene.funded(1_000));
    const services = scenes.map((scene) => scene.open(AHEAD));
    await Promise.all(services.map(({ wallets }) => wallets.start()));
    const all = await Promise.all(
      services.map(async (service, at) => {
        const [agent, scene] = [agents[at], scenes[at]];
        if (agent === undefined || scene === undefined) throw new Error("there are two of each");
        const payments = newPayments(PAYMENTS, 100);
        const ends: RailOutcome[] = [];
        for (const payment of payments) {
          const sent = await service.wallets.rail.send(agent.profile, payment).catch(() => null);
          const isOver = sent !== null && sent.status !== "pending";
          ends.push(isOver ? sent : await ended(service, agent, payment));
        }
        return { ends, payments, ...(await scene.audit([agent], payments)) };
      }),
    );
    await Promise.all(services.map(({ wallets }) => wallets.stop()));
    for (const { ends, payments, spent } of all) {
      for (const [at, { request }] of payments.entries()) {
        const end = ends[at] ?? null;
        const hashes = spent.get(request.transactionId) ?? [];
        expect(hashes).to.deep.equal(end?.status === "settled" ? [hashOf(end)] : []);
      }
      expect(ends.filter(({ status }) => status === "settled")).to.have.length.of.at.least(PAYMENTS / 2);
    }
    for (const scene of scenes) await scene.close();
    await anvil.kill();
  });

  it("a nonce that was passed over and is missing since is filled; nothing waits for it", async () => {
    const own = await startOwnAnvil();
    const itsScene = await openScene(own.url);
    const agent = await itsScene.funded(1_000);
    const [first, second] = [newPayment(100), newPayment(200)];
    const { rail } = itsScene.open().wallets;
    expect((await rail.send(agent.profile, first)).status).to.equal("settled");
    const next = ((await itsScene.nonces()).at(-1) ?? -1) + 1;
    await cancel(itsScene, own, next);
    await cancel(itsScene, own, next + 1);
    // Begins where the chain is, behind the other's.
    const later = itsScene.open();
    expect((await later.wallets.rail.send(agent.profile, second)).status).to.equal("settled");
    await own.kill();
    await own.revive();
    const keeper = itsScene.open(AHEAD);
    await keeper.wallets.start();
    await eventually("all is paid again", async () => (await itsScene.balanceCents(agent.wallet)) === 700);
    await keeper.wallets.stop();
    expect(keeper.repairs.get("nonce_filled")).to.equal(2);
    await itsScene.close();
    await own.kill();
  });
});
