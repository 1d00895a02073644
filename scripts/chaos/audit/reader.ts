import { Client, Connection, WorkflowNotFoundError } from "@temporalio/client";
import { type Db, MongoClient } from "mongodb";
import {
  type Address,
  createPublicClient,
  erc20Abi,
  getAbiItem,
  type Hash,
  http,
  isHex,
  type PublicClient,
  TransactionReceiptNotFoundError,
  zeroAddress,
} from "viem";
import { addressOf, spentEvents } from "../../../server/admin/reconcile/chain-reader.ts";
import { sandboxTokenDeployment } from "../../../activities/chain/contracts.ts";
import type { ChainTransactionDocument } from "../../../activities/chain/outbox.ts";
import type { AgentDocument, ApprovalDocument, TransactionDocument } from "../../../activities/documents.ts";
import { webhookCollections } from "../../../activities/webhooks/documents.ts";
import type { CardLedgerDocument } from "../../../activities/rails/card-sandbox.ts";
import type { ProjectBooks } from "../../../server/admin/reconcile/books.ts";
import { owesReport } from "../../../src/domain/agent/caps.ts";
import type { AgentStateView } from "../../../src/messages/agent.ts";
import { BUDGET_BOOKS_QUERY, type BudgetBooksView, budgetWorkflowId } from "../../../src/messages/budget.ts";
import { askEach } from "../../../server/admin/reconcile/ask-each.ts";
import type { Letterbox, Letters } from "../letterbox.ts";
import { RECIPIENTS } from "../orders.ts";
import type { Place } from "../place.ts";
import type { CapOver, PayingAgent } from "../tenant.ts";
import type { Ticket } from "../tickets.ts";
import type { ActorEntry, Books, ChainBooks, RecordedEntry, ToldBooks, WalletEntry } from "./books.ts";

const CALL_MS = 10_000;
/** Receipts asked for in one request. */
const BATCH = 100;

interface OwnLetters extends Letters {
  readonly organizationId: string;
}

/** Whose books are read. */
export interface Scope {
  readonly organizationIds: readonly string[];
  readonly agents: readonly PayingAgent[];
  readonly tickets: readonly Ticket[];
  readonly projectIds: readonly string[];
  readonly caps: readonly CapOver[];
  /** The organizations' endpoints. */
  readonly letters: readonly OwnLetters[];
  /** How many of the newest recorded transactions are looked up in the chain. */
  readonly receiptsMax: number;
}

type Where = Pick<Place, "addresses" | "letterbox">;

/** Reads MongoDB, the chain, Temporal and what receivers got, and nothing by way of the service. */
export class Reader {
  readonly #mongo: MongoClient;
  readonly #db: Db;
  readonly #connection: Connection;
  readonly #temporal: Client;
  readonly #chain: PublicClient;
  readonly #letterbox: Letterbox;

  private constructor(
    mongo: MongoClient,
    connection: Connection,
    { addresses: { rpcUrl, temporalNamespace }, letterbox }: Where,
  ) {
    this.#letterbox = letterbox;
    this.#mongo = mongo;
    this.#db = mongo.db();
    this.#connection = connection;
    this.#temporal = new Client({ connection, namespace: temporalNamespace });
    const transport = http(rpcUrl, { batch: { batchSize: BATCH }, retryCount: 0, timeout: CALL_MS });
    this.#chain = createPublicClient({ transport, cacheTime: 0 });
  }

  static async open(where: Where): Promise<Reader> {
    const { addresses } = where;
    const bounds = { serverSelectionTimeoutMS: CALL_MS, socketTimeoutMS: CALL_MS };
    const mongo = await new MongoClient(addresses.mongodbUri, bounds).connect();
    return new Reader(mongo, await Connection.connect({ address: addresses.temporalAddress }), where);
  }

  async close(): Promise<void> {
    await this.#connection.close();
    await this.#mongo.close();
  }

  async books({
    agents,
    caps,
    letters,
    organizationIds,
    projectIds,
    receiptsMax,
    tickets,
  }: Scope): Promise<Books> {
    const of = { organizationId: { $in: [...organizationIds] } };
    const states = await askEach(agents, (agent) => this.#state(agent));
    const [transactions, approvals, ledger, records, projects, chain] = await Promise.all([
      this.#db.collection<TransactionDocument>("transactions").find(of).toArray(),
      this.#db.collection<ApprovalDocument>("approvals").find(of).toArray(),
      this.#db.collection<CardLedgerDocument>("sandbox_card_ledger").find(of).toArray(),
      this.#db.collection<AgentDocument>("agents").find(of).toArray(),
      askEach(projectIds, (projectId) => this.#project(projectId, states)),
      this.#chainBooks(agents, receiptsMax),
    ]);
    return {
      agents,
      tickets,
      chain,
      caps,
      projects,
      actors: states.map(actorEntry),
      transactions: transactions.map(({ _id, merchant, onChainTxHash, ...rest }) => ({
        ...rest,
        id: _id,
        to: merchant,
        hash: onChainTxHash,
      })),
      approvals: approvals.map(({ _id, agentId, resolvedBy }) => ({
        id: _id,
        agentId,
        isDecidedByPerson: resolvedBy !== null,
      })),
      told: await askEach(letters, (each) => this.#told(each, records)),
      ledger: ledger.map(({ _id, ...rest }) => ({ ...rest, id: _id })),
      records: records.map(({ _id, reservedCents, spentCents }) => ({
        agentId: _id,
        reservedCents,
        spentCents,
      })),
    };
  }

  /** How many transactions of the service's key are in the chain. */
  chainTransactions(): Promise<number> {
    return this.#nonce();
  }

  /** What is left to be done, in a line; null: nothing is. */
  async unfinished({ agents, organizationIds, projectIds }: Scope): Promise<string | null> {
    const of = { organizationId: { $in: [...organizationIds] } };
    const pending = await this.#db.collection("transactions").countDocuments({ ...of, status: "pending" });
    if (pending > 0) return `${String(pending)} payments are pending`;
    const states = await Promise.all(agents.map((agent) => this.#state(agent)));
    const open = states.flatMap((state) => Object.keys(state.open));
    if (open.length > 0)
      return `${String(open.length)} payments are open in their actors (${open.join(", ")})`;
    const unwritten = states.filter(({ confirmedRevision, revision }) => confirmedRevision < revision);
    if (unwritten.length > 0) return `${String(unwritten.length)} actors have not written their totals`;
    const owing = states.filter(owesReport);
    if (owing.length > 0) return `${String(owing.length)} actors owe their budget a report`;
    const budgets = await askEach(projectIds, (projectId) => this.#budget(projectId));
    if (budgets.some((budget) => budget !== null && (budget.enrolling || budget.untold.length > 0)))
      return "agents are still to be told of a budget";
    const untold = await this.#db.collection("events").countDocuments({ ...of, isPending: true });
    if (untold > 0) return `${String(untold)} events have no deliveries yet`;
    const { deliveries } = webhookCollections(this.#db);
    const undelivered = await deliveries.countDocuments({ ...of, status: "pending" });
    if (undelivered > 0) return `${String(undelivered)} deliveries are pending`;
    const recorded = await this.#recorded();
    const nonce = await this.#nonce();
    if (nonce !== recorded.length)
      return `of ${String(recorded.length)} recorded transactions ${String(nonce)} are in the chain`;
    const query = `ExecutionStatus = "Running" AND WorkflowType IN ("settlement", "approval", "organization", "delivery")`;
    const { count } = await this.#temporal.workflow.count(query);
    return count > 0 ? `${String(count)} workflows still follow something` : null;
  }

  #state({ id }: PayingAgent): Promise<AgentStateView> {
    return this.#temporal.workflow.getHandle(`agent/${id}`).query<AgentStateView>("state");
  }

  async #told(letters: OwnLetters, records: readonly AgentDocument[]): Promise<ToldBooks> {
    const { endpointId, organizationId } = letters;
    const deliveries = await webhookCollections(this.#db)
      .deliveries.find({ endpointId }, { projection: { status: 1 } })
      .toArray();
    return {
      ...this.#letterbox.read(letters),
      agentIds: records.filter((agent) => agent.organizationId === organizationId).map(({ _id }) => _id),
      deliveries: deliveries.map(({ _id, status }) => ({ id: _id, status })),
    };
  }

  async #project(projectId: string, states: readonly AgentStateView[]): Promise<ProjectBooks> {
    const agents = states.filter(({ profile }) => profile.projectId === projectId);
    return { projectId, agents, budget: await this.#budget(projectId), isBudgetLost: false };
  }

  async #budget(projectId: string): Promise<BudgetBooksView | null> {
    const handle = this.#temporal.workflow.getHandle(budgetWorkflowId(projectId));
    return handle.query<BudgetBooksView>(BUDGET_BOOKS_QUERY).catch((error: unknown) => {
      if (error instanceof WorkflowNotFoundError) return null;
      throw error;
    });
  }

  async #chainBooks(agents: readonly PayingAgent[], receiptsMax: number): Promise<ChainBooks> {
    const token = sandboxTokenDeployment(await this.#key()).address;
    const wallets = agents.map(({ wallet }) => addressOf(wallet));
    const [recorded, nonce, spent, entries, supplyUnits, heldUnits] = await Promise.all([
      this.#recorded(),
      this.#nonce(),
      spentEvents(this.#chain, wallets, token),
      Promise.all(agents.map((agent) => this.#wallet(token, agent))),
      this.#chain.readContract({ address: token, abi: erc20Abi, functionName: "totalSupply" }),
      this.#held(token),
    ]);
    return {
      nonce,
      recorded,
      supplyUnits,
      heldUnits,
      wallets: entries,
      withoutReceipt: await this.#withoutReceipt(recorded.slice(-receiptsMax)),
      spent,
    };
  }

  async #wallet(token: Address, { id, wallet }: PayingAgent): Promise<WalletEntry> {
    const minted = await this.#chain.getLogs({
      address: token,
      event: getAbiItem({ abi: erc20Abi, name: "Transfer" }),
      args: { from: zeroAddress, to: addressOf(wallet) },
      fromBlock: 0n,
      strict: true,
    });
    const mintedUnits = minted.reduce((sum, { args }) => sum + args.value, 0n);
    return { agentId: id, mintedUnits, balanceUnits: await this.#balance(token, addressOf(wallet)) };
  }

  #balance(token: Address, account: Address): Promise<bigint> {
    const read = { address: token, abi: erc20Abi, functionName: "balanceOf" } as const;
    return this.#chain.readContract({ ...read, args: [account] });
  }

  /** What everybody holds who ever got something: all agents' wallets, and the accounts that are paid. */
  async #held(token: Address): Promise<bigint> {
    const known = await this.#db.collection<AgentDocument>("agents").distinct("wallet.address");
    const accounts = [...known.map((address) => addressOf(String(address))), ...RECIPIENTS];
    const balances = await Promise.all(accounts.map((account) => this.#balance(token, account)));
    return balances.reduce((sum, balance) => sum + balance, 0n);
  }

  async #recorded(): Promise<readonly RecordedEntry[]> {
    const found = await this.#db
      .collection<ChainTransactionDocument>("chain_transactions")
      .find({ nonce: { $gte: 0 } }, { projection: { nonce: 1, hash: 1 } })
      .sort({ nonce: 1 })
      .toArray();
    return found.map(({ _id, hash, nonce }) => {
      if (nonce === null || !isHex(hash)) throw new Error(`${_id} has a nonce and no hash`);
      return { purpose: _id, nonce, hash };
    });
  }

  async #nonce(): Promise<number> {
    return this.#chain.getTransactionCount({ address: await this.#key() });
  }

  /** The service's key, as the wallets that it spends from have it. */
  async #key(): Promise<Address> {
    const agent = await this.#db.collection<AgentDocument>("agents").findOne({ wallet: { $ne: null } });
    return addressOf(agent?.wallet?.spender ?? "");
  }

  async #withoutReceipt(recorded: readonly RecordedEntry[]): Promise<readonly Hash[]> {
    const missing: Hash[] = [];
    for (let at = 0; at < recorded.length; at += BATCH) {
      const hashes = recorded.slice(at, at + BATCH).map(({ hash }) => hash);
      const found = await Promise.all(hashes.map((hash) => this.#hasReceipt(hash)));
      missing.push(...hashes.filter((_hash, index) => found[index] === false));
    }
    return missing;
  }

  async #hasReceipt(hash: Hash): Promise<boolean> {
    try {
      await this.#chain.getTransactionReceipt({ hash });
      return true;
    } catch (error) {
      if (error instanceof TransactionReceiptNotFoundError) return false;
      throw error;
    }
  }
}

function actorEntry({ open, policy, profile, usage }: AgentStateView): ActorEntry {
  const { reservedCents, spentCents } = usage;
  const openCount = Object.keys(open).length;
  return { agentId: profile.agentId, budgetCents: policy.budgetCents, spentCents, reservedCents, openCount };
}
