import { isDeepStrictEqual } from "node:util";
import { compareCards } from "../../../src/rails/card/reconcile.ts";
import { findingText } from "../../../src/rails/findings.ts";
import { comparePockets, topUpsOf } from "../../../src/rails/pocket/reconcile.ts";
import { compareWallets } from "../../../src/rails/wallet/reconcile.ts";
import { type Breach, moneyIn } from "../../../src/domain/ledger/books.ts";
import { usedCents } from "../../../src/domain/money.ts";
import type { PayingAgent } from "../tenant.ts";
import {
  type Books,
  type RecordEntry,
  type Shown,
  type DeliveredToEndpoint,
  type TransactionEntry,
  usedNonces,
} from "./books.ts";
import { LIMITED_PERIOD } from "../tenant.ts";
import { compareDecisions, compareIncreases, compareRestricted, raisedCents } from "./limits.ts";
import { changesIn, compareDelivered, expectedStates } from "./delivered.ts";

/** Units of the sandbox's token (6 decimals) in a cent. */
const UNITS_PER_CENT = 10_000n;

/** Returns disagreements, one a line; empty: the books agree to the cent. */
export const compare = (books: Books): readonly string[] => [
  ...compareTickets(books),
  ...books.transactions.flatMap(compareStatus(books)),
  ...compareCards(books.transactions, books.cardLedger).map(findingText),
  ...compareWallets({
    payments: books.transactions,
    laterIds: [],
    walletOf: new Map(books.agents.map(({ id, wallet }) => [id, wallet])),
    spent: books.chain.spent,
    pockets: books.chain.pockets,
    unitsPerCent: UNITS_PER_CENT,
  }).map(findingText),
  ...comparePockets({
    ...books.chain.pockets,
    payments: books.transactions,
    unitsPerCent: UNITS_PER_CENT,
  }).map(findingText),
  ...books.agents.flatMap((agent) => compareAgent(books, agent)),
  ...compareLevels(books),
  ...compareCaps(books),
  ...compareSent(books),
  ...compareStopped(books),
  ...compareRestricted(books),
  ...compareSpendLimits(books),
  ...compareDecisions(books),
  ...compareIncreases(books),
  ...compareBalances(books),
  ...compareNonces(books),
  ...books.delivered.flatMap((delivered) => compareWebhooks(books, delivered)),
];

/** Every request was carried out once, for its client, and nothing else was made. */
function compareTickets({ tickets, transactions }: Books): string[] {
  const differences: string[] = [];
  const byId = new Map(transactions.map((transaction) => [transaction.id, transaction]));
  const claimed = new Map<string, string>();
  const refused = new Set(tickets.filter(({ isRefused }) => isRefused).map(({ order }) => order.agent.id));
  for (const { isRefused, order, transactionId } of tickets) {
    const { agent, amountCents, key, rail, to } = order;
    if (transactionId === null) {
      if (isRefused) continue;
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
    const asAsked = made.agentId === agent.id && made.requestedCents === amountCents && made.rail === rail;
    if (!asAsked || made.to !== to) differences.push(`${transactionId}: not what ${key} asked for`);
  }
  for (const { agentId, id } of transactions) {
    // A payment that its agent's archive interrupted was never answered.
    if (!claimed.has(id) && !refused.has(agentId))
      differences.push(`${id}: nobody was answered with it, though every key was answered`);
  }
  const keys = transactions.map(({ agentId, keyHash }) => `${agentId} ${keyHash}`);
  if (new Set(keys).size !== keys.length) differences.push("an idempotency key made more than one payment");
  return differences;
}

/** Denial codes of approvals: the limits are checked again, and so is whether the agent is paused. */
const FAILS_AN_APPROVAL: readonly (string | null)[] = [
  "AGENT_PAUSED",
  "PER_TRANSACTION_LIMIT_EXCEEDED",
  "BUDGET_EXCEEDED",
  "DAILY_SPEND_LIMIT_EXCEEDED",
  "SPEND_LIMIT_EXCEEDED",
  "TEAM_CAP_EXCEEDED",
  "TEAM_SPEND_LIMIT_EXCEEDED",
  "PROJECT_CAP_EXCEEDED",
  "RAIL_NOT_ALLOWED",
  "RECIPIENT_NOT_ALLOWED",
];

/** Statuses that this load can lead to; anything else is a payment that was wrongly refused, or never ended. */
function compareStatus({ agents, approvals, tickets }: Books): (transaction: TransactionEntry) => string[] {
  const byId = new Map(agents.map((agent) => [agent.id, agent]));
  const approved = new Set(
    approvals.flatMap(({ isDecidedByPerson, transactionId }) => (isDecidedByPerson ? [transactionId] : [])),
  );
  const bought = new Set(
    tickets.flatMap(({ order, transactionId }) => (order.url === null ? [] : transactionId)),
  );
  return ({ agentId, amountCents, denialCode, id, rail, status, to }) => {
    const agent = byId.get(agentId);
    const what = `${id} (${rail}, ${String(amountCents)}, agent "${agent?.name ?? "unknown"}")`;
    if (status === "pending") return [`${what}: still pending`];
    if (status !== "failed") return [];
    if (denialCode === "CARD_DECLINED" && to === "sandbox-decline") return [];
    if (denialCode === "NOT_CHARGED" && to === "sandbox-uncharged") return [];
    // Its signature was over before the shop could settle it: the chain was away, or the pocket was emptied by an archive.
    if (denialCode === "NOT_CHARGED" && bought.has(id)) return [];
    if (denialCode === "INSUFFICIENT_FUNDS" && rail === "wallet" && agent?.wellFunded === false) return [];
    // Archived over it: the service has given up its right to spend from the wallet.
    if (denialCode === "RAIL_UNAVAILABLE" && rail === "wallet" && agent?.isBrief === true) return [];
    if (approved.has(id) && FAILS_AN_APPROVAL.includes(denialCode)) return [];
    return [`${what}: failed with ${String(denialCode)}, for which there is no reason`];
  };
}

/** By the books of their networks: what was captured, less what was given back. */
const spentIn = (transactions: readonly TransactionEntry[]): number =>
  usedCents(
    transactions.reduce(
      (sum, { authorizations }) => sum + moneyIn({ authorizations, clearances: [] }).spentMc,
      0,
    ),
  );

/** Beyond a limit a network may charge, and only what is flagged. */
const forcedIn = (
  transactions: readonly TransactionEntry[],
  level: Breach["level"],
  limit: Breach["limit"],
): number =>
  transactions
    .flatMap(({ breach }) => breach ?? [])
    .filter((each) => each.level === level && each.limit === limit)
    .reduce((sum, { overCents }) => sum + overCents, 0);

/** Account, actor, record and payments of an agent say the same; every decision is there; the budget held. */
function compareAgent(books: Books, agent: PayingAgent): string[] {
  const { accounts, actors, records, transactions } = books;
  const own = transactions.filter(({ agentId }) => agentId === agent.id);
  const spent = spentIn(own);
  const who = `agent "${agent.name}" (${agent.id})`;
  const record = records.find(({ agentId }) => agentId === agent.id);
  if (record === undefined) return [`${who}: it has no record`];
  const differences: string[] = [];
  if (record.spentCents !== spent || record.reservedCents !== 0)
    differences.push(`its record says ${moneyText(record)}; its payments add up to ${String(spent)}`);
  const account = accounts.find(({ agentId }) => agentId === agent.id);
  const life = actors.find(({ agentId }) => agentId === agent.id);
  if (record.state === "archived") {
    // Nothing is left to be done for it.
    if (account !== undefined) differences.push("it is archived, and its account is still there");
    if (life?.isWindowOpen === false) differences.push("it is archived, and its actor runs on");
    if (life !== undefined) differences.push(...differing("actor", life, record));
  } else {
    if (account === undefined) differences.push("its ledger has no account of it");
    else differences.push(...differing("account", account, record));
    if (life === undefined) differences.push("its actor does not run");
    else differences.push(...differing("actor", life, record));
    if ((account?.openCount ?? 0) > 0) differences.push("its account has payments open");
    if (account !== undefined && account.sequence !== own.length)
      differences.push(`its account has decided ${String(account.sequence)} of ${String(own.length)}`);
  }
  const budgetCents =
    agent.budgetCents + raisedCents(books, { level: "agent", limit: "budget", of: agent.id });
  if (spent > budgetCents + forcedIn(own, "agent", "budget"))
    differences.push(`spent ${String(spent)} of a budget of ${String(budgetCents)}`);
  const numbers = own.map(({ sequence }) => sequence).toSorted((one, other) => one - other);
  const wrong = numbers.findIndex((number, index) => number !== index + 1);
  if (wrong >= 0) differences.push(`decision ${String(wrong + 1)} is missing, or there twice`);
  return differences.map((difference) => `${who}: ${difference}`);
}

const moneyText = ({ reservedCents, spentCents }: Pick<Shown, "reservedCents" | "spentCents">): string =>
  `${String(spentCents)} spent, ${String(reservedCents)} reserved`;

const SHOWN = [
  "name",
  "keyId",
  "state",
  "policy",
  "policyVersion",
  "spentCents",
  "reservedCents",
] as const satisfies readonly (keyof Shown)[];

/** Returns differences between a source's fields of an agent and its record. */
const differing = (who: string, said: Partial<Shown>, record: RecordEntry): string[] =>
  SHOWN.filter((field) => field in said && !isDeepStrictEqual(said[field], record[field])).map(
    (field) =>
      `its ${who} says ${field} ${JSON.stringify(said[field])}, its record ${JSON.stringify(record[field])}`,
  );

const nameOf = ({ projectId, teamId }: Record<"projectId", string> & { teamId: string | null }): string =>
  teamId === null ? `project ${projectId}` : `team ${teamId}`;

const isUnder =
  (level: { readonly projectId: string; readonly teamId: string | null }) =>
  ({ projectId, teamId }: TransactionEntry): boolean =>
    level.teamId === null ? projectId === level.projectId : teamId === level.teamId;

/**
 * Compares a ledger's totals of project and teams with the sums of their payments, archived agents' too, and caps
 * with their records.
 */
const compareLevels = ({ levels, transactions }: Books): string[] =>
  levels.flatMap((level) => {
    const { cap, recordedCap, totals } = level;
    const spent = spentIn(transactions.filter(isUnder(level)));
    const shown = { spentCents: usedCents(totals.spentMc), reservedCents: usedCents(totals.reservedMc) };
    const isRight = shown.spentCents === spent && shown.reservedCents === 0;
    const caps = [cap, recordedCap].map(
      (each) => `${String(each.capCents)} of version ${String(each.version)}`,
    );
    return [
      ...(isRight ? [] : [`its ledger says ${moneyText(shown)}; its payments add up to ${String(spent)}`]),
      ...(isDeepStrictEqual({ ...cap }, { ...recordedCap })
        ? []
        : [`its cap is ${caps.join(" in the ledger, and in its record ")}`]),
    ].map((difference) => `${nameOf(level)}: ${difference}`);
  });

/** Checks that spending under a cap fits it. */
const compareCaps = ({ caps, raises, transactions }: Books): string[] =>
  caps.flatMap((known) => {
    const raised = raisedCents(
      { raises },
      known.teamId === null
        ? { level: "project", limit: "cap", of: known.projectId }
        : { level: "team", limit: "cap", of: known.teamId },
    );
    const cap = { ...known, capCents: known.capCents + raised };
    const spent = spentIn(transactions.filter(isUnder(cap)));
    const level = cap.teamId === null ? "project" : "team";
    return spent <= cap.capCents + forcedIn(transactions.filter(isUnder(cap)), level, "cap")
      ? []
      : [`${nameOf(cap)}: spent ${String(spent)} under a cap of ${String(cap.capCents)}`];
  });

/** Checks that spending in limited periods fits the highest limit that was set, with what raises have added. */
const compareSpendLimits = ({ agents, raises, spendLimits, transactions }: Books): string[] =>
  spendLimits.flatMap(({ limit, mostCents, of }) => {
    if (limit !== LIMITED_PERIOD) return [];
    const level = agents.some(({ id }) => id === of) ? "agent" : "team";
    const own = transactions.filter((each) => (level === "agent" ? each.agentId : each.teamId) === of);
    const most = mostCents + raisedCents({ raises }, { level, limit, of }) + forcedIn(own, level, limit);
    const spent = spentIn(own);
    return spent <= most
      ? []
      : [`${level} ${of}: spent ${String(spent)} of at most ${String(most)} in a ${limit}`];
  });

/** Checks that the log, by which payments sent too late are found, has each capture. */
function compareSent({ cardLedger, sent }: Books): string[] {
  if (sent === null) return [];
  const known = new Set(sent.map(({ transactionId }) => transactionId));
  return cardLedger
    .filter(({ authorizedMc, transactionId }) => authorizedMc !== undefined && !known.has(transactionId))
    .map(({ transactionId }) => `${transactionId}: MongoDB's log does not have its capture`);
}

/** After a pause or an archive was answered nothing is decided but to deny it; after a pause nothing is sent. */
function compareStopped({ sent, stopped, transactions }: Books): string[] {
  const agentOf = new Map(transactions.map(({ agentId, id }) => [id, agentId]));
  return stopped.flatMap(({ agentId, from, isPaused, until }) => {
    const since = new Date(from).toISOString();
    const isWithin = (at: Date): boolean => at.getTime() > from && at.getTime() < until;
    const decided = transactions.filter(
      (each) => each.agentId === agentId && each.status !== "denied" && isWithin(each.createdAt),
    );
    const late = (sent ?? []).filter(
      ({ at, transactionId }) => isPaused && agentOf.get(transactionId) === agentId && isWithin(at),
    );
    return [
      ...decided.map(({ createdAt, id }) => `${id}: decided at ${createdAt.toISOString()}`),
      ...late.map(({ at, transactionId }) => `${transactionId}: reached its rail at ${at.toISOString()}`),
    ].map((what) => `${what}, when its agent was stopped since ${since}`);
  });
}

/** Checks that minted money is in wallet and pocket but for what was spent, and nothing is anywhere else. */
function compareBalances({ agents, chain }: Books): string[] {
  const differences: string[] = [];
  const topUps = topUpsOf(chain.pockets.pockets);
  const pocketOf = new Map(chain.pockets.pockets.map(({ address, agentId }) => [agentId, address]));
  for (const agent of agents) {
    const wallet = chain.wallets.find(({ agentId }) => agentId === agent.id);
    const spent = chain.spent
      .filter((event) => event.wallet === agent.wallet && !topUps.has(event.id))
      .reduce((sum, { units }) => sum + units, 0n);
    const bought = chain.pockets.events
      .filter(({ pocket, to }) => pocket === pocketOf.get(agent.id) && to !== agent.wallet)
      .reduce((sum, { units }) => sum + units, 0n);
    const left = BigInt(agent.fundedCents) * UNITS_PER_CENT - spent - bought;
    const minted = BigInt(agent.fundedCents) * UNITS_PER_CENT;
    if (wallet?.mintedUnits !== minted)
      differences.push(
        `agent "${agent.name}": ${String(wallet?.mintedUnits)} units minted, not ${String(minted)}`,
      );
    if (wallet?.balanceUnits !== left)
      differences.push(
        `agent "${agent.name}": wallet and pocket hold ${String(wallet?.balanceUnits)} units, not ${String(left)}`,
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
  const numbers = usedNonces(chain);
  const gap = numbers.findIndex((number, index) => number !== index);
  const isTwice = new Set(recorded.map((entry) => entry.nonce)).size !== recorded.length;
  return [
    ...(gap < 0 ? [] : [`nonce ${String(gap)} of the service's key was never used`]),
    ...(isTwice ? ["a nonce of the service's key was recorded twice"] : []),
    ...(nonce === numbers.length
      ? []
      : [`${String(numbers.length)} nonces are used, ${String(nonce)} are in the chain`]),
    ...withoutReceipt.map((hash) => `${hash} is recorded, and the chain has no receipt of it`),
  ];
}

/** An organization received each of its changes, once by its delivery's id, and of no other's. */
function compareWebhooks(
  { approvals, records, transactions }: Books,
  delivered: DeliveredToEndpoint,
): string[] {
  const { agentIds, arrivals, deliveries, forged } = delivered;
  const isOwn = ({ agentId }: { readonly agentId: string }): boolean => agentIds.includes(agentId);
  const changes = [
    ...changesIn({
      agentIds,
      approvals: approvals.filter(isOwn),
      transactions: transactions.filter(isOwn),
    }),
    ...records.filter(isOwn).flatMap(({ agentId, state }) => expectedStates(agentId, state, arrivals)),
  ];
  return [...forged, ...compareDelivered(changes, arrivals, deliveries)].map((line) => `webhooks: ${line}`);
}
