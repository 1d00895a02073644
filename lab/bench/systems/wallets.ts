import { randomUUID } from "node:crypto";
import type { Db } from "mongodb";
import { createPublicClient, getAddress, http, parseAbiItem, type PublicClient, zeroAddress } from "viem";
import { z } from "zod";
import { agentWalletAbi, paymentIdOf } from "../../../src/chain/contracts.ts";
import { type AgentDocument, COLLECTIONS, type TransactionDocument } from "../../../src/store/documents.ts";
import { type PayingAgent, postTo } from "./payments-agents.ts";
import { TRANSFER } from "./system.ts";

const FUNDED_CENTS = 10_000_000_000;
const UNITS_PER_CENT = 10_000n;
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

/**
 * Returns how much each wallet has ever spent, and which approved payments, by the wallets' state: the local chain
 * forgets events of more than 5,000 blocks ago.
 */
export async function spentOnChain(db: Db, rpcUrl: string): Promise<Readonly<Record<string, number>>> {
  const agents = await db.collection<AgentDocument>(COLLECTIONS.agents).find().toArray();
  const wallets = new Map(
    agents.flatMap(({ _id, wallet }) =>
      wallet === null ? [] : [[_id, getAddress(wallet.address)] as const],
    ),
  );
  const client = createPublicClient({ transport: http(rpcUrl, { batch: true }) });
  const [token] = await tokensOf(client, [...wallets.values()]);
  if (token === undefined) return { "spent by the wallets": 0, "payments that their wallets know": 0 };
  const read = { abi: agentWalletAbi, functionName: "totalSpent", args: [token] } as const;
  const totals = await Promise.all(
    [...wallets.values()].map((address) => client.readContract({ ...read, address })),
  );
  const approved = await db
    .collection<TransactionDocument>(COLLECTIONS.transactions)
    .find({ status: "approved" }, { projection: { agentId: 1 } })
    .toArray();
  const isKnown = approved.map(({ _id, agentId }) => {
    const address = wallets.get(agentId) ?? zeroAddress;
    const asked = { abi: agentWalletAbi, functionName: "isSpent", args: [paymentIdOf(_id)] } as const;
    return client.readContract({ ...asked, address });
  });
  const units = BigInt(TRANSFER.amountCents) * UNITS_PER_CENT;
  return {
    "spent by the wallets": Number(totals.reduce((sum, total) => sum + total, 0n) / units),
    "payments that their wallets know": (await Promise.all(isKnown)).filter(Boolean).length,
  };
}

/** The tokens that wallets have spent, by their events: the newest of those are always there. */
async function tokensOf(client: PublicClient, address: `0x${string}`[]): Promise<readonly `0x${string}`[]> {
  const events = await client.getLogs({ address, event: SPENT, fromBlock: 0n });
  return [...new Set(events.flatMap(({ args }) => (args.token === undefined ? [] : [args.token])))];
}
