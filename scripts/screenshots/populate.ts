import { randomUUID } from "node:crypto";
import { generate } from "otplib";
import { type Client, createClient, valueOf } from "../../src/client/client.ts";
import type { Answer } from "../../src/client/types.ts";

export const OWNER = { email: "ada@example.com", password: "plum-otter-quartz-72" } as const;

/** What the pictures show, and who signs in to look at it. */
export interface Stage {
  readonly totpSecret: string;
  readonly agentId: string;
  readonly projectId: string;
  readonly teamId: string;
  readonly approvalId: string;
  readonly transactionId: string;
}

const STEP_SECONDS = 30;

const as = (baseUrl: string, token: string): Client =>
  createClient({ baseUrl, credential: { type: "bearer", token } });

const AGENTS = [
  {
    name: "Research assistant",
    team: "general",
    budgetCents: 50_000,
    autoApprovalThresholdCents: 2_500,
    description: "Buys papers, data sets and transcripts.",
  },
  {
    name: "Cloud janitor",
    team: "general",
    budgetCents: 120_000,
    autoApprovalThresholdCents: null,
    description: "Keeps test machines running, and no longer than needed.",
  },
  {
    name: "Campaign buyer",
    team: "ads",
    budgetCents: 400_000,
    autoApprovalThresholdCents: 10_000,
    description: "Places small campaigns and reports on them.",
  },
  {
    name: "Travel planner",
    team: "events",
    budgetCents: 250_000,
    autoApprovalThresholdCents: 0,
    description: "Books trains and rooms for the team.",
  },
  {
    name: "Swag runner",
    team: "events",
    budgetCents: 30_000,
    autoApprovalThresholdCents: 1_500,
    description: null,
  },
] as const;

type AgentName = (typeof AGENTS)[number]["name"];

const PAYMENTS: readonly (readonly [AgentName, number, string, string])[] = [
  ["Research assistant", 1_200, "Paper Mirror", "Full text of two papers on batching"],
  ["Research assistant", 2_300, "Data Bazaar", "Sample of the transit data set"],
  ["Research assistant", 900, "sandbox-decline", "A transcript"],
  ["Cloud janitor", 18_200, "Cloud Nine Hosting", "Two test machines for the weekend"],
  ["Cloud janitor", 4_200, "Cloud Nine Hosting", "Object storage, November"],
  ["Cloud janitor", 1_500, "sandbox-reverse", "A domain that was taken"],
  ["Campaign buyer", 9_900, "Search Ads", "Campaign “winter”, first day"],
  ["Campaign buyer", 9_900, "Search Ads", "Campaign “winter”, second day"],
  ["Campaign buyer", 990_000, "Billboard Giant", "The whole city, for a week"],
  ["Swag runner", 2_900, "Sticker Factory", "500 stickers for the booth"],
  [
    "Travel planner",
    12_900,
    "Regional Rail",
    "Return ticket to the workshop in Utrecht, second class, for Mary",
  ],
  ["Campaign buyer", 32_000, "Podcast Network", "Sponsor two episodes in January"],
  [
    "Research assistant",
    7_500,
    "Journal of Applied Ledgers",
    "Annual access, cheaper than buying the four articles one by one",
  ],
  [
    "Travel planner",
    43_000,
    "Hotel Zur Post",
    "Two nights for two people, close to the venue, can be cancelled until Friday",
  ],
];

/** An organization with projects, agents, payments and people, all of it by the service's own client. */
export async function populate(origin: string, token: string): Promise<Stage> {
  const anonymous = createClient({ baseUrl: origin });
  const setUp = { token, organizationName: "Analytical Engines", name: "Ada Lovelace", ...OWNER };
  const first = await anonymous.setUp({ body: setUp });
  // What was answered too late may have been done.
  const session = first.ok ? first.value : await surely(() => anonymous.signIn({ body: OWNER }));
  const api = as(origin, session.token ?? "");
  const { secret: totpSecret } = valueOf(await api.enrollTotp());
  const code = (at: number) => generate({ secret: totpSecret, epoch: Date.now() / 1_000 + at });
  valueOf(await api.confirmTotp({ body: { code: await code(-STEP_SECONDS) } }));
  valueOf(await api.stepUp({ body: { method: "totp", code: await code(0) } }));

  const [general] = valueOf(await api.listTeams()).teams;
  const project = valueOf(
    await api.createProject({
      body: {
        name: "Growth",
        description: "Campaigns, events and the people we meet there.",
        color: "#0f766e",
      },
    }),
  ).project;
  const [ads, events] = await Promise.all(
    ["Advertising", "Events"].map(
      async (name) => valueOf(await api.createTeam({ body: { name, projectId: project.id } })).team.id,
    ),
  );
  const teams = { general: general?.id ?? "", ads: ads ?? "", events: events ?? "" };
  const agents = new Map<AgentName, { readonly id: string; readonly api: Client }>();
  for (const { team, ...agent } of AGENTS) {
    const made = valueOf(await api.createAgent({ body: { ...agent, teamId: teams[team] } }));
    agents.set(agent.name, { id: made.agent.id, api: as(origin, made.apiKey ?? "") });
  }
  await govern(api, project.id, teams);
  let [approvalId, transactionId] = ["", ""];
  for (const [name, amountCents, merchant, purpose] of PAYMENTS) {
    const agent = agents.get(name);
    if (agent === undefined) throw new Error(`${name} was made`);
    const body = { rail: "card", amountCents, merchant, purpose, idempotencyKey: randomUUID() } as const;
    const paid = valueOf(await agent.api.createPayment({ body }));
    approvalId = paid.approval?.id ?? approvalId;
    if (name === "Campaign buyer" && transactionId === "") transactionId = paid.transaction.id;
    if (merchant === "Sticker Factory" && paid.approval !== null) {
      const feedback = "Too expensive: look for a cheaper offer.";
      valueOf(await api.denyApproval({ id: paid.approval.id, body: { feedback } }));
    }
  }
  valueOf(await api.createInvite({ body: { email: "mary@example.com", role: "member" } }));
  valueOf(
    await api.mintOrganizationKey({
      body: {
        name: "Provisioning backend",
        scopes: ["agents:read", "agents:write"],
        binding: { type: "project", id: project.id },
        dailyCreateLimit: 50,
      },
    }),
  );
  const agentId = agents.get("Campaign buyer")?.id ?? "";
  return { totpSecret, agentId, projectId: project.id, teamId: teams.ads, approvalId, transactionId };
}

const TRIES = 20;

/** Calls whose answer says to retry are retried: the service has only just started. */
async function surely<T>(call: () => Promise<Answer<T>>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    const answer = await call();
    if (answer.ok || answer.refused.code !== "SERVICE_UNAVAILABLE" || tries === TRIES) return valueOf(answer);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
}

/** Caps and rules from above. */
async function govern(
  api: Client,
  projectId: string,
  teams: { readonly ads: string; readonly events: string },
): Promise<void> {
  const budget = await surely(() => api.getProjectBudget({ id: projectId }));
  const caps = budget.teams.map(({ teamId }) => ({
    teamId,
    capCents: teamId === teams.ads ? 300_000 : 150_000,
  }));
  valueOf(
    await api.setProjectBudget({
      id: projectId,
      body: { capCents: 400_000, teams: caps, version: budget.version },
    }),
  );
  const { version } = valueOf(await api.getTeamApprovalRules({ id: teams.ads }));
  valueOf(
    await api.setTeamApprovalRules({
      id: teams.ads,
      body: {
        version,
        rules: [
          { type: "new_recipient", enabled: true, params: {} },
          { type: "duplicate", enabled: true, params: { windowSeconds: 3_600 } },
          {
            type: "time_window",
            enabled: false,
            params: {
              timezone: "Europe/Amsterdam",
              days: ["mon", "tue", "wed", "thu", "fri"],
              from: "08:00",
              to: "18:00",
              outside: true,
            },
          },
        ],
      },
    }),
  );
}
