import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { Random } from "../../../lab/random.ts";
import type { Answer, Api } from "../../support/api.ts";
import type { SetCap } from "./observed.ts";

/** What everybody does to one project at once, and what they see of it. */

export interface Member {
  readonly id: string;
  readonly apiKey: string;
  readonly teamId: string;
}

export interface Place {
  readonly projectId: string;
  readonly teamIds: readonly string[];
  readonly members: readonly Member[];
}

/** A server that can be reached, with the owner's session there: each signs sessions as its own address. */
export interface Reached {
  readonly api: Api;
  readonly token: string;
}

/** A payment as its client knows it. */
export interface Order {
  readonly member: Member;
  readonly key: string;
  readonly amountCents: number;
  readonly merchant: string;
  readonly sentAt: number;
  requests: number;
  answeredAt: number | null;
  transactionId: string | null;
}

const CLIENTS = 6;
const AMOUNT_MAX_CENTS = 900;
const ODD_SHARE = 0.3;
const CANCELLED_SHARE = 0.15;
const RETRY_MS = 200;
const LOOK_MS = 250;
const CHANGE_MS = 150;
const ARCHIVED_MAX = 2;
const ODD = ["sandbox-decline", "sandbox-reverse", "sandbox-slow", "sandbox-flaky"] as const;

const paid = z.object({ transaction: z.object({ id: z.string(), status: z.string() }) });
const usage = z.object({ spentCents: z.number(), reservedCents: z.number() });
const teamCap = z.object({ teamId: z.string(), capCents: z.number().nullable() });
const budget = z.looseObject({ version: z.number(), usage, teams: z.array(teamCap).optional() });
const waiting = z.object({ approvals: z.array(z.object({ id: z.string(), transactionId: z.string() })) });
const policy = z.looseObject({ version: z.number() });

export class Workload {
  readonly orders: Order[] = [];
  readonly caps: SetCap[] = [];
  /** Answers that nothing excuses. */
  readonly oddities: string[] = [];
  readonly archived = new Map<string, number>();
  /**
   * When a client first wanted to end or to pay what was on hold, by transaction: the owner may see it wait before its
   * client has its answer.
   */
  readonly decided = new Map<string, number>();
  readonly changes: Record<string, number> = {};
  readonly #place: Place;
  /** The servers that can be reached now. */
  readonly #servers: () => readonly Reached[];
  readonly #working: Promise<unknown>[];
  #stopped = false;

  constructor(place: Place, random: Random, servers: () => readonly Reached[]) {
    this.#place = place;
    this.#servers = servers;
    const clients = Array.from({ length: CLIENTS }, (_none, index) =>
      this.#pay(index, random.fork(`client ${String(index)}`)),
    );
    this.#working = [...clients, this.#decide(random.fork("owner")), this.#change(random.fork("admin"))];
    // What went wrong is told by `stop`.
    for (const work of this.#working) work.catch(() => undefined);
  }

  /** Everybody stops after what they are at; every payment has its answer then. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#working);
  }

  async #call(
    random: Random,
    method: string,
    path: string,
    as: Member | "owner",
    body?: unknown,
  ): Promise<Answer | null> {
    const { api, token: session } = random.pick(this.#servers());
    const token = as === "owner" ? session : as.apiKey;
    return api.call(method, path, { token, ...(body === undefined ? {} : { body }) }).catch(() => null);
  }

  async #pay(client: number, random: Random): Promise<void> {
    for (let number = 1; !this.#stopped; number += 1) {
      const merchant = random.chance(ODD_SHARE) ? random.pick(ODD) : "shop";
      const order: Order = {
        member: random.pick(this.#place.members),
        key: `${String(client)}-${String(number)}`,
        amountCents: random.between(1, AMOUNT_MAX_CENTS),
        merchant,
        sentAt: Date.now(),
        requests: 0,
        answeredAt: null,
        transactionId: null,
      };
      this.orders.push(order);
      const status = await this.#untilAnswered(order, random);
      if (status === "pending" && random.chance(CANCELLED_SHARE)) {
        const transactionId = order.transactionId ?? "";
        this.#decides(transactionId);
        const path = `/v1/payments/${transactionId}/cancel`;
        await this.#call(random, "POST", path, order.member);
      }
    }
  }

  /** Asks again under the same key, of whichever server there is. Null: the agent may not pay. */
  async #untilAnswered(order: Order, random: Random): Promise<string | null> {
    const { amountCents, key: idempotencyKey, member, merchant } = order;
    const body = { rail: "card", amountCents, merchant, purpose: "a test", idempotencyKey };
    for (;;) {
      order.requests += 1;
      const answer = await this.#call(random, "POST", "/v1/payments", member, body);
      if (answer !== null && (answer.status === 200 || answer.status === 201)) {
        const { transaction } = paid.parse(answer.body);
        order.answeredAt = Date.now();
        order.transactionId = transaction.id;
        return transaction.status;
      }
      // A paused agent's, or an archived one's.
      if (answer?.status === 403 || answer?.status === 401) return null;
      if (answer !== null && answer.status !== 503 && answer.status !== 429)
        this.oddities.push(`${idempotencyKey}: ${String(answer.status)} ${JSON.stringify(answer.body)}`);
      await sleep(RETRY_MS);
    }
  }

  #decides(transactionId: string): void {
    if (!this.decided.has(transactionId)) this.decided.set(transactionId, Date.now());
  }

  async #decide(random: Random): Promise<void> {
    while (!this.#stopped) {
      const answer = await this.#call(random, "GET", "/v1/approvals/pending", "owner");
      const { approvals } = answer?.status === 200 ? waiting.parse(answer.body) : { approvals: [] };
      for (const { id, transactionId } of approvals.slice(0, 4)) {
        const choice = random.between(1, 3);
        if (choice === 3) continue;
        this.#decides(transactionId);
        const path = `/v1/approvals/${id}/${choice === 1 ? "approve" : "deny"}`;
        await this.#call(random, "POST", path, "owner", choice === 1 ? undefined : { feedback: "No." });
      }
      await sleep(LOOK_MS);
    }
  }

  async #change(random: Random): Promise<void> {
    while (!this.#stopped) {
      const kind = random.pick([
        "team",
        "team",
        "team",
        "project",
        "project",
        "policy",
        "pause",
        "archive",
      ] as const);
      const isDone = await this.#changeOne(kind, random);
      if (isDone) this.changes[kind] = (this.changes[kind] ?? 0) + 1;
      await sleep(CHANGE_MS);
    }
    // No agent stays paused, so that what is on hold can end.
    for (const { id } of this.#place.members)
      await this.#call(random, "POST", `/v1/agents/${id}/resume`, "owner");
  }

  async #changeOne(
    kind: "team" | "project" | "policy" | "pause" | "archive",
    random: Random,
  ): Promise<boolean> {
    const { members, projectId, teamIds } = this.#place;
    const member = random.pick(members);
    const path = `/v1/agents/${member.id}`;
    switch (kind) {
      case "team": {
        const teamId = random.pick(teamIds);
        return this.#setCap(random, teamId, `/v1/teams/${teamId}/budget`, 2_500);
      }
      case "project":
        return this.#setCap(random, "project", `/v1/projects/${projectId}/budget`, 6_000);
      case "policy": {
        const read = await this.#call(random, "GET", `${path}/budget-policy`, "owner");
        if (read?.status !== 200) return false;
        const { version } = policy.parse(read.body);
        const body = { version, budgetCents: random.between(20_000, 60_000) };
        return (await this.#call(random, "PATCH", `${path}/budget-policy`, "owner", body))?.status === 200;
      }
      case "pause": {
        const paused = await this.#call(random, "POST", `${path}/pause`, "owner");
        await sleep(CHANGE_MS);
        await this.#call(random, "POST", `${path}/resume`, "owner");
        return paused?.status === 200;
      }
      case "archive":
        if (this.archived.size >= ARCHIVED_MAX || !random.chance(0.2)) return false;
        this.archived.set(member.id, Date.now());
        return (await this.#call(random, "DELETE", path, "owner"))?.status === 200;
    }
  }

  /** A cap a little above what is used, so that it is met soon; now and then below, or none. */
  async #setCap(random: Random, level: string, path: string, roomCents: number): Promise<boolean> {
    const read = await this.#call(random, "GET", path, "owner");
    if (read?.status !== 200) return false;
    const { usage: used, version, ...children } = budget.parse(read.body);
    const { teams = [] } = children;
    const total = used.spentCents + used.reservedCents;
    const room = random.chance(0.1) ? null : random.between(-500, roomCents);
    const capCents = room === null ? null : Math.max(0, total + room);
    const sentAt = Date.now();
    // A project's names its teams' caps, too.
    const named = [
      { level, capCents },
      ...teams.map((team) => ({ level: team.teamId, capCents: team.capCents })),
    ];
    const before = this.caps.length;
    this.caps.push(...named.map((cap) => ({ ...cap, sentAt, appliedBy: Infinity })));
    const answer = await this.#call(random, "PUT", path, "owner", { ...children, capCents, version });
    if (answer === null || answer.status >= 500) return false;
    this.caps.splice(before);
    if (answer.status !== 200) return false;
    this.caps.push(...named.map((cap) => ({ ...cap, sentAt, appliedBy: Date.now() })));
    return true;
  }
}
