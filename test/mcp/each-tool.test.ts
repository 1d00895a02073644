import { randomUUID } from "node:crypto";
import type { Client } from "@modelcontextprotocol/client";
import { expect } from "chai";
import { operations } from "../../src/contract/registry.ts";
import {
  AGENT_TOOLS,
  type AgentTool,
  MANAGEMENT_TOOLS,
  type ManagementTool,
} from "../../src/contract/tool-names.ts";
import { ORGANIZATION_SCOPES } from "../../src/contract/types.ts";
import type { ErrorCode } from "../../src/domain/errors.ts";
import { mintKey } from "../authorization/scene.ts";
import { fund } from "../support/chain.ts";
import { seed } from "../support/seed.ts";
import { someOrAll } from "../support/soak.ts";
import { elevate, newWorld, type TestAgent, type World, x402Request } from "../support/world.ts";
import { raiseOrder } from "../support/raises.ts";
import { callCurrent, connectCurrent } from "./current-client.ts";
import { McpCaller } from "./support.ts";

const {
  createAgent,
  createProject,
  getProjectApprovalRules,
  getProjectBudget,
  getTeamApprovalRules,
  getTeamBudget,
} = operations;

type Arguments = Readonly<Record<string, unknown>>;

/** An organization with something of everything, and a caller of each toolset. */
interface Scene {
  readonly world: World;
  readonly agent: TestAgent;
  readonly spender: McpCaller;
  readonly manager: McpCaller;
}

/** A tool called rightly, and as it is most often called wrongly: with which code, and what must be read of it. */
interface Row {
  readonly right: (scene: Scene) => Promise<Arguments> | Arguments;
  readonly wrong: (scene: Scene) => Promise<Arguments> | Arguments;
  readonly code: ErrorCode;
  readonly says: RegExp;
}

const NOBODYS = "01a2068b-40a6-73a5-aa10-002b054e3cb7";
const RECIPIENT = "0x52908400098527886e0f7030069857d2e4169ee7";
const PURPOSE = "to try each tool";

const paying = (fields: Arguments) => ({
  amountCents: 100,
  purpose: PURPOSE,
  idempotencyKey: randomUUID(),
  ...fields,
});
const named = () => ({ name: "Made by a tool", idempotencyKey: randomUUID() });
const paid = async ({ agent }: Scene) => ({ transactionId: (await agent.pay()).transaction.id });
const agentId = ({ agent }: Scene) => ({ agentId: agent.id });
const projectId = ({ world }: Scene) => ({ projectId: world.organization.projectId });
const teamId = ({ world }: Pick<Scene, "world">) => ({ teamId: world.organization.teamId });

const AGENT_ROWS: Readonly<Record<AgentTool, Row>> = {
  get_budget: {
    right: () => ({}),
    wrong: agentId,
    code: "VALIDATION_FAILED",
    says: /agentId.*not an argument.*None is taken/,
  },
  check_payment: {
    right: () => ({ rail: "card", amountCents: 100, merchant: "shop" }),
    wrong: () => ({ rail: "card", amountCents: 100, recipient: RECIPIENT }),
    code: "VALIDATION_FAILED",
    says: /merchant.*is required for a card payment/,
  },
  create_card_payment: {
    right: () => paying({ merchant: "shop" }),
    wrong: () => paying({ merchant: "shop", amountCents: 12.5 }),
    code: "VALIDATION_FAILED",
    says: /amountCents.*1250 is 12\.50 USD/,
  },
  create_wallet_payment: {
    async right({ agent, world }) {
      await fund(world, agent, 1_000);
      return paying({ recipient: RECIPIENT });
    },
    wrong: () => paying({ recipient: "Acme Corp" }),
    code: "VALIDATION_FAILED",
    says: /recipient.*0x and 40 hex digits/,
  },
  pay_x402_request: {
    right: ({ world }) => ({ ...x402Request(), url: `${world.service.baseUrl}/healthz` }),
    wrong: () => x402Request(),
    code: "VALIDATION_FAILED",
    says: /url.*host of the public internet|could not be resolved/,
  },
  get_payment: {
    right: paid,
    wrong: () => ({ transactionId: `txn_${"0".repeat(26)}` }),
    code: "NOT_FOUND",
    says: /no payment with this id.*list_payments/,
  },
  list_payments: {
    right: () => ({ limit: 5, status: "approved" }),
    wrong: () => ({ cursor: "page 2" }),
    code: "BAD_CURSOR",
    says: /without one.*nextCursor/,
  },
  cancel_payment: {
    right: async ({ agent }) => ({ transactionId: (await agent.hold({ amountCents: 600 })).transactionId }),
    wrong: paid,
    code: "PAYMENT_NOT_CANCELLABLE",
    says: /not on hold.*get_payment/,
  },
  get_denial_feedback: {
    right: async ({ agent }) => ({
      transactionId: (await agent.pay({ amountCents: 99_999 })).transaction.id,
    }),
    wrong: paid,
    code: "NOT_FOUND",
    says: /denied, failed, expired.*get_payment/,
  },
  request_raise: {
    right: () => raiseOrder(),
    wrong: () => raiseOrder({ amountCents: 12.5 }),
    code: "VALIDATION_FAILED",
    says: /amountCents.*1250 is 12\.50 USD/,
  },
  get_wallet: {
    right: () => ({}),
    wrong: () => ({ currency: "EUR" }),
    code: "VALIDATION_FAILED",
    says: /currency.*not an argument/,
  },
};

/** An agent that the manager has created; archived by a person afterwards, if that is asked for. */
async function ownAgent({ manager, world }: Scene, archived: boolean): Promise<Arguments> {
  const args = { ...named(), ...teamId({ world }), budgetCents: 1_000 };
  const { agent } = await manager.ok(createAgent.output, "create_agent", args);
  if (!archived) return { agentId: agent.id };
  await elevate(world);
  await world.api.ok("archiveAgent", 200, { token: world.token, id: agent.id });
  return { agentId: agent.id };
}

const MANAGEMENT_ROWS: Readonly<Record<ManagementTool, Row>> = {
  list_agents: {
    right: (scene) => ({ ...teamId(scene), state: "active" }),
    wrong: () => ({ state: "running" }),
    code: "VALIDATION_FAILED",
    says: /state.*active.*paused.*archived/,
  },
  get_agent: {
    right: agentId,
    wrong: () => ({ agentId: NOBODYS }),
    code: "NOT_FOUND",
    says: /no agent.*list_agents/,
  },
  create_agent: {
    right: (scene) => ({ ...named(), ...teamId(scene), budgetCents: 1_000 }),
    wrong: (scene) => ({ name: "Keyless", ...teamId(scene), budgetCents: 1_000 }),
    code: "IDEMPOTENCY_KEY_REQUIRED",
    says: /UUID.*same one/,
  },
  get_agent_budget_policy: {
    right: agentId,
    wrong: () => ({ agentId: "Shopper" }),
    code: "NOT_FOUND",
    says: /agentId must be an id.*list_agents/,
  },
  update_agent_budget_policy: {
    right: async (scene) => ({ ...(await ownAgent(scene, false)), version: 1, dailySpendLimitCents: 500 }),
    wrong: (scene) => ({ ...agentId(scene), version: 99, dailySpendLimitCents: 500 }),
    code: "VERSION_CONFLICT",
    says: /nothing was changed.*get_agent_budget_policy/,
  },
  pause_agent: {
    right: (scene) => ownAgent(scene, false),
    wrong: ({ agent }) => ({ id: agent.id }),
    code: "VALIDATION_FAILED",
    says: /agentId.*must be an id.*list_agents/,
  },
  resume_agent: {
    right: (scene) => ownAgent(scene, false),
    wrong: (scene) => ownAgent(scene, true),
    code: "AGENT_ARCHIVED",
    says: /for good.*create_agent/,
  },
  archive_agent: {
    right: (scene) => ownAgent(scene, true),
    wrong: (scene) => ownAgent(scene, false),
    code: "KEY_STILL_DELIVERABLE",
    says: /create_agent.*same arguments and idempotencyKey/,
  },
  list_projects: {
    right: () => ({ limit: 1 }),
    wrong: () => ({ limit: 1_000 }),
    code: "VALIDATION_FAILED",
    says: /limit.*200/,
  },
  create_project: {
    right: () => named(),
    async wrong({ manager }) {
      const args = named();
      await manager.ok(createProject.output, "create_project", args);
      return { ...args, name: "Another" };
    },
    code: "IDEMPOTENCY_KEY_REUSED",
    says: /new idempotencyKey/,
  },
  get_project_budget: {
    right: projectId,
    wrong: ({ world }) => ({ projectId: world.organization.teamId }),
    code: "NOT_FOUND",
    says: /no project.*list_projects/,
  },
  set_project_budget: {
    async right(scene) {
      const { usage: _usage, ...budget } = await scene.manager.ok(
        getProjectBudget.output,
        "get_project_budget",
        projectId(scene),
      );
      return { ...projectId(scene), ...budget, capCents: 100_000 };
    },
    async wrong(scene) {
      const { version } = await scene.manager.ok(
        getProjectBudget.output,
        "get_project_budget",
        projectId(scene),
      );
      return { ...projectId(scene), capCents: 100_000, teams: [], version };
    },
    code: "BUDGET_CHILDREN_INCOMPLETE",
    says: /the teams in `missing` are not named.*get_project_budget/,
  },
  get_project_approval_rules: {
    right: projectId,
    wrong: () => ({}),
    code: "VALIDATION_FAILED",
    says: /projectId.*must be an id.*list_projects/,
  },
  set_project_approval_rules: {
    async right(scene) {
      const args = projectId(scene);
      const { version } = await scene.manager.ok(
        getProjectApprovalRules.output,
        "get_project_approval_rules",
        args,
      );
      return { ...args, rules: [{ type: "amount_above", params: { amountCents: 90_000 } }], version };
    },
    wrong: (scene) => ({ ...projectId(scene), rules: [], version: 99 }),
    code: "STALE_APPROVAL_RULES",
    says: /nothing was changed.*get_project_approval_rules/,
  },
  list_teams: {
    right: projectId,
    wrong: () => ({ cursor: "2" }),
    code: "BAD_CURSOR",
    says: /without one/,
  },
  create_team: {
    right: () => named(),
    wrong: (scene) => ({ ...named(), ...teamId(scene) }),
    code: "VALIDATION_FAILED",
    says: /teamId.*not an argument.*name, description, projectId, idempotencyKey/,
  },
  get_team_budget: {
    right: teamId,
    wrong: () => ({ teamId: NOBODYS }),
    code: "NOT_FOUND",
    says: /list_teams/,
  },
  set_team_budget: {
    async right(scene) {
      const { usage: _usage, ...budget } = await scene.manager.ok(
        getTeamBudget.output,
        "get_team_budget",
        teamId(scene),
      );
      return { ...teamId(scene), ...budget, capCents: 90_000 };
    },
    async wrong(scene) {
      const { agents, version } = await scene.manager.ok(
        getTeamBudget.output,
        "get_team_budget",
        teamId(scene),
      );
      const more = { agentId: NOBODYS, budgetCents: 1 };
      return { ...teamId(scene), capCents: null, agents: [...agents, more], version };
    },
    code: "BUDGET_CHILD_UNKNOWN",
    says: new RegExp(`get_team_budget.*${NOBODYS}`),
  },
  get_team_approval_rules: {
    right: teamId,
    wrong: (scene) => ({ teamId: scene.agent.id }),
    code: "NOT_FOUND",
    says: /no team.*list_teams/,
  },
  set_team_approval_rules: {
    async right(scene) {
      const args = teamId(scene);
      const { version } = await scene.manager.ok(
        getTeamApprovalRules.output,
        "get_team_approval_rules",
        args,
      );
      return { ...args, rules: [{ type: "duplicate", params: { windowSeconds: 1 } }], version };
    },
    async wrong(scene) {
      const args = teamId(scene);
      const { version } = await scene.manager.ok(
        getTeamApprovalRules.output,
        "get_team_approval_rules",
        args,
      );
      return { ...args, rules: [{ type: "amount_above", params: { amount: 500 } }], version };
    },
    code: "VALIDATION_FAILED",
    says: /rules\.0\.params\.amount.*not an argument.*amountCents/,
  },
  list_transactions: {
    right: (scene) => ({ ...agentId(scene), range: "7d", limit: 2 }),
    wrong: () => ({ range: "24h" }),
    code: "VALIDATION_FAILED",
    says: /range.*7d.*30d.*90d/,
  },
};

/** In an organization of its own, which may make so many changes in a minute, as a key may. */
async function openScene(): Promise<{
  readonly keys: Readonly<Record<"spender" | "manager", string>>;
  readonly scene: Scene;
}> {
  const world = await newWorld();
  const agent = await world.agent({ budgetCents: 50_000, autoApprovalThresholdCents: 500 });
  const keys = { spender: agent.key, manager: await mintKey(world, ORGANIZATION_SCOPES) };
  const { baseUrl } = world.service;
  const spender = await McpCaller.connect(baseUrl, keys.spender);
  return {
    keys,
    scene: { world, agent, spender, manager: await McpCaller.connect(baseUrl, keys.manager) },
  };
}

describe(`each tool (TEST_SEED=${String(seed)})`, () => {
  let scene: Scene;
  let erring: Scene;
  let current: Readonly<Record<"spender" | "manager", Client>>;
  /** What those two are given to call, made by the same keys. */
  let preparing: Scene;

  before(async () => {
    ({ scene } = await openScene());
    const { baseUrl } = scene.world.service;
    // One key for what is right, and one that makes the mistakes.
    const key = await mintKey(scene.world, ORGANIZATION_SCOPES);
    erring = { ...scene, manager: await McpCaller.connect(baseUrl, key) };
    const opened = await openScene();
    preparing = opened.scene;
    current = {
      spender: await connectCurrent(baseUrl, opened.keys.spender),
      manager: await connectCurrent(baseUrl, opened.keys.manager),
    };
  });
  after(async () => {
    for (const { manager, spender } of [scene, erring, preparing, current]) {
      await Promise.all([manager.close(), spender.close()]);
    }
  });

  const rows = [
    ...AGENT_TOOLS.map((tool) => ({ tool, row: AGENT_ROWS[tool], caller: "spender" as const })),
    ...MANAGEMENT_TOOLS.map((tool) => ({ tool, row: MANAGEMENT_ROWS[tool], caller: "manager" as const })),
  ];
  for (const { caller, row, tool } of rows) {
    it(`${tool}: called rightly it answers as its schema says`, async () => {
      const { body, isError } = await scene[caller].call(tool, await row.right(scene));
      expect(isError, JSON.stringify(body)).to.equal(false);
    });

    it(`${tool}: its commonest mistake is answered with what to do next`, async () => {
      const { body, isError } = await erring[caller].call(tool, await row.wrong(erring));
      expect([isError, body["error"]], JSON.stringify(body)).to.deep.equal([true, row.code]);
      expect(JSON.stringify(body)).to.match(row.says);
    });
  }

  for (const { caller, row, tool } of someOrAll(rows, 8)) {
    it(`${tool}: it does so to the client of the current revision, too`, async () => {
      const { body, isError } = await callCurrent(current[caller], tool, await row.right(preparing));
      expect(isError, JSON.stringify(body)).to.equal(false);
    });
  }
});
