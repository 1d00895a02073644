import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { operations } from "../../src/contract/registry.ts";
import type { CardNetwork } from "../../src/engines/card-network/network.ts";
import type { Account, RunningCardNetwork } from "../../src/engines/card-network/server.ts";
import type { Authorization, Card, Totals } from "../../src/engines/card-network/shapes.ts";
import { MERCHANT, play } from "../../test/rails/stripe/plays.ts";
import type { Random } from "../random.ts";
import { ForeignSender } from "./foreign.ts";
import { isPassing } from "./http.ts";
import { longestGapMs, type RoundResult, roundText, type RunResult } from "./report.ts";
import type { Disaster, Site } from "./site.ts";
import { Tenant } from "./tenant.ts";
import type { PaymentAnswer } from "./tickets.ts";
import { reasonOf, untilNothingIsMissing } from "./until.ts";

/** Payments whose cards are played with at the same time. */
const CLIENTS = 6;
/** Things that a merchant or the network does with each card. */
const PLAYS = 8;
const BETWEEN_PLAYS_MAX_MS = 120;
const CANCELLED_SHARE = 0.1;
const AMOUNT_CENTS = 5_000;
const LOAD_MS = 6_000;
const STRIKE_MIN_MS = 500;
const STRIKE_MAX_MS = 3_500;
const RETRY_MS = 250;
const SETTLED_MS = 120_000;
/** An organization lives for so many rounds: then its agent has used its budget. */
const ROUNDS_PER_TENANT = 5;

/** Nobody is stopped or asks again in these rounds. */
const nothing = () => Promise.resolve();

const paid = z.object({
  transaction: z.object({ id: z.string() }),
});

export interface CardRoundsOptions {
  readonly site: Site;
  readonly cardNetwork: RunningCardNetwork;
  readonly seed: number;
  readonly random: Random;
  /** One a round. */
  readonly disasters: readonly Disaster[];
  readonly say: (line: string) => void;
}

/** An organization whose cards are made at the network. */
interface Carded {
  readonly tenant: Tenant;
  readonly account: Account;
}

/** A payment that was asked for; its id is known once it was answered. */
interface Asked {
  readonly key: string;
  id: string | null;
}

/**
 * Plays rounds in which a card network does anything with the cards of an agent's payments, loses and doubles its messages, and decides
 * alone where the service is down. After each round every payment, and the agent's use, must be as the network's own books have them.
 */
export async function playCardRounds(options: CardRoundsOptions): Promise<RunResult> {
  const { disasters, say, seed, site } = options;
  const startedAt = new Date();
  const cards = new CardRounds(options);
  const rounds: RoundResult[] = [];
  for (const [index, disaster] of disasters.entries()) {
    const round = await cards.round(index + 1, disaster);
    rounds.push(round);
    say(roundText(round, disasters.length));
    if (round.differences.length > 0) break;
  }
  return {
    seed,
    startedAt: startedAt.toISOString(),
    seconds: (Date.now() - startedAt.getTime()) / 1_000,
    rounds,
    kills: rounds.reduce((sum, { kills }) => sum + kills, 0),
    payments: rounds.reduce((sum, { payments }) => sum + payments, 0),
    retries: rounds.reduce((sum, { retries }) => sum + retries, 0),
    deliveries: site.letterbox.requests,
    chainTransactions: 0,
    foreignTransactions: 0,
    agedRecords: 0,
    differences: [],
    passed: rounds.every(({ differences }) => differences.length === 0),
    dataDir: null,
  };
}

class CardRounds {
  readonly #options: CardRoundsOptions;
  readonly #foreign: ForeignSender;
  #current: Carded | null = null;
  #tenants = 0;
  #retries = 0;
  #slowestMs = 0;
  #answers: PaymentAnswer[] = [];
  /** Payments of the current organization. */
  #asked: Asked[] = [];
  /** Of them those that have come to their end as the network has it. */
  readonly #settledIds = new Set<string>();
  /** Answers that no payment should have. */
  readonly #oddities: string[] = [];
  readonly #reported = new Set<string>();

  constructor(options: CardRoundsOptions) {
    this.#options = options;
    this.#foreign = new ForeignSender(options.site);
  }

  async round(round: number, disaster: Disaster): Promise<RoundResult> {
    const random = this.#options.random.fork(`round ${String(round)}`);
    const carded = await this.#cardedOf(round);
    const { network } = carded.account;
    const payments = this.#asked.length;
    [this.#retries, this.#slowestMs, this.#answers] = [0, 0, []];
    network.configure({
      standsIn: random.pick(["approve", "decline"]),
      lost: 0.2,
      doubled: 0.2,
      delayMaxMs: 300,
      answersLost: 0.1,
      requestsDoubled: 0.2,
    });
    const startedAt = performance.now();
    const stopping = new AbortController();
    const clients = Array.from({ length: CLIENTS }, (_, client) =>
      this.#pay(carded, `${String(round)}-${String(client)}`, random.fork(String(client)), stopping.signal),
    );
    const atMs = random.between(STRIKE_MIN_MS, STRIKE_MAX_MS);
    await sleep(atMs);
    const accomplices = { stopAll: nothing, claimAll: nothing, foreign: this.#foreign };
    const { kills, over, what } = disaster.strike(accomplices, random.fork("disaster"));
    await over;
    const backMs = performance.now() - startedAt - atMs;
    await sleep(Math.max(0, LOAD_MS - (performance.now() - startedAt)));
    const endedAt = performance.now();
    stopping.abort();
    await Promise.all(clients);
    const gapMs = longestGapMs(this.#answers, { startedAt, endedAt });
    const differences = await this.#settled(carded);
    return {
      round,
      disaster: what,
      atMs,
      kills,
      backMs,
      payments: this.#asked.length - payments,
      changes: 0,
      retries: this.#retries,
      slowestAnswerMs: this.#slowestMs,
      gapMs,
      worstProjectGapMs: gapMs,
      engineGapMs: null,
      usage: null,
      settledMs: performance.now() - endedAt,
      differences: [...differences, ...this.#newOddities()],
    };
  }

  async #cardedOf(round: number): Promise<Carded> {
    if (this.#current !== null && (round - 1) % ROUNDS_PER_TENANT > 0) {
      await this.#current.tenant.owner.freshen();
      return this.#current;
    }
    const { cardNetwork, site } = this.#options;
    this.#tenants += 1;
    const tenant = await Tenant.create(site, this.#tenants);
    const apiKey = `rk_test_chaos_${String(this.#tenants)}`;
    const account = cardNetwork.accountOf(apiKey);
    const authorizationSecret = `whsec_of_chaos_${String(this.#tenants)}`;
    const connected = await tenant.owner.do("connecting the card network", {
      method: "PUT",
      path: "/v1/organization/rails/simulator",
      body: { apiKey, authorizationSecret },
    });
    const { authorizationUrl } = operations.connectCardIssuer.output.parse(connected).connection;
    account.network.configure({ authorizationUrl, authorizationSecret });
    this.#asked = [];
    this.#current = { tenant, account };
    return this.#current;
  }

  /** One payment after the other, each of whose cards the network does something with. */
  async #pay(carded: Carded, name: string, random: Random, signal: AbortSignal): Promise<void> {
    const { network } = carded.account;
    for (let number = 0; !signal.aborted; number += 1) {
      const asked: Asked = { key: `${name}-${String(number)}`, id: null };
      this.#asked.push(asked);
      while (asked.id === null && !signal.aborted) await this.#send(carded, asked);
      const [card] = asked.id === null ? [] : cardsOf(network, asked.id);
      if (card === undefined || asked.id === null) continue;
      for (let at = 0; at < PLAYS && !signal.aborted; at += 1) {
        await play(network, card.id, random);
        await sleep(random.between(0, BETWEEN_PLAYS_MAX_MS));
      }
      if (random.chance(CANCELLED_SHARE)) await this.#cancel(carded, asked.id);
    }
  }

  /** Sends the request once. What is no answer, or asks to come again, leaves the payment without an id. */
  async #send({ tenant }: Carded, asked: Asked): Promise<void> {
    const startedAt = performance.now();
    const merchant = MERCHANT.name;
    const body = {
      rail: "card",
      amountCents: AMOUNT_CENTS,
      merchant,
      purpose: "chaos",
      idempotencyKey: asked.key,
    };
    const { apiKey, id: agentId } = payerOf(tenant);
    const answer = await tenant.service.ask({ method: "POST", path: "/v1/payments", token: apiKey, body });
    this.#slowestMs = Math.max(this.#slowestMs, performance.now() - startedAt);
    if (isPassing(answer)) {
      this.#retries += 1;
      await sleep(RETRY_MS);
      return;
    }
    const parsed = paid.safeParse(answer.status === null ? null : answer.body);
    if (!parsed.success) {
      const oddity = `${asked.key} was answered ${JSON.stringify(answer)}`;
      if (!this.#oddities.includes(oddity)) this.#oddities.push(oddity);
      await sleep(RETRY_MS);
      return;
    }
    asked.id = parsed.data.transaction.id;
    this.#answers.push({ agentId, atMs: performance.now() });
  }

  /** Whether it may be cancelled depends on what the network has done. */
  async #cancel({ tenant }: Carded, id: string): Promise<void> {
    const { apiKey: token } = payerOf(tenant);
    await tenant.service.ask({ method: "POST", path: `/v1/payments/${id}/cancel`, token });
  }

  /** Everything the network has ends, its messages come once and at once, and then the service's books must be the network's. */
  async #settled(carded: Carded): Promise<readonly string[]> {
    const { network } = carded.account;
    network.configure({ lost: 0, doubled: 0, delayMaxMs: 0, answersLost: 0, requestsDoubled: 0 });
    try {
      await untilNothingIsMissing("the service comes to rest", SETTLED_MS, async () => {
        for (const asked of this.#asked) if (asked.id === null) await this.#send(carded, asked);
        if (this.#asked.some(({ id }) => id === null)) return "payments have no answer";
        await carded.account.settled();
        return this.#missing(carded);
      });
      return [];
    } catch (error) {
      return [reasonOf(error)];
    }
  }

  /** The first difference; null: none. What is open at the network ends, and what no merchant has charged is cancelled. */
  async #missing(carded: Carded): Promise<string | null> {
    const { account, tenant } = carded;
    const { network } = account;
    const left = this.#asked.flatMap(({ id }) => (id === null || this.#settledIds.has(id) ? [] : [id]));
    const found: string[] = [];
    const reader = async (): Promise<void> => {
      for (let id = left.pop(); id !== undefined; id = left.pop()) {
        const difference = await this.#differenceOf(carded, id);
        if (difference === null) this.#settledIds.add(id);
        else found.push(difference);
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, reader));
    if (found[0] !== undefined) return found[0];
    const spent = this.#asked
      .flatMap(({ id }) => (id === null ? [] : [usedOf(totalsOf(network, id))]))
      .reduce(
        (total, { capturedCents, netCreditedCents }) => total + Math.max(0, capturedCents - netCreditedCents),
        0,
      );
    const answer = await tenant.owner.ask({ method: "GET", path: `/v1/agents/${payerOf(tenant).id}` });
    if (answer.status !== 200) return `the agent can't be read: ${JSON.stringify(answer)}`;
    const { agent } = operations.getAgent.output.parse(answer.body);
    return agent.spentCents === spent && agent.reservedCents === 0
      ? null
      : `the agent has spent ${String(agent.spentCents)} and holds ${String(agent.reservedCents)}; by the network ${String(spent)} and 0`;
  }

  /** Null: the payment has come to its end as the network has it. */
  async #differenceOf(carded: Carded, id: string): Promise<string | null> {
    const { account, tenant } = carded;
    const { network } = account;
    const cards = cardsOf(network, id);
    if (cards.length > 1) return `${id} has ${String(cards.length)} cards`;
    for (const card of cards) {
      for (const open of openOf(network, card.id)) network.expire(open.id);
      // Any event has the card read.
      await network.authorize(card.id, 0, MERCHANT);
    }
    const answer = await tenant.owner.ask({ method: "GET", path: `/v1/transactions/${id}` });
    if (answer.status !== 200) return `${id} can't be read: ${JSON.stringify(answer)}`;
    const { transaction } = operations.getTransaction.output.parse(answer.body);
    const { capturedCents, creditedCents } = transaction.amounts;
    const totals = totalsOf(network, id);
    const used = usedOf(totals);
    if (capturedCents !== used.capturedCents || creditedCents !== used.creditedCents)
      return `${id} has ${JSON.stringify(transaction.amounts)}, the network ${JSON.stringify(totals)}`;
    if (transaction.status !== "pending") return null;
    await this.#cancel(carded, id);
    return `${id} is pending`;
  }

  #newOddities(): string[] {
    const { endings, fatal } = this.#options.site;
    const fresh = [...this.#oddities, ...endings].filter((line) => !this.#reported.has(line));
    for (const line of fresh) this.#reported.add(line);
    return fatal === null ? fresh : [...fresh, `an engine stays down: ${fatal}`];
  }
}

/** The agent of which the least is held back. */
function payerOf({ agents }: Tenant) {
  const [first] = agents;
  if (first === undefined) throw new Error("an organization has agents");
  return first;
}

const cardsOf = (network: CardNetwork, transactionId: string): readonly Card[] =>
  network.store.all<Card>("issuing.card").filter(({ metadata }) => metadata["transaction"] === transactionId);

const openOf = (network: CardNetwork, cardId: string): readonly Authorization[] =>
  network.store
    .all<Authorization>("issuing.authorization")
    .filter(({ card, status }) => card.id === cardId && status === "pending");

const totalsOf = (network: CardNetwork, transactionId: string): readonly Totals[] =>
  cardsOf(network, transactionId).flatMap(({ id }) => network.totalsOf(id));

function usedOf(totals: readonly Totals[]) {
  let [capturedCents, creditedCents, netCreditedCents] = [0, 0, 0];
  for (const { captured, credited, recalled } of totals) {
    capturedCents += captured;
    creditedCents += Math.max(0, credited - recalled);
    netCreditedCents += credited - recalled;
  }
  return { capturedCents, creditedCents, netCreditedCents };
}
