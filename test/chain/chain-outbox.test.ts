import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import { expect } from "chai";
import { MongoClient } from "mongodb";
import { type Hex, keccak256, parseTransaction, toHex } from "viem";
import { z } from "zod";
import type { Signer, UnsignedTransaction } from "../../src/chain/config.ts";
import {
  type Call,
  CHAIN_INDEXES,
  ChainOutbox,
  isTransaction,
  type Refused,
} from "../../src/chain/outbox.ts";
import { ChainRpc } from "../../src/chain/rpc.ts";
import { eventually, openScene, randomAddress, type Scene } from "./support.ts";
import { testDatabase } from "../support/mongo.ts";
import { shortOrSoak } from "../support/soak.ts";
import { createIndexes } from "../../src/store/indexes.ts";

const callOf = (purpose: string, data: Hex = "0x"): Call => ({
  kind: "call",
  purpose,
  wallet: null,
  to: randomAddress(),
  data,
  gas: 60_000n,
});

const refusalOf = (purpose: string): Refused => ({
  kind: "refusal",
  purpose,
  wallet: null,
  refusal: { code: "RAIL_UNAVAILABLE", reason: "a test" },
});

const contiguous = (nonces: readonly number[]): number[] => nonces.map((_nonce, at) => (nonces[0] ?? 0) + at);

describe("the record of the service's transactions", () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene();
  });
  after(() => scene.close());

  it("processes that record at once leave no gap between nonces, and decide each purpose once", async () => {
    const outboxes = [scene.open(), scene.open(), scene.open()].map(({ outbox }) => outbox);
    const before = await scene.nonces();
    const purposes = Array.from({ length: shortOrSoak(8, 20) }, (_nothing, at) => `test/${String(at)}`);
    // Each purpose is recorded by every process, each with a call of its own.
    const answers = await Promise.all(
      purposes.flatMap((purpose) => outboxes.map((outbox) => outbox.record([callOf(purpose)]))),
    );
    const nonces = await scene.nonces();
    expect(nonces).to.deep.equal(contiguous(nonces));
    expect(nonces.length - before.length).to.equal(purposes.length);
    for (const purpose of purposes) {
      const hashes = answers.flatMap((answer) => {
        const recorded = answer.get(purpose);
        return recorded === undefined || !isTransaction(recorded) ? [] : [recorded.hash];
      });
      expect(hashes).to.have.length(outboxes.length);
      expect(new Set(hashes).size, "all were told of the one that was recorded").to.equal(1);
    }
  });

  it("with older records, as of a restored backup, no nonce is signed that the chain has used", async () => {
    const own = await openScene();
    try {
      const agent = await own.funded(100);
      const mined = await own.chain.getTransactionCount({ address: own.signer.address });
      await own.transactions.deleteMany({ nonce: { $gte: mined - 1 } });
      const recorded = (await own.open().outbox.record([callOf("test/after")])).get("test/after");
      expect(recorded).to.include({ kind: "transaction", nonce: mined });
      expect(await own.balanceCents(agent.wallet)).to.equal(100);
    } finally {
      await own.close();
    }
  });

  it("what is read of it is in the journal: what a killed database would lose is never sent", async () => {
    const uri = process.env["TEST_MONGODB_URI"] ?? "";
    const mongo = await new MongoClient(uri, { monitorCommands: true }).connect();
    const reads: unknown[] = [];
    mongo.on("commandStarted", ({ command, commandName }) => {
      const { readConcern } = z.looseObject({ readConcern: z.unknown().optional() }).parse(command);
      if (["aggregate", "find"].includes(commandName)) reads.push(readConcern);
    });
    const db = mongo.db(scene.db.databaseName);
    const { outbox } = scene.open({ db });
    await outbox.record([callOf("journal/1")]);
    await Promise.all([
      outbox.find(["journal/1"]),
      outbox.under("journal/"),
      outbox.from(0, 10),
      outbox.movedBy([randomAddress()], 0),
    ]);
    expect(reads).to.have.length.of.at.least(5);
    for (const concern of reads) expect(concern).to.include({ level: "majority" });
    await mongo.close();
  });

  it("a process is not starved by seven others that record all the time", async () => {
    const outboxes = Array.from({ length: 8 }, () => scene.open().outbox);
    const each = shortOrSoak(5, 12);
    const before = await scene.nonces();
    await Promise.all(
      outboxes.flatMap((outbox, who) =>
        Array.from({ length: each }, (_nothing, at) => outbox.record([callOf(`crowd/${who}/${at}`)])),
      ),
    );
    const nonces = await scene.nonces();
    expect(nonces).to.deep.equal(contiguous(nonces));
    expect(nonces.length - before.length).to.equal(outboxes.length * each);
  });

  it("what is recorded is what was signed, and no two records have a nonce or bytes in common", async () => {
    const found = await scene.transactions.find({ nonce: { $gte: 0 } }).toArray();
    for (const { hash, nonce, raw } of found) {
      const bytes = toHex(Buffer.from((raw ?? "0x").slice(2), "hex"));
      expect(keccak256(bytes)).to.equal(hash);
      expect(parseTransaction(bytes).nonce ?? 0).to.equal(nonce);
    }
    expect(new Set(found.map(({ nonce }) => nonce)).size).to.equal(found.length);
    expect(new Set(found.map(({ raw }) => raw)).size).to.equal(found.length);
  });

  it("a call that lost its nonce to another process is signed anew; the first is not recorded", async () => {
    const { close, db } = await testDatabase();
    await createIndexes(db, CHAIN_INDEXES);
    const signed: UnsignedTransaction[] = [];
    const signer: Signer = {
      address: scene.signer.address,
      sign(transaction) {
        signed.push(transaction);
        return scene.signer.sign(transaction);
      },
    };
    const at = {
      db,
      config: scene.config,
      rpc: new ChainRpc(scene.config),
      clock: () => new Date(),
      proofs: TEST_ACCESS_PROOFS,
    };
    const [one, other] = [new ChainOutbox({ ...at, signer }), new ChainOutbox({ ...at, signer })];
    await one.record([callOf("a")]);
    // Knows a next nonce that is out of date by then.
    await other.record([callOf("b")]);
    await one.record([callOf("c"), callOf("a"), callOf("d")]);
    const found = await db.collection("chain_transactions").find().sort({ nonce: 1 }).toArray();
    expect(found.map(({ _id }) => String(_id).split("/")[1])).to.deep.equal(["a", "b", "c", "d"]);
    expect(found.map(({ nonce }) => Number(nonce))).to.deep.equal(
      contiguous(found.map((each) => Number(each["nonce"]))),
    );
    expect(signed.length).to.be.greaterThan(found.length);
    await close();
  });

  it("what a process recorded and died before sending is sent by another's keeper", async () => {
    // The clock is ahead, so that the keeper does not wait for the one who recorded it.
    const keeper = scene.open({ clock: () => new Date(Date.now() + 60_000) });
    const [recorded] = (await scene.open().outbox.record([callOf("died")])).values();
    if (recorded === undefined || !isTransaction(recorded)) throw new Error("nothing was recorded");
    await keeper.wallets.start();
    await eventually("the transaction is in the chain", async () => {
      const receipt = await scene.chain.getTransactionReceipt({ hash: recorded.hash });
      return receipt.status === "success";
    });
    await keeper.wallets.stop();
    expect(keeper.troubles.join()).to.include("were resent");
  });

  it("a refused purpose is never a transaction later, and a sent one is never refused", async () => {
    const [one, other] = [scene.open().outbox, scene.open().outbox];
    await one.record([refusalOf("never")]);
    await other.record([callOf("always")]);
    const before = await scene.nonces();
    const late = await other.record([callOf("never"), refusalOf("always")]);
    expect(late.get("never")?.kind).to.equal("refusal");
    expect(late.get("always")?.kind).to.equal("transaction");
    expect(await scene.nonces(), "no nonce was used up").to.deep.equal(before);
  });

  it("processes that decide one purpose differently at once all hear one decision", async () => {
    const outboxes = Array.from({ length: 6 }, () => scene.open().outbox);
    for (let round = 0; round < shortOrSoak(2, 5); round += 1) {
      const purpose = `disputed/${round}`;
      const answers = await Promise.all(
        outboxes.map((outbox, at) => outbox.record([at % 2 === 0 ? callOf(purpose) : refusalOf(purpose)])),
      );
      expect(new Set(answers.map((answer) => answer.get(purpose)?.kind)).size).to.equal(1);
    }
    const nonces = await scene.nonces();
    expect(nonces).to.deep.equal(contiguous(nonces));
  });
});
