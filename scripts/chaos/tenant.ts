import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { createOrganization } from "../../server/admin/create-organization.ts";
import { type Answer, ask, type Request } from "./http.ts";
import type { Letterbox, Letters } from "./letterbox.ts";
import type { Place } from "./place.ts";

const PASSWORD = "correct horse battery staple";
const SET_UP_TRIES_MAX = 60;
const SET_UP_PAUSE_MS = 500;

/** An agent of the load. */
export interface PayingAgent {
  readonly id: string;
  readonly name: string;
  readonly apiKey: string;
  readonly wallet: string;
  readonly budgetCents: number;
  /** What was minted into its wallet. */
  readonly fundedCents: number;
  /** Whether its wallet holds more than it may spend, so that no payment may fail for want of money. */
  readonly wellFunded: boolean;
}

interface Character {
  readonly name: string;
  readonly budgetCents: number;
  readonly autoApprovalThresholdCents: number | null;
  readonly fundedCents: number;
}

/** Who pays: with room to spare, with a person's consent, against the end of a budget, and of a wallet. */
const CHARACTERS: readonly Character[] = [
  { name: "rich", budgetCents: 2_000_000, autoApprovalThresholdCents: null, fundedCents: 3_000_000 },
  { name: "free", budgetCents: 2_000_000, autoApprovalThresholdCents: null, fundedCents: 3_000_000 },
  { name: "asks", budgetCents: 2_000_000, autoApprovalThresholdCents: 600, fundedCents: 3_000_000 },
  { name: "asks often", budgetCents: 2_000_000, autoApprovalThresholdCents: 200, fundedCents: 3_000_000 },
  { name: "small budget", budgetCents: 20_000, autoApprovalThresholdCents: null, fundedCents: 100_000 },
  { name: "thin wallet", budgetCents: 2_000_000, autoApprovalThresholdCents: null, fundedCents: 10_000 },
];

/** Room that capped rounds leave under each cap; some payments do not fit. */
const TEAM_ROOM_CENTS = 8_000;
const PROJECT_ROOM_CENTS = 14_000;

/** A cap as it was set, with the agents that it is over. */
export interface CapOver {
  readonly name: string;
  readonly capCents: number;
  readonly agentIds: readonly string[];
}

const usage = z.object({ spentCents: z.number(), reservedCents: z.number() });
const budget = z.object({ version: z.number(), usage });
const team = z.object({ team: z.object({ id: z.string() }) });

type Asked = Omit<Request, "token">;

const session = z.object({ token: z.string() });
const createdAgent = z.object({
  agent: z.object({ id: z.string(), wallet: z.object({ address: z.string() }) }),
  apiKey: z.string(),
});
const registered = z.object({ endpoint: z.object({ id: z.string() }), secret: z.string() });
const funded = z.object({ balanceCents: z.number() });

/** An organization with its agents, made through the service while nothing disturbs it. */
export class Tenant {
  readonly organizationId: string;
  readonly projectId: string;
  readonly agents: readonly PayingAgent[];
  /** Its endpoint for everything that happens, which is older than its agents. */
  letters: readonly Letters[] = [];
  /** Those that are set now. */
  caps: readonly CapOver[] = [];
  readonly #teamOf = new Map<string, string>();
  readonly #baseUrl: string;
  readonly #email: string;
  #token: string | null = null;

  private constructor(
    baseUrl: string,
    email: string,
    { organizationId, projectId }: { readonly organizationId: string; readonly projectId: string },
    agents: PayingAgent[],
  ) {
    this.projectId = projectId;
    this.#baseUrl = baseUrl;
    this.#email = email;
    this.organizationId = organizationId;
    this.agents = agents;
  }

  static async create({ baseUrl, env, letterbox }: Place, number: number): Promise<Tenant> {
    const ownerEmail = `owner-${String(number)}@example.com`;
    const created = await createOrganization(env, {
      name: `Chaos ${String(number)}`,
      ownerEmail,
      ownerPassword: PASSWORD,
      plan: "enterprise",
      restPerMinute: 1_000_000,
      mcpPerMinute: 1_000_000,
    });
    const agents: PayingAgent[] = [];
    const tenant = new Tenant(baseUrl, ownerEmail, created, agents);
    await tenant.signIn();
    tenant.letters = [await tenant.#register(letterbox)];
    const body = { projectId: created.projectId, name: "Second team" };
    const made = await tenant.#do("creating a team", { method: "POST", path: "/v1/teams", body });
    const teamIds = [created.teamId, team.parse(made).team.id];
    for (const [index, character] of CHARACTERS.entries()) {
      const teamId = teamIds[index % teamIds.length] ?? created.teamId;
      const agent = await tenant.#createAgent(character, teamId);
      tenant.#teamOf.set(agent.id, teamId);
      agents.push(agent);
    }
    return tenant;
  }

  /** Sets caps a little above what is used now, over the project and each team, or takes them away. Nothing is under way. */
  async setCaps(isCapped: boolean): Promise<void> {
    const teamIds = [...new Set(this.#teamOf.values())];
    const path = `/v1/projects/${this.projectId}`;
    for (let tries = 0; tries < SET_UP_TRIES_MAX; tries += 1) {
      const project = await this.#budget(path);
      const capOver = (room: number, { reservedCents, spentCents }: z.infer<typeof usage>): number | null =>
        isCapped ? spentCents + reservedCents + room : null;
      const capCents = capOver(PROJECT_ROOM_CENTS, project.usage);
      const teams = [];
      for (const teamId of teamIds) {
        const used = (await this.#budget(`/v1/teams/${teamId}`)).usage;
        teams.push({ teamId, capCents: capOver(TEAM_ROOM_CENTS, used) });
      }
      const body = { version: project.version, capCents, teams };
      if ((await this.ask({ method: "PUT", path: `${path}/budget`, body })).status !== 200) continue;
      const all = this.agents.map(({ id }) => id);
      const over = teams.map((each) => ({
        name: `team ${each.teamId}`,
        capCents: each.capCents,
        agentIds: all.filter((id) => this.#teamOf.get(id) === each.teamId),
      }));
      const caps = [{ name: "project", capCents, agentIds: all }, ...over];
      this.caps = caps.flatMap((cap) => (cap.capCents === null ? [] : [{ ...cap, capCents: cap.capCents }]));
      return;
    }
    throw new Error("caps can't be set while nothing is down");
  }

  async #budget(path: string): Promise<z.infer<typeof budget>> {
    return budget.parse(await this.#do("reading a budget", { method: "GET", path: `${path}/budget` }));
  }

  /** A session lasts for some minutes only. */
  async signIn(): Promise<void> {
    const body = { email: this.#email, password: PASSWORD };
    const signedIn = await this.#do("signing in", { method: "POST", path: "/v1/auth/sign-in", body });
    this.#token = session.parse(signedIn).token;
  }

  /** As the owner, once; null-status and refusals are answers too. */
  ask(request: Asked): Promise<Answer> {
    return ask(this.#baseUrl, { ...request, token: this.#token });
  }

  /** As the owner, until it is done: what is asked for here must be repeatable. */
  async #do(what: string, request: Asked | (() => Asked)): Promise<unknown> {
    let last = "";
    for (let tries = 0; tries < SET_UP_TRIES_MAX; tries += 1) {
      const answer = await this.ask(typeof request === "function" ? request() : request);
      if (answer.status === 200 || answer.status === 201) return answer.body;
      last = JSON.stringify(answer);
      await sleep(SET_UP_PAUSE_MS);
    }
    throw new Error(`${what} does not succeed while nothing is down: ${last}`);
  }

  /** Each time at another address: one that was registered and not answered is nobody's, and not read. */
  async #register(letterbox: Letterbox): Promise<Letters> {
    let url = letterbox.newUrl();
    const answer = await this.#do("registering a webhook", () => {
      url = letterbox.newUrl();
      const body = { name: "All", url: url.toString(), eventTypes: ["*"] };
      return { method: "POST", path: "/v1/webhooks", body };
    });
    const { endpoint, secret } = registered.parse(answer);
    return { endpointId: endpoint.id, path: url.pathname, secret };
  }

  async #createAgent(character: Character, teamId: string): Promise<PayingAgent> {
    const { autoApprovalThresholdCents, budgetCents, fundedCents, name } = character;
    const body = { name, teamId, budgetCents, autoApprovalThresholdCents };
    const answer = await this.#do(`creating agent "${name}"`, { method: "POST", path: "/v1/agents", body });
    const { agent, apiKey } = createdAgent.parse(answer);
    const path = `/v1/sandbox/agents/${agent.id}/fund`;
    const minted = await this.#do("funding", { method: "POST", path, body: { amountCents: fundedCents } });
    const { balanceCents } = funded.parse(minted);
    if (balanceCents !== fundedCents)
      throw new Error(`agent "${name}" holds ${String(balanceCents)} cents, not ${String(fundedCents)}`);
    const wellFunded = fundedCents > budgetCents;
    return { id: agent.id, name, apiKey, wallet: agent.wallet.address, budgetCents, fundedCents, wellFunded };
  }
}
