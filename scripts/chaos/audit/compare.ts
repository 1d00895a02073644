import { compareProject } from "../../../server/admin/reconcile/budgets.ts";
import { compareCards, compareWallets, findingText } from "../../../server/admin/reconcile/rails.ts";
import type { PayingAgent } from "../tenant.ts";
import type { Books, ToldBooks, TransactionEntry } from "./books.ts";
import { changesIn, compareTold } from "./told.ts";

/** Units of the sandbox's token (6 decimals) in a cent. */
const UNITS_PER_CENT = 10_000n;

/** What does not agree, each in a line; empty: the books agree to the cent. */
export const compare = (books: Books): readonly string[] => [
  ...compareTickets(books),
  ...books.transactions.flatMap(compareStatus(books)),
  ...compareCards(books.transactions, books.ledger).map(findingText),
  ...compareWallets({
    payments: books.transactions,
    walletOf: new Map(books.agents.map(({ id, wallet }) => [id, wallet])),
    spent: books.chain.spent,
    unitsPerCent: UNITS_PER_CENT,
  }).map(findingText),
  ...books.agents.flatMap((agent) => compareAgent(books, agent)),
  ...compareCaps(books),
  ...books.projects
    .flatMap(compareProject)
    .map(({ expected, found, id, what }) => `${id}: ${what}; expected ${expected}, found ${found}`),
  ...compareBalances(books),
  ...compareNonces(books),
  ...books.told.flatMap((told) => compareWebhooks(books, told)),
];

/** Everything that was asked for was made once, for whoever asked, and nothing else was made. */
function compareTickets({ tickets, transactions }: Books): string[] {
  const differences: string[] = [];
  const byId = new Map(transactions.map((transaction) => [transaction.id, transaction]));
  const claimed = new Map<string, string>();
  for (const { order, transactionId } of tickets) {
    const { agent, amountCents, key, rail, to } = order;
    if (transactionId === null) {
      differences.push(`${key}: never answered`);
      continue;
    }
    const other = claimed.get(transactionId);
    if (other !== undefined) differences.push(`${transactionId}: made for ${other} and for ${key}`);
    claimed.set(transactionId, key);
    const made = byId.get(transactionId);
    if (made === undefined) {
      differences.push(`${transactionId}: answered to ${key}, and there is no such payment`);
      continue;
    }
    const asAsked = made.agentId === agent.id && made.amountCents === amountCents && made.rail === rail;
    if (!asAsked || made.to !== to) differences.push(`${transactionId}: not what ${key} asked for`);
  }
  for (const { id } of transactions) {
    if (!claimed.has(id))
      differences.push(`${id}: nobody was answered with it, though every key was answered`);
  }
  const keys = transactions.map(({ agentId, keyHash }) => `${agentId} ${keyHash}`);
  if (new Set(keys).size !== keys.length) differences.push("an idempotency key made more than one payment");
  return differences;
}

/** Statuses that this load can lead to; anything else is a payment that was wrongly refused, or never ended. */
function compareStatus({ agents }: Books): (transaction: TransactionEntry) => string[] {
  const byId = new Map(agents.map((agent) => [agent.id, agent]));
  return ({ agentId, amountCents, denialCode, id, rail, status, to }) => {
    const agent = byId.get(agentId);
    const what = `${id} (${rail}, ${String(amountCents)}, agent "${agent?.name ?? "unknown"}")`;
    if (status === "pending") return [`${what}: still pending`];
    if (status !== "failed") return [];
    if (denialCode === "CARD_DECLINED" && to === "sandbox-decline") return [];
    if (denialCode === "INSUFFICIENT_FUNDS" && rail === "wallet" && agent?.wellFunded === false) return [];
    return [`${what}: failed with ${String(denialCode)}, for which there is no reason`];
  };
}

/** The actor, the record and the payments of an agent say the same; every decision is there; the budget held. */
function compareAgent({ actors, records, transactions }: Books, agent: PayingAgent): string[] {
  const differences: string[] = [];
  const own = transactions.filter(({ agentId }) => agentId === agent.id);
  const spent = own
    .filter(({ status }) => status === "approved")
    .reduce((sum, { amountCents }) => sum + amountCents, 0);
  const who = `agent "${agent.name}" (${agent.id})`;
  const actor = actors.find(({ agentId }) => agentId === agent.id);
  const record = records.find(({ agentId }) => agentId === agent.id);
  for (const [name, said] of [
    ["actor", actor],
    ["record", record],
  ] as const) {
    if (said?.spentCents === spent && said.reservedCents === 0) continue;
    const text = `${String(said?.spentCents)} spent, ${String(said?.reservedCents)} reserved`;
    differences.push(`${who}: its ${name} says ${text}; its payments add up to ${String(spent)}`);
  }
  if ((actor?.openCount ?? 0) > 0) differences.push(`${who}: its actor has payments open`);
  if (spent > agent.budgetCents)
    differences.push(`${who}: spent ${String(spent)} of a budget of ${String(agent.budgetCents)}`);
  const numbers = own.map(({ sequence }) => sequence).toSorted((one, other) => one - other);
  const wrong = numbers.findIndex((number, index) => number !== index + 1);
  if (wrong >= 0) differences.push(`${who}: decision ${String(wrong + 1)} is missing, or there twice`);
  return differences;
}

/** What the agents under a cap have spent fits it. */
const compareCaps = ({ caps, transactions }: Books): string[] =>
  caps.flatMap(({ agentIds, capCents, name }) => {
    const spent = transactions
      .filter(({ agentId, status }) => status === "approved" && agentIds.includes(agentId))
      .reduce((sum, { amountCents }) => sum + amountCents, 0);
    return spent <= capCents ? [] : [`${name}: spent ${String(spent)} under a cap of ${String(capCents)}`];
  });

/** What was minted is in the wallet, but for what was spent; and nothing is anywhere else. */
function compareBalances({ agents, chain }: Books): string[] {
  const differences: string[] = [];
  for (const agent of agents) {
    const wallet = chain.wallets.find(({ agentId }) => agentId === agent.id);
    const spent = chain.spent
      .filter((event) => event.wallet === agent.wallet)
      .reduce((sum, { units }) => sum + units, 0n);
    const minted = BigInt(agent.fundedCents) * UNITS_PER_CENT;
    if (wallet?.mintedUnits !== minted)
      differences.push(
        `agent "${agent.name}": ${String(wallet?.mintedUnits)} units minted, not ${String(minted)}`,
      );
    if (wallet?.balanceUnits !== minted - spent)
      differences.push(
        `agent "${agent.name}": its wallet holds ${String(wallet?.balanceUnits)} units, not ${String(minted - spent)}`,
      );
  }
  if (chain.supplyUnits !== chain.heldUnits)
    differences.push(
      `${String(chain.supplyUnits)} units were made, ${String(chain.heldUnits)} are accounted for`,
    );
  return differences;
}

/** No nonce is missing or stuck, and what is in the chain is what was recorded. */
function compareNonces({ chain }: Books): string[] {
  const { nonce, recorded, withoutReceipt } = chain;
  const numbers = recorded.map((entry) => entry.nonce).toSorted((one, other) => one - other);
  const gap = numbers.findIndex((number, index) => number !== index);
  return [
    ...(gap < 0 ? [] : [`nonce ${String(gap)} of the service's key was recorded twice, or never`]),
    ...(nonce === numbers.length
      ? []
      : [`${String(numbers.length)} transactions are recorded, ${String(nonce)} are in the chain`]),
    ...withoutReceipt.map((hash) => `${hash} is recorded, and the chain has no receipt of it`),
  ];
}

/** An organization was told of each of its changes, once by its delivery's id, and of nobody else's. */
function compareWebhooks({ approvals, transactions }: Books, told: ToldBooks): string[] {
  const { agentIds, arrivals, deliveries, forged } = told;
  const isOwn = ({ agentId }: { readonly agentId: string }): boolean => agentIds.includes(agentId);
  const changes = changesIn({
    agentIds,
    approvals: approvals.filter(isOwn),
    transactions: transactions.filter(isOwn),
  });
  return [...forged, ...compareTold(changes, arrivals, deliveries)].map((line) => `webhooks: ${line}`);
}
