import { randomBytes, randomUUID } from "node:crypto";
import { expect } from "chai";
import {
  type Address,
  createPublicClient,
  erc20Abi,
  getAddress,
  type Hash,
  type Hex,
  http,
  isHash,
  keccak256,
  parseAbi,
  parseEventLogs,
  type PublicClient,
  toBytes,
  toHex,
} from "viem";
import { z } from "zod";
import { sandboxTokenDeployment } from "../../src/chain/contracts.ts";
import {
  type AgentDocument,
  COLLECTIONS,
  type TransactionDocument,
  type WalletRecord,
} from "../../src/store/documents.ts";
import { onceReachable } from "./api.ts";
import type { Success } from "./contract-api.ts";
import { type Fields, type Paid, type TestAgent, until, type World } from "./world.ts";

/** So long money that was asked for may be on its way. */
const ARRIVED_MS = 10_000;

/** The transaction is not told where the answer was that nothing is known yet. */
const funded = z.object({ balanceCents: z.int(), onChainTxHash: z.string().optional() });

type Identified = Pick<TestAgent, "id">;

/** Units of the sandbox token in one cent: six decimals. */
const UNITS_OF_CENT = 10_000n;

/** Written out by hand: what every node sees of a payment on the chain. */
const spentAbi = parseAbi([
  "event Spent(bytes32 indexed id, address indexed token, address indexed to, uint256 amount)",
]);

const limitAbi = parseAbi([
  "function limitOf(address token) view returns (uint256 cap, uint64 periodSeconds, uint256 spentInPeriod, uint256 available)",
]);

/** A transfer out of a wallet, as the chain has it. */
export interface Spent {
  readonly hash: Hash;
  readonly id: Hex;
  readonly to: Address;
  readonly cents: number;
}

/** The chain as a client sees it that asks it directly, and not through the service. */
export class ChainView {
  readonly client: PublicClient;
  readonly #world: World;

  constructor(world: World, rpcUrl = world.service.env["EVM_RPC_URL"]) {
    if (rpcUrl === undefined) throw new Error("the service has no chain");
    this.client = createPublicClient({ transport: http(rpcUrl), cacheTime: 0 });
    this.#world = world;
  }

  async wallet(agent: Identified): Promise<WalletRecord> {
    const agents = this.#world.service.db.collection<AgentDocument>(COLLECTIONS.agents);
    const wallet = (await agents.findOne({ _id: agent.id }))?.wallet ?? null;
    if (wallet === null) throw new Error("the agent has no wallet");
    return wallet;
  }

  async walletAddress(agent: Identified): Promise<Address> {
    return getAddress((await this.wallet(agent)).address);
  }

  /** The test token of the service; only its own key mints it. */
  async token(agent: Identified): Promise<Address> {
    return sandboxTokenDeployment(getAddress((await this.wallet(agent)).spender)).address;
  }

  /** What an address holds of the agent's token, in cents. */
  async cents(agent: Identified, owner: Address): Promise<number> {
    const address = await this.token(agent);
    const read = { address, abi: erc20Abi, functionName: "balanceOf", args: [owner] } as const;
    const units = await this.client.readContract(read);
    expect(units % UNITS_OF_CENT).to.equal(0n);
    return Number(units / UNITS_OF_CENT);
  }

  /** Returns an address's balance of the agent's token, in its smallest units. */
  async unitsAt(agent: Identified, owner: Address): Promise<bigint> {
    const read = { address: await this.token(agent), abi: erc20Abi } as const;
    return this.client.readContract({ ...read, functionName: "balanceOf", args: [owner] });
  }

  /** What the wallet lets the service spend over its whole life, or its period. */
  async limitCents(agent: TestAgent): Promise<number> {
    const [address, token] = await Promise.all([this.walletAddress(agent), this.token(agent)]);
    const read = { address, abi: limitAbi, functionName: "limitOf", args: [token] } as const;
    const [cap] = await this.client.readContract(read);
    return Number(cap / UNITS_OF_CENT);
  }

  async isDeployed(agent: TestAgent): Promise<boolean> {
    return (await this.client.getCode({ address: await this.walletAddress(agent) })) !== undefined;
  }

  /** Every transfer that the agent's wallet has ever made. */
  async transfers(agent: TestAgent): Promise<readonly Spent[]> {
    const address = await this.walletAddress(agent);
    const logs = await this.client.getLogs({ address, fromBlock: 0n, toBlock: "latest" });
    const token = await this.token(agent);
    return parseEventLogs({ abi: spentAbi, logs }).map(({ args, transactionHash: hash }) => {
      expect(args.token).to.equal(token);
      return { hash, id: args.id, to: args.to, cents: Number(args.amount / UNITS_OF_CENT) };
    });
  }

  async succeeded(hash: string | null | undefined): Promise<boolean> {
    if (hash === null || hash === undefined || !isHash(hash)) return false;
    return (await this.client.getTransactionReceipt({ hash })).status === "success";
  }
}

/** A payment's id on the chain. */
export const idOnChain = (transactionId: string): Hex => keccak256(toBytes(transactionId));

/** An address that holds nothing yet. */
export const freshRecipient = (): Address => getAddress(toHex(randomBytes(20)));

/** A wallet payment of 1.00 that nothing is wrong with. */
export const walletPayment = (recipient: string, fields: Fields = {}): Fields => ({
  rail: "wallet",
  amountCents: 100,
  recipient,
  purpose: "a test",
  idempotencyKey: randomUUID(),
  ...fields,
});

/** Makes a wallet payment that must be made, whatever became of it. */
export const payFromWallet = (world: World, agent: TestAgent, body: Fields): Promise<Paid> =>
  world.api.ok("createPayment", 201, { token: agent.key, body });

/** The same where the first answer counts: it must be 201. */
export const payAtOnceFromWallet = (world: World, agent: TestAgent, body: Fields): Promise<Paid> =>
  world.api.okAtOnce("createPayment", 201, { token: agent.key, body });

/**
 * Minted once, for one account at a time: a busy machine's answer may be that it is not known yet, and the money on its
 * way. It is asked for again only when it has not come.
 */
export async function fund(
  world: World,
  agent: Identified,
  amountCents: number,
): Promise<z.output<typeof funded>> {
  const request = { token: world.token, id: agent.id, body: { amountCents } };
  const chain = new ChainView(world);
  const balance = async () => chain.cents(agent, await chain.walletAddress(agent));
  // Before the first money there is no token.
  const expected = (await balance().catch(() => 0)) + amountCents;
  const arrived = async () => {
    const cents = await balance();
    return cents < expected ? null : cents;
  };
  const answer = await onceReachable(async (repeat) => {
    const cents = repeat > 0 ? await until("it arrives", arrived, ARRIVED_MS).catch(() => null) : null;
    if (cents !== null) return { status: 200, body: { balanceCents: cents } };
    return world.api.call("fundAgentInSandbox", request);
  });
  expect(answer.status, JSON.stringify(answer.body)).to.equal(200);
  return funded.parse(answer.body);
}

/** A new agent whose wallet holds so much. */
export async function fundedAgent(world: World, cents: number, fields: Fields = {}): Promise<TestAgent> {
  const agent = await world.agent(fields);
  await fund(world, agent, cents);
  return agent;
}

/** A payment once it is neither held nor on its way, by both its records: they are written beside each other. */
export const finalPayment = (
  world: World,
  agent: TestAgent,
  id: string,
  ms?: number,
): Promise<Success<"getPayment">> =>
  until(
    `${id} is final`,
    async () => {
      const paid = await world.api.ok("getPayment", 200, { token: agent.key, id });
      const isOpen = paid.transaction.status === "pending" || paid.approval?.resolution === "executing";
      return isOpen ? null : paid;
    },
    ms,
  );

/** An idle actor writes its record 10 s after its last change, and the machine may be busy. */
const RECORDED_MS = 120_000;

/** What an agent's record says, once what was confirmed of its payments has reached it. */
export const recordOnce = (world: World, agent: TestAgent, spentCents: number, reservedCents: number) =>
  until(
    `the record says ${spentCents} spent, ${reservedCents} reserved`,
    async () => {
      const record = (await world.api.ok("getAgent", 200, { token: world.token, id: agent.id })).agent;
      return record.spentCents === spentCents && record.reservedCents === reservedCents ? record : null;
    },
    RECORDED_MS,
  );

const byId = (one: { readonly id: Hex }, other: { readonly id: Hex }) => one.id.localeCompare(other.id);

/**
 * The auditor of the wallet rail: each approved payment is exactly one transfer, of its amount to its recipient under its
 * id in the transaction that it names; there is no other; and the wallet holds what it was given less what was paid.
 */
export async function expectChainAgrees(
  world: World,
  agent: TestAgent,
  fundedCents: number,
  chain = new ChainView(world),
): Promise<readonly Spent[]> {
  const approved = await world.service.db
    .collection<TransactionDocument>(COLLECTIONS.transactions)
    .find({ agentId: agent.id, rail: "wallet", status: "approved" })
    .toArray();
  const expected = approved.map(({ _id, amountCents, onChainTxHash, recipient }) => ({
    hash: onChainTxHash,
    id: idOnChain(_id),
    to: recipient,
    cents: amountCents,
  }));
  const transfers = await chain.transfers(agent);
  expect(transfers.toSorted(byId)).to.deep.equal(expected.toSorted(byId));
  for (const { hash } of transfers) expect(await chain.succeeded(hash)).to.equal(true);
  const spentCents = transfers.reduce((total, { cents }) => total + cents, 0);
  const held = await chain.cents(agent, await chain.walletAddress(agent));
  expect(held, "the wallet").to.equal(fundedCents - spentCents);
  const record = await recordOnce(world, agent, spentCents, 0);
  expect(record.spentCents).to.be.at.most(record.budgetCents);
  return transfers;
}
