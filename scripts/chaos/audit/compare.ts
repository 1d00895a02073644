import { keccak256, toBytes } from "viem";
import type { PayingAgent } from "../tenant.ts";
import type { Books, TransactionEntry } from "./books.ts";

/** Units of the sandbox's token (6 decimals) in a cent. */
const UNITS_PER_CENT = 10_000n;

/** What does not agree, each in a line; empty: the books agree to the cent. */
export const compare = (books: Books): readonly string[] => [
  ...compareTickets(books),
  ...books.transactions.flatMap(compareStatus(books)),
  ...compareCards(books),
  ...compareWallets(books),
  ...books.agents.flatMap((agent) => compareAgent(books, agent)),
  ...compareBalances(books),
  ...compareNonces(books),
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

/** One capture for each approved card payment, one reversal too for each reversed one, and none for others. */
function compareCards({ ledger, transactions }: Books): string[] {
  const differences: string[] = [];
  const known = new Set(transactions.map(({ id }) => id));
  const entriesOf = grouped(ledger, ({ transactionId }) => transactionId);
  for (const { amountCents, id, rail, status, to } of transactions) {
    const entries = entriesOf.get(id) ?? [];
    const count = (wanted: string): number => entries.filter((entry) => entry.status === wanted).length;
    const isPaid = rail === "card" && (status === "approved" || status === "reversed");
    const wanted = { captured: isPaid ? 1 : 0, reversed: isPaid && status === "reversed" ? 1 : 0 };
    if (count("captured") !== wanted.captured || count("reversed") !== wanted.reversed)
      differences.push(
        `${id} (${rail}, ${status}): ${String(count("captured"))} captures, ${String(count("reversed"))} reversals`,
      );
    if (entries.some((entry) => entry.amountCents !== amountCents || entry.merchant !== to))
      differences.push(`${id}: the processor took another amount, or for another merchant`);
  }
  for (const { amountCents, id, transactionId } of ledger) {
    if (!known.has(transactionId))
      differences.push(`${id}: the processor took ${String(amountCents)} cents of which nobody knows`);
  }
  return differences;
}

/** One `Spent` event for each approved wallet payment, from its agent's wallet, and none for others. */
function compareWallets({ agents, chain, transactions }: Books): string[] {
  const differences: string[] = [];
  const events = grouped(chain.spent, ({ id }) => id);
  const walletOf = new Map(agents.map(({ id, wallet }) => [id, wallet]));
  const paid = transactions.filter(({ rail, status }) => rail === "wallet" && status === "approved");
  const wanted = new Set(paid.map(({ id }) => keccak256(toBytes(id))));
  for (const { agentId, amountCents, hash, id, to } of paid) {
    const found = events.get(keccak256(toBytes(id))) ?? [];
    const [event] = found;
    if (event === undefined || found.length > 1) {
      differences.push(`${id} (wallet, approved): paid ${String(found.length)} times on the chain`);
      continue;
    }
    if (event.units !== BigInt(amountCents) * UNITS_PER_CENT || event.to !== to)
      differences.push(`${id}: the chain paid ${String(event.units)} units to ${event.to}`);
    if (event.wallet !== walletOf.get(agentId)) differences.push(`${id}: paid from ${event.wallet}`);
    if (event.hash !== hash) differences.push(`${id}: names ${String(hash)}, was paid by ${event.hash}`);
  }
  for (const { hash, id, units } of chain.spent) {
    if (!wanted.has(id))
      differences.push(`${hash}: spent ${String(units)} units for ${id}, which is no approved payment`);
  }
  return differences;
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

function grouped<T>(items: readonly T[], keyOf: (item: T) => string): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}
