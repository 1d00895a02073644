import { z } from "zod";
import type { Answer, Request } from "./http.ts";
import { RECIPIENTS } from "./orders.ts";
import { MERCHANTS } from "./orders.ts";
import type { Random } from "../random.ts";
import type { PayingAgent, Tenant } from "./tenant.ts";

/** Of all requests for a raise, those that the owner grants, at times twice at once. */
const GRANTED_SHARE = 0.8;
const TWICE_SHARE = 0.5;
/** Ends of increases, ahead of the grant: within the round, or after it. */
const INCREASE_MIN_MS = 2_000;
const INCREASE_MAX_MS = 60_000;
const RAISED_MAX_CENTS = 3_000;

/** Between these times restrictions were in force for agents: their PUT had been answered, and no other was sent. */
export interface Restricted {
  /** Address of the restrictions, whose next PUT ends them. */
  readonly path: string;
  readonly agentIds: readonly string[];
  readonly never: readonly string[];
  /** Null: all rails. */
  readonly onlyRail: "card" | null;
  readonly from: number;
  until: number;
}

const versioned = z.object({ version: z.number() });
const requests = z.object({ raiseRequests: z.array(z.object({ id: z.string() })) });

/** An owner's restrictions and raises while agents pay, and agents that ask for raises. */
export class LimitChanges {
  readonly #tenant: Tenant;
  readonly #random: Random;
  readonly #restricted: Restricted[];
  #asked = 0;

  /** `restricted`: of the whole run. */
  constructor(tenant: Tenant, random: Random, restricted: Restricted[]) {
    this.#tenant = tenant;
    this.#random = random;
    this.#restricted = restricted;
  }

  /** Replaces the restrictions of an agent, or of a team. */
  async restrict(): Promise<void> {
    const random = this.#random;
    const agent = random.pick(this.#tenant.agents.filter(({ isChanged }) => isChanged));
    const isOfTeam = random.chance(0.3);
    const under = isOfTeam ? this.#tenant.agents.filter(({ teamId }) => teamId === agent.teamId) : [agent];
    const path = `/v1/${isOfTeam ? `teams/${agent.teamId}` : `agents/${agent.id}`}/restrictions`;
    const known = await this.#tenant.owner.ask({ method: "GET", path });
    if (known.status !== 200) return;
    const never = random.pick([
      [],
      [random.pick(MERCHANTS)],
      [random.pick(RECIPIENTS), random.pick(MERCHANTS)],
    ]);
    const onlyRail = random.chance(0.2) ? "card" : null;
    const body = {
      recipients: { only: null, never },
      merchantCategories: { only: null, never: [], uncoded: "allow" },
      rails: { only: onlyRail === null ? null : [onlyRail] },
      version: versioned.parse(known.body).version,
    };
    const agentIds = under.map(({ id }) => id);
    this.#end(path);
    const answer = await this.#tenant.owner.ask({ method: "PUT", path, body });
    // Any earlier PUT without an answer names an older version, and comes to nothing from now on.
    if (answer.status === 200)
      this.#restricted.push({ path, agentIds, never, onlyRail, from: Date.now(), until: Infinity });
  }

  #end(path: string): void {
    const now = Date.now();
    for (const each of this.#restricted) if (each.until === Infinity && each.path === path) each.until = now;
  }

  /** An agent asks for a raise; that it needs none, or has asked too often, is no matter. */
  async askForRaise(): Promise<void> {
    const random = this.#random;
    const agent = random.pick(this.#tenant.agents.filter(({ isBrief }) => !isBrief));
    this.#asked += 1;
    const body = {
      amountCents: random.between(1, RAISED_MAX_CENTS),
      reason: "chaos",
      idempotencyKey: `raise ${String(this.#asked)} of ${String(Date.now())}`,
    };
    await this.#agent(agent, { method: "POST", path: "/v1/raise-requests", body });
  }

  /** Decides one request that waits: grants it, at times twice at the same time, or refuses it. */
  async decideRaise(): Promise<void> {
    const random = this.#random;
    const [first] = await pendingRaises(this.#tenant);
    if (first === undefined) return;
    const path = `/v1/raise-requests/${first}`;
    if (!random.chance(GRANTED_SHARE)) {
      await this.#tenant.owner.ask({ method: "POST", path: `${path}/refuse`, body: { feedback: "no" } });
      return;
    }
    const ends = new Date(Date.now() + random.between(INCREASE_MIN_MS, INCREASE_MAX_MS)).toISOString();
    const body = random.pick([{}, { endsAt: null }, { endsAt: ends }]);
    const grants = random.chance(TWICE_SHARE) ? 2 : 1;
    await Promise.all(
      Array.from({ length: grants }, () =>
        this.#tenant.owner.ask({ method: "POST", path: `${path}/grant`, body }),
      ),
    );
  }

  #agent({ apiKey }: PayingAgent, request: Omit<Request, "token">): Promise<Answer> {
    return this.#tenant.service.ask({ ...request, token: apiKey });
  }
}

async function pendingRaises({ owner }: Tenant): Promise<readonly string[]> {
  const answer = await owner.ask({ method: "GET", path: "/v1/raise-requests?status=pending" });
  return answer.status === 200 ? requests.parse(answer.body).raiseRequests.map(({ id }) => id) : [];
}

/** Reads each request that waits: a grant that was interrupted is finished by its reader. */
export async function finishRaises(tenant: Tenant): Promise<void> {
  const pending = await pendingRaises(tenant);
  await Promise.all(
    pending.map((id) => tenant.owner.ask({ method: "GET", path: `/v1/raise-requests/${id}` })),
  );
}
