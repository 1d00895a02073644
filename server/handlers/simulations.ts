import { zoneAround } from "../../src/actors/calendar-zone.ts";
import { settingsIn } from "../../src/containers/calendar-view.ts";
import { withId } from "../../src/containers/approval-rules.ts";
import { patchPolicy } from "../../src/domain/ledger/policy.ts";
import type { SpendLimit } from "../../src/domain/ledger/windows.ts";
import { ok } from "../../src/domain/result.ts";
import type { ManagementPrincipal } from "../../src/identity/principals.ts";
import type { SimulatedChange } from "../../src/simulations/documents.ts";
import { type SimulatedTarget, Simulations } from "../../src/simulations/simulations.ts";
import type { AgentDocument, ProjectDocument, TeamDocument } from "../../src/store/documents.ts";
import { definedFields } from "../../src/store/lists.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

type SimulationHandlers = Pick<Handlers, Extract<keyof Handlers, `simulate${string}`>>;

type Context = Parameters<SimulationHandlers["simulateTeamRestrictions"]>[1];

export function simulationHandlers(dependencies: HandlerDependencies): SimulationHandlers {
  const simulations = new Simulations(dependencies);

  const simulate = async (
    { body: { range } }: { readonly body: { readonly range: number } },
    { deadline, principal }: Pick<Context, "deadline" | "principal">,
    target: SimulatedTarget,
    change: SimulatedChange,
  ) => {
    const result = await simulations.run(principal.organizationId, target, change, range, deadline);
    if (!result.ok) return result;
    const { examples, ...rest } = result.value;
    const readable = mayReadPayments(principal) ? examples : [];
    const shown = readable.map((each) => ({ ...each, createdAt: new Date(each.createdAt).toISOString() }));
    return ok({ body: { ...rest, examples: shown } });
  };

  return {
    simulateAgentBudgetPolicy(input, context) {
      const { range: _range, walletTargetCents: _unused, ...fields } = input.body;
      const policyOf = (policy: AgentDocument["policy"]) => patchPolicy(policy, definedFields(fields));
      return simulate(input, context, agentIn(context), { policyOf });
    },
    simulateAgentRestrictions: (input, context) =>
      simulate(input, context, agentIn(context), { restrictions: input.body }),
    simulateTeamBudget(input, context) {
      const { agents, capCents } = input.body;
      const cap = { capCents, spendLimits: limitsIn(input.body) };
      return simulate(input, context, teamIn(context), {
        caps: new Map([[context.target._id, cap]]),
        budgets: new Map(agents.map(({ agentId, budgetCents }) => [agentId, budgetCents])),
      });
    },
    simulateTeamApprovalRules: (input, context) =>
      simulate(input, context, teamIn(context), { rules: input.body.rules.map(withId) }),
    simulateTeamRestrictions: (input, context) =>
      simulate(input, context, teamIn(context), { restrictions: input.body }),
    simulateProjectBudget(input, context) {
      const { capCents, teams } = input.body;
      const ofTeams = teams.map((team) => [team.teamId, { capCents: team.capCents }] as const);
      const cap = { capCents, spendLimits: limitsIn(input.body) };
      return simulate(input, context, projectIn(context), {
        caps: new Map([...ofTeams, [context.target._id, cap]]),
      });
    },
    simulateProjectApprovalRules: (input, context) =>
      simulate(input, context, projectIn(context), { rules: input.body.rules.map(withId) }),
    simulateProjectRestrictions: (input, context) =>
      simulate(input, context, projectIn(context), { restrictions: input.body }),
    simulateProjectCalendar: (input, context) =>
      simulate(input, context, projectIn(context), {
        calendar: { ...settingsIn(input.body), ...zoneAround(input.body.timezone, dependencies.clock()) },
      }),
  };
}

const mayReadPayments = (principal: ManagementPrincipal): boolean =>
  principal.type !== "organization_key" || principal.scopes.includes("agents:read");

const agentIn = ({ target: { _id: id, projectId, teamId } }: { readonly target: AgentDocument }) =>
  ({ level: "agent", id, projectId, teamId }) as const;
const teamIn = ({ target: { _id: id, projectId } }: { readonly target: TeamDocument }) =>
  ({ level: "team", id, projectId, teamId: id }) as const;
const projectIn = ({ target: { _id: id } }: { readonly target: ProjectDocument }) =>
  ({ level: "project", id, projectId: id, teamId: null }) as const;

const limitsIn = ({ spendLimits }: { readonly spendLimits?: readonly SpendLimit[] | undefined }) =>
  spendLimits?.map(({ limitCents, period }) => ({ period, limitCents }));
