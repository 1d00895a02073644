import { z } from "zod";
import { createOrganization } from "../../server/admin/create-organization.ts";
import { Service } from "./http.ts";
import type { Letterbox, Letters } from "./letterbox.ts";
import { Owner, PASSWORD } from "./owner.ts";
import type { Random } from "../random.ts";
import type { Site } from "./site.ts";

const SET_UP_TRIES_MAX = 60;

/** An agent of the load. */
export interface PayingAgent {
  readonly id: string;
  readonly name: string;
  readonly apiKey: string;
  readonly wallet: string;
  readonly budgetCents: number;
  /** Amount minted into its wallet. */
  readonly fundedCents: number;
  /** Whether its wallet holds more than it may spend, so that no payment may fail for want of money. */
  readonly wellFunded: boolean;
  readonly teamId: string;
  /** Whether it has room to spare, and needs nobody's consent. */
  readonly isPlain: boolean;
  /** Whether the owner's changes may pause it, or give it another policy. */
  readonly isChanged: boolean;
  /** Created for one round, in which it is archived. */
  readonly isBrief: boolean;
}

interface Character {
  readonly name: string;
  readonly budgetCents: number;
  readonly autoApprovalThresholdCents: number | null;
  readonly fundedCents: number;
  readonly isChanged?: boolean;
}

/** Payers: with room to spare, with a person's consent, against the end of a budget, and of a wallet. */
const CHARACTERS: readonly Character[] = [
  { name: "rich", budgetCents: 2_000_000, autoApprovalThresholdCents: null, fundedCents: 3_000_000 },
  {
    name: "free",
    budgetCents: 2_000_000,
    autoApprovalThresholdCents: null,
    fundedCents: 3_000_000,
    isChanged: true,
  },
  { name: "asks", budgetCents: 2_000_000, autoApprovalThresholdCents: 600, fundedCents: 3_000_000 },
  {
    name: "asks often",
    budgetCents: 2_000_000,
    autoApprovalThresholdCents: 200,
    fundedCents: 3_000_000,
    isChanged: true,
  },
  { name: "small budget", budgetCents: 20_000, autoApprovalThresholdCents: null, fundedCents: 100_000 },
  { name: "thin wallet", budgetCents: 2_000_000, autoApprovalThresholdCents: null, fundedCents: 10_000 },
];

/** Archived in the round that it is created for, with payments on hold. */
const BRIEF: Character = {
  name: "brief",
  budgetCents: 2_000_000,
  autoApprovalThresholdCents: 400,
  fundedCents: 3_000_000,
};

/** A budget above this is not used up in a run. */
const PLAIN_MIN_CENTS = 1_000_000;

/** Room that capped rounds leave under each cap; some payments do not fit. */
const TEAM_MARGIN_CENTS = 8_000;
const PROJECT_MARGIN_CENTS = 14_000;

/** Amounts that periods' spend limits are set to at the most; agents come near them after a few rounds. */
const AGENT_PERIOD_CENTS = 12_000;
const TEAM_PERIOD_CENTS = 60_000;
/** Always limited, so that all spending counts against the highest amount that was set. */
export const LIMITED_PERIOD = "year";
const OTHER_PERIODS = ["day", "week", "month", "quarter"] as const;

/** The highest amount that a period's limit of an agent or a team was ever set to. */
export interface SpendLimitOver {
  readonly of: string;
  readonly limit: typeof LIMITED_PERIOD | (typeof OTHER_PERIODS)[number];
  readonly mostCents: number;
}

/** The highest that a cap may have been since all of its usage fitted, with the team (null: all agents) that it is over. */
export interface CapOver {
  readonly teamId: string | null;
  readonly capCents: number;
}

const usage = z.object({ spentCents: z.number(), reservedCents: z.number() });
const budget = z.object({
  version: z.number(),
  capCents: z.number().nullable(),
  usage,
  agents: z.array(z.object({ agentId: z.string(), budgetCents: z.number() })).optional(),
});
const team = z.object({ team: z.object({ id: z.string() }) });
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
  readonly service: Service;
  readonly owner: Owner;
  readonly #agents: PayingAgent[] = [];
  readonly #teamIds: string[];
  /** Its endpoint for everything that happens, which is older than its agents. */
  letters: readonly Letters[] = [];
  #spendLimits: SpendLimitOver[] = [];
  /** Caps in force. */
  caps: readonly CapOver[] = [];

  private constructor(
    service: Service,
    email: string,
    { organizationId, projectId, teamId }: Record<"organizationId" | "projectId" | "teamId", string>,
  ) {
    this.projectId = projectId;
    this.service = service;
    this.owner = new Owner(service, email);
    this.organizationId = organizationId;
    this.#teamIds = [teamId];
  }

  static async create({ baseUrls, env, letterbox }: Site, number: number): Promise<Tenant> {
    const ownerEmail = `owner-${String(number)}@example.com`;
    const created = await createOrganization(env, {
      name: `Chaos ${String(number)}`,
      ownerEmail,
      ownerPassword: PASSWORD,
      plan: "enterprise",
      restPerMinute: 1_000_000,
      mcpPerMinute: 1_000_000,
    });
    const tenant = new Tenant(new Service(baseUrls), ownerEmail, created);
    const { owner } = tenant;
    await owner.enrol();
    tenant.letters = [await tenant.#register(letterbox)];
    const body = { projectId: created.projectId, name: "Second team" };
    const made = await owner.do("creating a team", { method: "POST", path: "/v1/teams", body });
    tenant.#teamIds.push(team.parse(made).team.id);
    for (const teamId of tenant.#teamIds) await tenant.#limit(teamId);
    for (const [index, character] of CHARACTERS.entries()) await tenant.#createAgent(character, index);
    return tenant;
  }

  get spendLimits(): readonly SpendLimitOver[] {
    return this.#spendLimits;
  }

  /** Limits a team before anything is spent. */
  async #limit(teamId: string): Promise<void> {
    this.#note(teamId, LIMITED_PERIOD, TEAM_PERIOD_CENTS);
    const spendLimits = [{ period: LIMITED_PERIOD, limitCents: TEAM_PERIOD_CENTS }];
    const path = `/v1/teams/${teamId}`;
    for (let tries = 0; tries < SET_UP_TRIES_MAX; tries += 1) {
      const known = await this.budgetOf(path);
      if (known === null) continue;
      const body = { version: known.version, capCents: null, agents: [], spendLimits };
      const answer = await this.owner.ask({ method: "PUT", path: `${path}/budget`, body });
      if (answer.status === 200) return;
    }
    throw new Error("a team's limit can't be set while nothing is down");
  }

  /** Other spend limits for an agent or a team, noted before they are sent. */
  newSpendLimits(of: string, random: Random) {
    const most = this.#teamIds.includes(of) ? TEAM_PERIOD_CENTS : AGENT_PERIOD_CENTS;
    const periods: readonly SpendLimitOver["limit"][] = random.chance(0.5)
      ? [LIMITED_PERIOD]
      : [random.pick(OTHER_PERIODS), LIMITED_PERIOD];
    const limits = periods.map((period) => ({ period, limitCents: random.between(most / 4, most) }));
    for (const { limitCents, period } of limits) this.#note(of, period, limitCents);
    return limits;
  }

  #note(of: string, limit: SpendLimitOver["limit"], cents: number): void {
    const isSame = (each: SpendLimitOver): boolean => each.of === of && each.limit === limit;
    const mostCents = Math.max(cents, this.#spendLimits.find(isSame)?.mostCents ?? 0);
    this.#spendLimits = [...this.#spendLimits.filter((each) => !isSame(each)), { of, limit, mostCents }];
  }

  /** All its agents, past ones too. */
  get agents(): readonly PayingAgent[] {
    return this.#agents;
  }

  /** One for this round only, beside those that stay. */
  createBrief(round: number): Promise<PayingAgent> {
    return this.#createAgent(BRIEF, round);
  }

  /** Sets caps a little above what is used now, over the project and each team, or takes them away. Nothing is under way. */
  async setCaps(isCapped: boolean): Promise<void> {
    for (let tries = 0; tries < SET_UP_TRIES_MAX; tries += 1) {
      const caps = await this.#replaceCaps(
        isCapped ? { team: TEAM_MARGIN_CENTS, project: PROJECT_MARGIN_CENTS } : null,
      );
      if (caps === null) continue;
      this.caps = caps;
      return;
    }
    throw new Error("caps can't be set while nothing is down");
  }

  /** While payments go on: other caps, of which each may have been in force. */
  async changeCaps(room: { readonly team: number; readonly project: number }): Promise<void> {
    if (this.caps.length > 0) await this.#replaceCaps(room);
  }

  /** Puts caps so far above what is used, or takes them away. Null: nothing was answered, or another client came first. */
  async #replaceCaps(
    room: { readonly team: number; readonly project: number } | null,
  ): Promise<CapOver[] | null> {
    const path = `/v1/projects/${this.projectId}`;
    const project = await this.budgetOf(path);
    if (project === null) return null;
    const teams = [];
    for (const teamId of this.#teamIds) {
      const known = await this.budgetOf(`/v1/teams/${teamId}`);
      if (known === null) return null;
      teams.push({ teamId, capCents: room === null ? null : above(room.team, known.usage) });
    }
    const capCents = room === null ? null : above(room.project, project.usage);
    // An unanswered change may come to be in force.
    const asked = [{ teamId: null, capCents }, ...teams].flatMap((cap) =>
      cap.capCents === null ? [] : [{ ...cap, capCents: cap.capCents }],
    );
    this.caps = this.caps.map((known) => ({
      ...known,
      capCents: Math.max(known.capCents, ...asked.filter(isOver(known)).map((cap) => cap.capCents)),
    }));
    const body = { version: project.version, capCents, teams };
    const answer = await this.owner.ask({ method: "PUT", path: `${path}/budget`, body });
    return answer.status === 200 ? asked : null;
  }

  /** A project's or a team's budget; null: there was no answer. */
  async budgetOf(path: string): Promise<z.infer<typeof budget> | null> {
    const answer = await this.owner.ask({ method: "GET", path: `${path}/budget` });
    return answer.status === 200 ? budget.parse(answer.body) : null;
  }

  /** Each time at another address: one that was registered and not answered has no reader. */
  async #register(letterbox: Letterbox): Promise<Letters> {
    let url = letterbox.newUrl();
    const answer = await this.owner.do("registering a webhook", () => {
      url = letterbox.newUrl();
      const body = { name: "All", url: url.toString(), eventTypes: ["*"] };
      return { method: "POST", path: "/v1/webhooks", body };
    });
    const { endpoint, secret } = registered.parse(answer);
    return { endpointId: endpoint.id, path: url.pathname, secret };
  }

  async #createAgent(character: Character, number: number): Promise<PayingAgent> {
    const { autoApprovalThresholdCents, budgetCents, fundedCents, isChanged = false, name } = character;
    const teamId = this.#teamIds[number % this.#teamIds.length] ?? "";
    const spendLimits = isChanged ? [{ period: LIMITED_PERIOD, limitCents: AGENT_PERIOD_CENTS }] : [];
    const body = { name, teamId, budgetCents, autoApprovalThresholdCents, spendLimits };
    const path = "/v1/agents";
    const answer = await this.owner.do(`creating agent "${name}"`, { method: "POST", path, body });
    const { agent, apiKey } = createdAgent.parse(answer);
    const minted = await this.owner.do("funding", {
      method: "POST",
      path: `/v1/sandbox/agents/${agent.id}/fund`,
      body: { amountCents: fundedCents },
    });
    const { balanceCents } = funded.parse(minted);
    if (balanceCents !== fundedCents)
      throw new Error(`agent "${name}" holds ${String(balanceCents)} cents, not ${String(fundedCents)}`);
    const created = {
      id: agent.id,
      name,
      apiKey,
      wallet: agent.wallet.address,
      budgetCents,
      fundedCents,
      wellFunded: fundedCents > budgetCents,
      teamId,
      isPlain: autoApprovalThresholdCents === null && budgetCents > PLAIN_MIN_CENTS,
      isChanged,
      isBrief: character === BRIEF,
    };
    if (isChanged) this.#note(agent.id, LIMITED_PERIOD, AGENT_PERIOD_CENTS);
    this.#agents.push(created);
    return created;
  }
}

const above = (cents: number, { reservedCents, spentCents }: z.infer<typeof usage>): number =>
  spentCents + reservedCents + cents;

const isOver =
  ({ teamId }: CapOver) =>
  (other: CapOver): boolean =>
    other.teamId === teamId;
