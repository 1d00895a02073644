import { TEST_ACCESS_PROOFS } from "../../support/access-proofs.ts";
import { randomUUID } from "node:crypto";
import { getAddress, parseAbi } from "viem";
import { decodePaymentSignatureHeader } from "@x402/core/http";
import { z } from "zod";
import type { Payment } from "../../../src/domain/ledger/payment.ts";
import { type ChallengeRail, challengeRailOf } from "../../../src/rails/challenge/rail.ts";
import { ORDER_INDEXES, Orders } from "../../../src/rails/challenge/orders.ts";
import { Shops } from "../../../src/rails/challenge/shops.ts";
import { chosenOffer } from "../../../src/rails/challenge/protocols/choose.ts";
import { MasterKey } from "../../../src/secrets/master-key.ts";
import { Sealer } from "../../../src/secrets/sealer.ts";
import { PocketKeys } from "../../../src/rails/pocket/pocket-keys.ts";
import { collectionsOf } from "../../../src/store/collections.ts";
import { createIndexes } from "../../../src/store/indexes.ts";
import { type Instance, newPayment, openScene, sharedChainUrl } from "../../chain/support.ts";
import { challengeV2, openHandMade, requirement, somebody } from "../../x402/hand-made.ts";
import { facilitatorOn, factsOf } from "../../x402/shops.ts";
import { shortOrSoak } from "../../support/soak.ts";
import { steppedChain, steppedDb } from "../steps.ts";
import { railKit, type RailScene } from "../kit.ts";

const UNITS = 1_000n;
/** One top-up is enough for all payments of a file. */
const FLOAT_CENTS = 500;

const sealer = new Sealer(MasterKey.parse("a-master-key-for-tests-long-enough-to-be-one", "a test"));
const clock = (): Date => new Date();
/** Clock of a process that is stopped and counts as dead: its exchange with a shop is over for others. */
const slowClock = (): Date => new Date(Date.now() - 30_000);

const settleAbi = parseAbi([
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)",
  "function balanceOf(address) view returns (uint256)",
]);
const hex = z.custom<`0x${string}`>((value) => typeof value === "string");
const paid = z.object({
  signature: hex,
  authorization: z.object({
    from: hex,
    to: hex,
    value: z.string(),
    validAfter: z.string(),
    validBefore: z.string(),
    nonce: hex,
  }),
});

/** Purchases from a shop that settles at once. */
async function purchaseScene(): Promise<RailScene> {
  const scene = await openScene();
  await createIndexes(scene.db, ORDER_INDEXES);
  const { profile } = await scene.funded(10_000);
  const { token } = scene.config;
  const { client } = await facilitatorOn(sharedChainUrl());
  const facts = await factsOf(client, token);
  let settled: Promise<unknown> = Promise.resolve();
  const shop = await openHandMade(({ payment }, response) => {
    if (payment === null) return void response.writeHead(402).end();
    const { authorization, signature } = paid.parse(decodePaymentSignatureHeader(payment).payload);
    const { from, nonce, to, validAfter, validBefore, value } = authorization;
    const times = [BigInt(validAfter), BigInt(validBefore)] as const;
    const args = [from, to, BigInt(value), ...times, nonce, signature] as const;
    const settle = { address: token, abi: settleAbi, functionName: "transferWithAuthorization" } as const;
    // One after the other: a transaction that is refused before it is sent takes no nonce.
    settled = settled
      .then(() => client.writeContract({ ...settle, args }))
      .then((hash) => client.waitForTransactionReceipt({ hash }))
      .then(
        () => void response.end("goods"),
        () => void response.writeHead(402).end(),
      );
  });
  const shops = new Shops(["127.0.0.0/8"]);
  const rails: ChallengeRail[] = [];
  const railOf = ({ wallets }: Instance, db = scene.db, time = clock): ChallengeRail => {
    const orders = new Orders(db, sealer, time, TEST_ACCESS_PROOFS);
    const rail = challengeRailOf(wallets, { orders, shops, clock: time });
    rails.push(rail);
    return rail;
  };
  const own = scene.open({ floatCents: FLOAT_CENTS });
  const rail = railOf(own);
  const never = new Promise<never>(() => undefined);

  return {
    rail,
    profile,
    payment() {
      const payTo = somebody();
      const offered = requirement(facts, { amount: String(UNITS), payTo });
      const answer = { "payment-required": challengeV2(offered) };
      const fetched = { url: shop.url, httpStatus: 402, headers: answer, body: Buffer.from("") };
      const terms = { ...facts, chainId: scene.config.chainId, decimals: scene.config.tokenDecimals };
      const chosen = chosenOffer(fetched, terms, 1_000, Date.now());
      if (chosen.kind !== "offer") throw new Error("the shop's own offer is payable");
      const { offer } = chosen;
      const payment = newPayment(1, payTo);
      const purchase = { protocol: "x402/2", resource: `${shop.url}/`, keyHash: randomUUID() } as const;
      const request = { ...payment.request, amountMc: offer.amountMc, ...purchase };
      const hand = {
        request: { url: `${shop.url}/`, method: "GET", headers: {}, body: null },
        offer,
        newTransactionId: request.transactionId,
        answer: null,
        closing: Promise.resolve(),
      };
      for (const each of rails) void each.withHand(profile.agentId, request.keyHash, hand, () => never);
      return { ...payment, request };
    },
    async stepped(steps) {
      const chain = await steppedChain(sharedChainUrl(), steps);
      const db = steppedDb(scene.db, steps);
      const instance = scene.open({ db, rpcUrl: chain.url, floatCents: FLOAT_CENTS });
      return { rail: railOf(instance, db, slowClock), close: () => chain.close() };
    },
    /** An authorization that is recorded may be settled at any time, so it counts as made. */
    async timesMade({ request }: Payment) {
      const { length } = await own.wallets.pockets.authorizationsOf(request.transactionId);
      const args = [getAddress(request.recipient)] as const;
      const read = { address: token, abi: settleAbi, functionName: "balanceOf", args } as const;
      return Math.max(length, Number((await client.readContract(read)) / UNITS));
    },
    sources: {
      collections: collectionsOf(scene.db),
      db: scene.db,
      env: { EVM_TOKEN_ADDRESS: scene.config.token },
      pocketKeys: new PocketKeys(scene.pocketKey),
      chainRpcUrl: scene.config.rpcUrl,
    },
    effects: [],
    settleSends: true,
    every: shortOrSoak(5, 1),
    async close() {
      shops.close();
      await shop.close();
      await scene.close();
    },
  };
}

railKit("wallet", purchaseScene, "purchases from a pocket");
