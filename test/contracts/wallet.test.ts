import { expect } from "chai";
import { type Address, keccak256, maxUint256, toHex, zeroAddress } from "viem";
import { agentWalletAbi } from "../../contracts/artifacts/index.ts";
import { type Call, done, refused, walletCall } from "./support/calls.ts";
import {
  balanceOf,
  fundedWallet,
  mint,
  nextEdge,
  passTo,
  type Scene,
  useScene,
  viewsOf,
} from "./support/scene.ts";
import { mined } from "../support/mined.ts";

const idOf = (transactionId: string) => keccak256(toHex(transactionId));
const ID = idOf("txn_1");
const DAY = 86_400n;
const HOUR = 3_600n;
const MAX_PERIOD = 2n ** 64n - 1n;

/** The calls of one wallet with the scene's token. */
const callsOf = (wallet: Address, { token, shop }: Scene) => ({
  spend: (id: string, amount: bigint, to = shop) =>
    walletCall(wallet, "spend", [idOf(id), token, to, amount]),
  setLimit: (cap: bigint, period = 0n) => walletCall(wallet, "setLimit", [token, cap, period]),
  setCeiling: (cap: bigint, period = 0n) => walletCall(wallet, "setCeiling", [token, cap, period]),
  clearCeiling: () => walletCall(wallet, "clearCeiling", [token]),
  withdraw: (amount: bigint, to = shop) => walletCall(wallet, "withdraw", [token, to, amount]),
  setSpender: (to: Address) => walletCall(wallet, "setSpender", [to]),
  detach: () => walletCall(wallet, "detach", []),
});

describe("an agent's wallet", () => {
  const scene = useScene();

  /** A wallet with 1,000 units, its calls, and its spender's limit if one is given. */
  async function open(cap?: bigint, period = 0n) {
    const wallet = await fundedWallet(scene());
    const calls = callsOf(wallet, scene());
    if (cap !== undefined) await done(scene().chain, scene().spender, calls.setLimit(cap, period));
    return { wallet, calls, views: viewsOf(scene(), wallet) };
  }
  const bySpender = (call: Call, at?: bigint) => done(scene().chain, scene().spender, call, at);
  const byOwner = (call: Call, at?: bigint) => done(scene().chain, scene().owner, call, at);
  const spenderRefused = (call: Call, at?: bigint) => refused(scene().chain, scene().spender, call, at);
  const ownerRefused = (call: Call) => refused(scene().chain, scene().owner, call);

  describe("paying", () => {
    it("moves exactly the amount, marks the id, counts it, and says so in one event", async () => {
      const { token, shop } = scene();
      const { wallet, calls, views } = await open(100n);
      const before = await balanceOf(scene(), shop);
      const { events } = await bySpender(calls.spend("txn_1", 30n));
      expect(events).to.deep.equal([{ name: "Spent", args: { id: ID, token, to: shop, amount: 30n } }]);
      expect((await balanceOf(scene(), shop)) - before).to.equal(30n);
      expect(await balanceOf(scene(), wallet)).to.equal(970n);
      expect([await views.isSpent(ID), await views.totalSpent()]).to.deep.equal([true, 30n]);
      expect(await views.limit()).to.deep.equal([100n, 0n, 30n, 70n]);
    });

    it("an id is good once, also for another amount, recipient or token, and in another period", async () => {
      const { shop, heir, token } = scene();
      const { wallet, calls } = await open(100n, HOUR);
      await bySpender(calls.spend("txn_1", 30n));
      const again = { name: "AlreadySpent", args: [ID] };
      expect(await spenderRefused(calls.spend("txn_1", 30n))).to.deep.equal(again);
      expect(await spenderRefused(calls.spend("txn_1", 1n, heir))).to.deep.equal(again);
      expect(await spenderRefused(walletCall(wallet, "spend", [ID, heir, shop, 1n]))).to.deep.equal(again);
      await passTo(scene(), await nextEdge(scene(), HOUR));
      expect(await spenderRefused(walletCall(wallet, "spend", [ID, token, shop, 1n]))).to.deep.equal(again);
    });

    it("what failed leaves no trace: the same id can be paid later, and nothing was charged", async () => {
      const { wallet, calls, views } = await open(2_000n);
      const failed = await spenderRefused(calls.spend("txn_1", 1_500n));
      expect(failed).to.deep.equal({ name: "ERC20InsufficientBalance", args: [wallet, 1_000n, 1_500n] });
      expect(await views.limit()).to.deep.equal([2_000n, 0n, 0n, 2_000n]);
      await mint(scene(), wallet, 500n);
      await bySpender(calls.spend("txn_1", 1_500n));
      expect(await views.limit()).to.deep.equal([2_000n, 0n, 1_500n, 500n]);
    });

    it("nothing can be paid before the spender set a limit, and nothing with a limit of 0", async () => {
      const { token } = scene();
      const { calls, views } = await open();
      const exceeded = { name: "LimitExceeded", args: [token, 0n, 1n] };
      expect(await views.limit()).to.deep.equal([0n, 0n, 0n, 0n]);
      expect(await spenderRefused(calls.spend("txn_1", 1n))).to.deep.equal(exceeded);
      await bySpender(calls.setLimit(0n, DAY));
      expect(await spenderRefused(calls.spend("txn_1", 1n))).to.deep.equal(exceeded);
    });

    it("nothing goes to the zero address, the wallet itself or the token; a payment of 0 is none", async () => {
      const { token } = scene();
      const { wallet, calls } = await open(100n);
      for (const to of [zeroAddress, wallet, token])
        expect(await spenderRefused(calls.spend("txn_1", 1n, to))).to.deep.equal({
          name: "InvalidRecipient",
          args: [to],
        });
      expect(await spenderRefused(calls.spend("txn_1", 0n))).to.deep.equal({
        name: "InvalidAmount",
        args: [],
      });
    });
  });

  describe("the spender's limit", () => {
    it("the cap to the last unit passes, one more does not, and the error says how much is left", async () => {
      const { token } = scene();
      const { calls } = await open(100n);
      await bySpender(calls.spend("txn_1", 60n));
      const exceeded = { name: "LimitExceeded", args: [token, 40n, 41n] };
      expect(await spenderRefused(calls.spend("txn_2", 41n))).to.deep.equal(exceeded);
      await bySpender(calls.spend("txn_2", 40n));
    });

    it("a period lasts to its last second, and the next begins empty", async () => {
      const { token } = scene();
      const { calls, views } = await open(100n, HOUR);
      const edge = await nextEdge(scene(), HOUR);
      await bySpender(calls.spend("txn_1", 100n), edge - HOUR);
      const exceeded = { name: "LimitExceeded", args: [token, 0n, 1n] };
      expect(await spenderRefused(calls.spend("txn_2", 1n), edge - 1n)).to.deep.equal(exceeded);
      await bySpender(calls.spend("txn_2", 100n), edge);
      expect(await views.limit()).to.deep.equal([100n, HOUR, 100n, 0n]);
      await passTo(scene(), edge + HOUR);
      expect(await views.limit(), "seen without a payment").to.deep.equal([100n, HOUR, 0n, 100n]);
    });

    it("a new cap holds at once and forgets nothing, also one below what was spent", async () => {
      const { token } = scene();
      const { calls, views } = await open(100n, DAY);
      const edge = await nextEdge(scene(), DAY);
      await bySpender(calls.spend("txn_1", 80n), edge);
      const { events } = await bySpender(calls.setLimit(50n, DAY), edge + 1n);
      expect(events).to.deep.equal([{ name: "LimitSet", args: { token, cap: 50n, periodSeconds: DAY } }]);
      expect(await views.limit()).to.deep.equal([50n, DAY, 80n, 0n]);
      await bySpender(calls.setLimit(90n, DAY), edge + 2n);
      expect(await views.limit()).to.deep.equal([90n, DAY, 80n, 10n]);
    });

    it("another period forgets nothing of the running window, shorter or longer, there and back", async () => {
      const { calls, views } = await open(100n, DAY);
      const edge = await nextEdge(scene(), DAY);
      await bySpender(calls.spend("txn_1", 80n), edge);
      for (const [index, period] of [HOUR, MAX_PERIOD, 0n, DAY].entries()) {
        await bySpender(calls.setLimit(100n, period), edge + BigInt(index));
        expect(await views.limit()).to.deep.equal([100n, period, 80n, 20n]);
      }
      await passTo(scene(), edge + DAY);
      expect(await views.limit()).to.deep.equal([100n, DAY, 0n, 100n]);
    });

    it("the whole life counts everything ever spent; a period that follows it counts from then on", async () => {
      const { calls, views } = await open(100n, HOUR);
      const edge = await nextEdge(scene(), HOUR);
      await bySpender(calls.spend("txn_1", 80n), edge);
      await bySpender(calls.spend("txn_2", 70n), edge + HOUR);
      await bySpender(calls.setLimit(200n, 0n), edge + HOUR);
      expect(await views.limit()).to.deep.equal([200n, 0n, 150n, 50n]);
      await bySpender(calls.spend("txn_3", 50n), edge + 2n * HOUR);
      await bySpender(calls.setLimit(30n, DAY), edge + 2n * HOUR);
      expect(await views.limit()).to.deep.equal([30n, DAY, 0n, 30n]);
    });

    it("the longest period and the highest cap overflow nothing", async () => {
      const { calls, views } = await open(maxUint256, MAX_PERIOD);
      await bySpender(calls.spend("txn_1", 1_000n));
      expect(await views.limit()).to.deep.equal([maxUint256, MAX_PERIOD, 1_000n, maxUint256 - 1_000n]);
      expect((await spenderRefused(calls.spend("txn_2", maxUint256))).name).to.equal("LimitExceeded");
    });
  });

  describe("the owner's ceiling", () => {
    it("none reads as the highest there is, and bounds nothing", async () => {
      const { calls, views } = await open(1_000n);
      expect(await views.ceiling()).to.deep.equal([maxUint256, 0n, 0n, maxUint256]);
      await bySpender(calls.spend("txn_1", 1_000n));
    });

    it("a spender's key in other hands gets no more than the ceiling, whatever limit it sets", async () => {
      const { token } = scene();
      const { calls, views } = await open(50n, DAY);
      const edge = await nextEdge(scene(), DAY);
      const { events } = await byOwner(calls.setCeiling(100n, DAY), edge);
      expect(events).to.deep.equal([{ name: "CeilingSet", args: { token, cap: 100n, periodSeconds: DAY } }]);
      await bySpender(calls.spend("txn_1", 40n), edge + 1n);
      for (const period of [0n, 1n, DAY, MAX_PERIOD])
        await bySpender(calls.setLimit(maxUint256, period), edge + 2n);
      const exceeded = { name: "CeilingExceeded", args: [token, 60n, 61n] };
      expect(await spenderRefused(calls.spend("txn_2", 61n), edge + 3n)).to.deep.equal(exceeded);
      await bySpender(calls.spend("txn_2", 60n), edge + DAY - 1n);
      expect(await views.ceiling()).to.deep.equal([100n, DAY, 100n, 0n]);
      await bySpender(calls.spend("txn_3", 100n), edge + DAY);
    });

    it("over the whole life it counts what was spent before it was set; over a period from then on", async () => {
      const { calls, views } = await open(1_000n);
      await bySpender(calls.spend("txn_1", 80n));
      await byOwner(calls.setCeiling(100n, DAY));
      expect(await views.ceiling()).to.deep.equal([100n, DAY, 0n, 100n]);
      await byOwner(calls.setCeiling(100n));
      expect(await views.ceiling()).to.deep.equal([100n, 0n, 80n, 20n]);
    });

    it("a ceiling of 0 stops the token, and cleared it is gone", async () => {
      const { token } = scene();
      const { calls, views } = await open(100n);
      await byOwner(calls.setCeiling(0n));
      expect((await spenderRefused(calls.spend("txn_1", 1n))).name).to.equal("CeilingExceeded");
      const { events } = await byOwner(calls.clearCeiling());
      expect(events).to.deep.equal([{ name: "CeilingCleared", args: { token } }]);
      await bySpender(calls.spend("txn_1", 1n));
      expect((await views.ceiling())[0]).to.equal(maxUint256);
    });
  });

  describe("who may do what", () => {
    it("owner and strangers can't call what is the spender's, nor others what is the owner's", async () => {
      const { chain, owner, spender, stranger } = scene();
      const { calls, wallet } = await open(100n);
      const spenders = [calls.spend("txn_1", 1n), calls.setLimit(1n), calls.detach()];
      const owners = [
        calls.setCeiling(1n),
        calls.clearCeiling(),
        calls.withdraw(1n),
        calls.setSpender(stranger),
        walletCall(wallet, "transferOwnership", [stranger]),
        walletCall(wallet, "renounceOwnership", []),
      ];
      for (const call of spenders)
        for (const by of [owner, stranger])
          expect(await refused(chain, by, call)).to.deep.equal({ name: "NotSpender", args: [by] });
      for (const call of owners)
        for (const by of [spender, stranger])
          expect(await refused(chain, by, call)).to.deep.equal({
            name: "OwnableUnauthorizedAccount",
            args: [by],
          });
    });

    it("every function that writes is in the list of who may do what, so that none is forgotten", () => {
      const writing = agentWalletAbi.filter(
        (entry) => entry.type === "function" && entry.stateMutability !== "view",
      );
      expect(writing.map((entry) => ("name" in entry ? entry.name : "")).toSorted()).to.deep.equal([
        "acceptOwnership",
        "clearCeiling",
        "detach",
        "setCeiling",
        "setLimit",
        "setSpender",
        "spend",
        "transferOwnership",
        "withdraw",
      ]);
    });

    it("the owner withdraws any amount at any time, above limits, but to no invalid recipient", async () => {
      const { token, shop } = scene();
      const { calls, wallet, views } = await open(1n);
      await byOwner(calls.setCeiling(0n));
      await byOwner(calls.setSpender(zeroAddress));
      const { events } = await byOwner(calls.withdraw(1_000n));
      expect(events).to.deep.equal([{ name: "Withdrawn", args: { token, to: shop, amount: 1_000n } }]);
      expect([await balanceOf(scene(), wallet), await views.totalSpent()]).to.deep.equal([0n, 0n]);
      for (const to of [zeroAddress, wallet, token])
        expect(await ownerRefused(calls.withdraw(0n, to))).to.deep.equal({
          name: "InvalidRecipient",
          args: [to],
        });
    });

    it("a detached spender can do nothing more; limits, ids and counts stay for the next one", async () => {
      const { chain, spender, heir } = scene();
      const { calls, views } = await open(100n);
      await bySpender(calls.spend("txn_1", 30n));
      const { events } = await bySpender(calls.detach());
      const gone = { previousSpender: spender, newSpender: zeroAddress };
      expect(events).to.deep.equal([{ name: "SpenderChanged", args: gone }]);
      for (const call of [calls.spend("txn_2", 1n), calls.setLimit(1n), calls.detach()])
        expect(await spenderRefused(call)).to.deep.equal({ name: "NotSpender", args: [spender] });
      const set = await byOwner(calls.setSpender(heir));
      const come = { previousSpender: zeroAddress, newSpender: heir };
      expect(set.events).to.deep.equal([{ name: "SpenderChanged", args: come }]);
      expect((await spenderRefused(calls.spend("txn_2", 1n))).name).to.equal("NotSpender");
      expect((await refused(chain, heir, calls.spend("txn_1", 1n))).name).to.equal("AlreadySpent");
      expect((await refused(chain, heir, calls.spend("txn_2", 71n))).name).to.equal("LimitExceeded");
      await done(chain, heir, calls.spend("txn_2", 70n));
      expect(await views.spender()).to.equal(heir);
    });

    it("ownership passes in two steps, to one who takes it, and is never given up", async () => {
      const { chain, owner, heir, stranger } = scene();
      const { calls, wallet, views } = await open(100n);
      expect(await ownerRefused(walletCall(wallet, "renounceOwnership", []))).to.deep.equal({
        name: "OwnershipNotRenounceable",
        args: [],
      });
      await byOwner(walletCall(wallet, "transferOwnership", [heir]));
      expect(await views.owner()).to.equal(owner);
      const accept = walletCall(wallet, "acceptOwnership", []);
      expect((await refused(chain, stranger, accept)).name).to.equal("OwnableUnauthorizedAccount");
      await done(chain, heir, accept);
      expect(await views.owner()).to.equal(heir);
      expect((await ownerRefused(calls.withdraw(1n))).name).to.equal("OwnableUnauthorizedAccount");
    });

    it("says at its creation who its spender is, and takes no native coin", async () => {
      const { chain, spender, owner } = scene();
      const { wallet } = await open();
      const logs = await chain.client.getContractEvents({
        address: wallet,
        abi: agentWalletAbi,
        eventName: "SpenderChanged",
        fromBlock: 0n,
      });
      expect(logs.map(({ args }) => args)).to.deep.equal([
        { previousSpender: zeroAddress, newSpender: spender },
      ]);
      const gas = 100_000n;
      const hash = await chain.client.sendTransaction({
        account: owner,
        to: wallet,
        value: 1n,
        gas,
        chain: null,
      });
      expect((await mined(chain.client, hash)).status).to.equal("reverted");
    });
  });
});
