import { randomUUID } from "node:crypto";
import type { Db } from "mongodb";
import { createPublicClient, getAddress, http, parseAbiItem } from "viem";
import { z } from "zod";
import { type AgentDocument, COLLECTIONS, type TransactionDocument } from "../../activities/documents.ts";
import { type PayingAgent, postTo } from "./payments-agents.ts";
import { TRANSFER } from "./system.ts";

const FUNDED_CENTS = 10_000_000_000;
const SPENT = parseAbiItem(
  "event Spent(bytes32 indexed id, address indexed token, address indexed to, uint256 amount)",
);

const paid = z.object({ transaction: z.object({ status: z.string() }) });

/** Funds each agent's wallet, and has it deployed by a first payment. */
export async function prepareWallets(
  agents: readonly PayingAgent[],
  port: number,
  token: string,
): Promise<number> {
  for (const { apiKey, id } of agents) {
    await postTo(port, `/v1/sandbox/agents/${id}/fund`, { amountCents: FUNDED_CENTS }, token);
    const order = { ...TRANSFER, idempotencyKey: randomUUID() };
    const { transaction } = paid.parse(await postTo(port, "/v1/payments", order, apiKey));
    if (transaction.status !== "approved") throw new Error(`a first payment is ${transaction.status}`);
  }
  return agents.length;
}

/** What the chain has of the agents' wallets: their `Spent` events, and those whose transaction is on record. */
export async function spentOnChain(db: Db, rpcUrl: string): Promise<Readonly<Record<string, number>>> {
  const agents = await db.collection<AgentDocument>(COLLECTIONS.agents).find().toArray();
  const address = agents.flatMap(({ wallet }) => (wallet === null ? [] : [getAddress(wallet.address)]));
  const client = createPublicClient({ transport: http(rpcUrl) });
  const events = await client.getLogs({ address, event: SPENT, fromBlock: 0n });
  const approved = await db
    .collection<TransactionDocument>(COLLECTIONS.transactions)
    .find({ status: "approved" }, { projection: { onChainTxHash: 1 } })
    .toArray();
  const hashes = new Set(approved.map(({ onChainTxHash }) => onChainTxHash));
  return {
    "Spent events": events.length,
    "Spent events of approved transactions": events.filter((event) => hashes.has(event.transactionHash))
      .length,
  };
}
