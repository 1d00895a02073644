import { randomUUID } from "node:crypto";
import { getAddress, keccak256, toHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { z } from "zod";
import { connectMongo } from "../../src/store/connections.ts";
import { COLLECTIONS, type AgentDocument } from "../../src/store/documents.ts";
import { presented } from "../../src/rails/challenge/protocols/x402.ts";
import { sandboxTokenDeployment } from "../../src/chain/contracts.ts";
import { openShop } from "../../test/x402/shops.ts";
import { type OneService, ms, ofTarget, onOneService, payAs, say } from "./standalone.ts";
import { median } from "./statistics.ts";
import { postTo } from "./systems/payments-agents.ts";
import { ORDER, TRANSFER } from "./systems/system.ts";

/**
 * A purchase by HTTP 402 beside its parts, one after the other: `node dist/lab/bench/purchases.js [purchases]`. Its parts are the two
 * fetches, which a buyer without the service makes at the same shop (one signature between them), and one decision, a payment
 * by card. The shop is run by the x402 packages and settles before it answers. Also counts the service's chain transactions.
 */
const PURCHASES = 200;
/** Payments of each kind before the first that counts. */
const WARM_UP = 20;
/** 0.10 USD. */
const CENTS = 10;
const UNITS_PER_CENT = 10_000n;
const VALID_SECONDS = 60;
const TARGETS = { ratio: 1.3, transactions: 0.05 };

const challenge = z.object({ accepts: z.array(z.unknown()), resource: z.unknown() });
const bought = z.object({ httpStatus: z.number(), transaction: z.object({ status: z.string() }) });

const TRANSFER_TYPE = [
  { name: "from", type: "address" },
  { name: "to", type: "address" },
  { name: "value", type: "uint256" },
  { name: "validAfter", type: "uint256" },
  { name: "validBefore", type: "uint256" },
  { name: "nonce", type: "bytes32" },
] as const;

const count = Number(process.argv[2] ?? PURCHASES);
await onOneService("purchases", {}, measure);

async function measure({ agents, env, port, session, site, undo }: OneService): Promise<void> {
  const { db, mongo } = await connectMongo(String(env["MONGODB_URI"]));
  undo.add(() => mongo.close());
  const [agent] = agents;
  if (agent === undefined) throw new Error("there is no agent");
  const fund = { amountCents: 100 * CENTS * (count + WARM_UP) };
  await postTo(port, `/v1/sandbox/agents/${agent.id}/fund`, fund, session);
  const found = await db.collection<AgentDocument>(COLLECTIONS.agents).findOne({ _id: agent.id });
  const token = sandboxTokenDeployment(getAddress(found?.wallet?.spender ?? "")).address;
  const shop = await openShop({
    rpcUrl: site.evmRpcUrl,
    token,
    units: String(BigInt(CENTS) * UNITS_PER_CENT),
  });
  undo.add(() => shop.close());
  const buyer = privateKeyToAccount(generatePrivateKey());
  await payAs(port, agent, { ...TRANSFER, recipient: buyer.address, amountCents: CENTS * (count + WARM_UP) });
  const url = `${shop.url}/paid/goods`;

  /** The two fetches. */
  async function bare(): Promise<void> {
    const asked = await fetch(url);
    await asked.arrayBuffer();
    const { accepts, resource } = challenge.parse(decoded(asked.headers.get("payment-required")));
    const { name, version } = shop.facts;
    const transfer = {
      from: buyer.address,
      to: shop.payTo,
      value: BigInt(CENTS) * UNITS_PER_CENT,
      validAfter: 0n,
      validBefore: BigInt(Math.floor(Date.now() / 1_000) + VALID_SECONDS),
      nonce: keccak256(toHex(randomUUID())),
    };
    const domain = { name, version, chainId: 31_337, verifyingContract: token };
    const types = { TransferWithAuthorization: TRANSFER_TYPE };
    const signature = await buyer.signTypedData({
      domain,
      types,
      primaryType: "TransferWithAuthorization",
      message: transfer,
    });
    const { value, validAfter, validBefore, ...rest } = transfer;
    const times = { validAfter: Number(validAfter), validBefore: Number(validBefore) };
    const header = presented(
      { protocol: "x402/2", accepted: accepts[0], resource },
      { ...rest, ...times, units: value, signature },
    );
    const paid = await fetch(url, { headers: { [header.name]: header.value } });
    if (paid.status !== 200) throw new Error(`the bare buyer got ${String(paid.status)}`);
    await paid.arrayBuffer();
  }

  const decide = () => payAs(port, agent, ORDER);

  async function buy(): Promise<void> {
    const body = { url, maxAmountCents: CENTS, purpose: "bench", idempotencyKey: randomUUID() };
    const answer = bought.parse(await postTo(port, "/v1/payments/x402", body, agent?.apiKey ?? ""));
    if (answer.httpStatus !== 200 || answer.transaction.status !== "approved")
      throw new Error(`a purchase was answered ${JSON.stringify(answer)}`);
  }

  const transactions = () =>
    db
      .collection<{ readonly _id: string }>(COLLECTIONS.chainTransactions)
      .countDocuments({ nonce: { $gte: 0 } });
  const kinds = { bare, decide, buy };
  const times: Record<keyof typeof kinds, number[]> = { bare: [], decide: [], buy: [] };
  let before = 0;
  for (let turn = -WARM_UP; turn < count; turn += 1) {
    if (turn === 0) before = await transactions();
    for (const kind of ["bare", "decide", "buy"] as const) {
      const began = performance.now();
      await kinds[kind]();
      if (turn >= 0) times[kind].push(performance.now() - began);
    }
  }
  const [fetches, decision, purchase] = [median(times.bare), median(times.decide), median(times.buy)];
  const ratio = median(times.buy.map((took, at) => took / ((times.bare[at] ?? 0) + (times.decide[at] ?? 0))));
  const sent = ((await transactions()) - before) / count;
  say(
    `p50 of ${String(count)}: two fetches ${ms(fetches)}, a decision ${ms(decision)}, a purchase ${ms(purchase)}`,
  );
  say(
    `a purchase to its parts: ${ofTarget(purchase / (fetches + decision), TARGETS.ratio)}; by turns ${ratio.toFixed(2)}`,
  );
  say(`chain transactions per purchase of ${String(CENTS)} cents: ${ofTarget(sent, TARGETS.transactions)}`);
}

function decoded(header: string | null): unknown {
  return JSON.parse(Buffer.from(header ?? "", "base64").toString("utf8"));
}
