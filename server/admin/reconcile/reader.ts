import { type Client, QueryRejectedError, WorkflowNotFoundError } from "@temporalio/client";
import { createPublicClient, http, type PublicClient } from "viem";
import { sandboxTokenDeployment } from "../../../activities/chain/contracts.ts";
import type { AgentDocument } from "../../../activities/documents.ts";
import { type AgentStateView, agentWorkflowId, STATE_QUERY } from "../../../src/messages/agent.ts";
import { BUDGET_BOOKS_QUERY, type BudgetBooksView, budgetWorkflowId } from "../../../src/messages/budget.ts";
import { type HadCaps, hadCapsIn } from "../../actors/had-caps.ts";
import { type Collections, collectionsOf } from "../../collections.ts";
import type { Connections } from "../../connections.ts";
import { askEach } from "./ask-each.ts";
import type { AgentBooksRead, LedgerEntry, PaymentEntry, ProjectBooks } from "./books.ts";
import { paymentEntry } from "./books.ts";
import { addressOf, spentEvents } from "./chain-reader.ts";
import type { WalletBooks } from "./rails.ts";

/** One call to an actor; one that is in no worker's memory is made anew from its history first. */
const ACTOR_MS = 20_000;
const CHAIN_MS = 10_000;
/** Ids in one query. */
const IDS_AT_ONCE = 1_000;
/** Of the sandbox's token, and of most stablecoins. */
const TOKEN_DECIMALS = 6;
const CENT_DECIMALS = 2;

/** What is read again, to see whether it is still as it was. */
export interface Focus {
  readonly agentIds: ReadonlySet<string>;
  readonly projectIds: ReadonlySet<string>;
  readonly paymentIds: ReadonlySet<string>;
}

/** All that is compared of an organization, or of a focus on it. */
export interface OrganizationBooks {
  readonly agents: readonly AgentBooksRead[];
  readonly projects: readonly ProjectBooks[];
  readonly payments: readonly PaymentEntry[];
  readonly ledger: readonly LedgerEntry[];
  /** Null: there is no chain to compare with; a text: why it could not be read. */
  readonly wallets: WalletBooks | string | null;
}

/** Reads actors, records, ledger and chain, in that order: what comes later in a payment's life is read earlier. */
export class BooksReader {
  readonly #collections: Collections;
  readonly #temporal: Client;
  readonly #chain: PublicClient | null;
  readonly #env: NodeJS.ProcessEnv;
  readonly #hadCaps: HadCaps;

  constructor({ addresses, db, temporal }: Connections, env: NodeJS.ProcessEnv) {
    const { evmRpcUrl } = addresses;
    this.#collections = collectionsOf(db);
    this.#hadCaps = hadCapsIn(db);
    this.#temporal = temporal;
    this.#env = env;
    this.#chain =
      evmRpcUrl === null
        ? null
        : createPublicClient({
            transport: http(evmRpcUrl, { retryCount: 1, timeout: CHAIN_MS }),
            cacheTime: 0,
          });
  }

  async organizations(): Promise<readonly string[]> {
    const found = await this.#collections.organizations.find({}, { projection: { _id: 1 } }).toArray();
    return found.map(({ _id }) => _id).toSorted();
  }

  async books(organizationId: string, focus: Focus | null, onAgent: () => void): Promise<OrganizationBooks> {
    const ids = await this.#agentIds(organizationId, focus);
    const agents = await askEach(ids, async (agentId) => {
      const books = await this.#agent(agentId);
      onAgent();
      return books;
    });
    const projects = await this.#projects(agents, focus);
    const payments = await this.#payments(agents, focus);
    const [ledger, wallets] = await Promise.all([
      this.#ledger(organizationId, focus),
      this.#wallets(organizationId, payments, focus),
    ]);
    return { agents, projects, payments, ledger, wallets };
  }

  /** Agents whose record is lost are known by their payments. */
  async #agentIds(organizationId: string, focus: Focus | null): Promise<readonly string[]> {
    if (focus !== null) return [...focus.agentIds];
    const { agents, transactions } = this.#collections;
    const [recorded, paying] = await Promise.all([
      agents.find({ organizationId }, { projection: { _id: 1 } }).toArray(),
      transactions
        .aggregate<{ _id: string }>([{ $match: { organizationId } }, { $group: { _id: "$agentId" } }])
        .toArray(),
    ]);
    return [...new Set([...recorded, ...paying].map(({ _id }) => _id))];
  }

  /** How many agents there are to be asked, for a progress line. */
  countAgents(organizationId: string): Promise<number> {
    return this.#collections.agents.countDocuments({ organizationId });
  }

  async #agent(agentId: string): Promise<AgentBooksRead> {
    const actor = await this.#state(agentId);
    const { agents, approvals, transactions } = this.#collections;
    const [record, own] = await Promise.all([
      agents.findOne({ _id: agentId }),
      transactions.find({ agentId }).sort({ sequence: 1 }).toArray(),
    ]);
    const asked = own.map(({ approvalId }) => approvalId).filter((id) => id !== null);
    const found = [];
    for (let at = 0; at < asked.length; at += IDS_AT_ONCE)
      found.push(...(await approvals.find({ _id: { $in: asked.slice(at, at + IDS_AT_ONCE) } }).toArray()));
    return { agentId, actor, record, transactions: own, approvals: found };
  }

  async #state(agentId: string): Promise<AgentStateView | "lost" | "silent"> {
    try {
      return await this.#ask<AgentStateView>(agentWorkflowId(agentId), STATE_QUERY);
    } catch (error) {
      return error instanceof WorkflowNotFoundError || error instanceof QueryRejectedError
        ? "lost"
        : "silent";
    }
  }

  #ask<T>(workflowId: string, query: string): Promise<T> {
    const handle = this.#temporal.workflow.getHandle(workflowId);
    return this.#temporal.withDeadline(Date.now() + ACTOR_MS, () => handle.query<T>(query));
  }

  async #projects(read: readonly AgentBooksRead[], focus: Focus | null): Promise<ProjectBooks[]> {
    const agents = read.map(({ actor }) => actor).filter((actor) => typeof actor !== "string");
    const of = new Map<string, AgentStateView[]>();
    for (const agent of agents) {
      const others = of.get(agent.profile.projectId);
      if (others === undefined) of.set(agent.profile.projectId, [agent]);
      else others.push(agent);
    }
    for (const projectId of focus?.projectIds ?? []) if (!of.has(projectId)) of.set(projectId, []);
    return askEach([...of], async ([projectId, own]) => {
      const budget = await this.#budget(projectId);
      const isBudgetLost = budget === null && (await this.#hadCaps(projectId));
      return { projectId, agents: own, budget, isBudgetLost };
    });
  }

  async #budget(projectId: string): Promise<BudgetBooksView | null> {
    try {
      return await this.#ask<BudgetBooksView>(budgetWorkflowId(projectId), BUDGET_BOOKS_QUERY);
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return null;
      throw error;
    }
  }

  async #payments(agents: readonly AgentBooksRead[], focus: Focus | null): Promise<PaymentEntry[]> {
    if (focus === null) return agents.flatMap(({ transactions }) => transactions.map(paymentEntry));
    const found = await this.#collections.transactions
      .find({ _id: { $in: [...focus.paymentIds] } })
      .toArray();
    return found.map(paymentEntry);
  }

  async #ledger(organizationId: string, focus: Focus | null): Promise<LedgerEntry[]> {
    const some = focus === null ? {} : { transactionId: { $in: [...focus.paymentIds] } };
    const found = await this.#collections.cardLedger.find({ organizationId, ...some }).toArray();
    return found.map(({ _id, amountCents, merchant, status, transactionId }) => ({
      id: _id,
      amountCents,
      merchant,
      status,
      transactionId,
    }));
  }

  async #wallets(
    organizationId: string,
    payments: readonly PaymentEntry[],
    focus: Focus | null,
  ): Promise<WalletBooks | string | null> {
    if (this.#chain === null) return null;
    const agents = await this.#collections.agents.find({ organizationId, wallet: { $ne: null } }).toArray();
    const walletOf = new Map(agents.map(({ _id, wallet }) => [_id, wallet?.address ?? ""]));
    const spender = agents[0]?.wallet?.spender;
    if (spender === undefined) return null;
    try {
      const spent = await spentEvents(this.#chain, this.#addresses(agents), this.#token(spender));
      const ids = focus === null ? null : focus.paymentIds;
      const relevant = ids === null ? payments : payments.filter(({ id }) => ids.has(id));
      return { payments: relevant, walletOf, unitsPerCent: this.#unitsPerCent(), spent };
    } catch (error) {
      return error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    }
  }

  #addresses = (agents: readonly AgentDocument[]) =>
    agents.map(({ wallet }) => addressOf(wallet?.address ?? ""));

  #token(spender: string) {
    const named = this.#env["EVM_TOKEN_ADDRESS"];
    return named === undefined ? sandboxTokenDeployment(addressOf(spender)).address : addressOf(named);
  }

  #unitsPerCent(): bigint {
    const decimals = Number(this.#env["EVM_TOKEN_DECIMALS"] ?? TOKEN_DECIMALS);
    return 10n ** BigInt(decimals - CENT_DECIMALS);
  }
}
