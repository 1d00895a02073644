import type { BudgetCommand } from "../../domain/budget/commands.ts";
import type { Ask, BudgetReport } from "../../domain/budget/report.ts";
import type { PreviewInput } from "../budget.ts";
import {
  isArrayOf,
  isCount,
  isFlag,
  isId,
  isInteger,
  isOneOf,
  isRecord,
  isVariant,
  orNull,
  type Variants,
} from "./guards.ts";
import { isCents } from "./payment.ts";

/** What a project's budget is told, as it may come through Temporal. */

/** Payments of one agent that may ask: as many as may be open, and some. */
const ASKS_MAX = 1_000;
/** A project holds 10,000 live agents, and archived ones. */
const CHILDREN_MAX = 100_000;

const isAskKind = isOneOf(["reserve", "recheck"]);

export const isReport = isRecord<BudgetReport>({
  agentId: isId,
  teamId: isId,
  revision: isCount,
  spentCents: isCount,
  reservedCents: isCount,
  asks: isArrayOf(isRecord<Ask>({ transactionId: isId, kind: isAskKind, amountCents: isCents }), ASKS_MAX),
});

const isAgent = isRecord<{ readonly agentId: string; readonly teamId: string }>({
  agentId: isId,
  teamId: isId,
});
const isTeamCap = isRecord<{ readonly teamId: string; readonly capCents: number | null }>({
  teamId: isId,
  capCents: orNull(isCents),
});
const isAgentBudget = isRecord<{ readonly agentId: string; readonly budgetCents: number }>({
  agentId: isId,
  budgetCents: isCents,
});

const commands: Variants<BudgetCommand, "kind"> = {
  report: { report: isReport },
  replace_project: {
    version: isInteger,
    capCents: orNull(isCents),
    teams: isArrayOf(isTeamCap, CHILDREN_MAX),
    complete: isFlag,
  },
  replace_team: {
    teamId: isId,
    version: isInteger,
    capCents: orNull(isCents),
    budgets: isArrayOf(isAgentBudget, CHILDREN_MAX),
    complete: isFlag,
  },
  enrol: { epoch: isCount, agents: isArrayOf(isAgent, CHILDREN_MAX), last: isFlag },
  delivered: { agentId: isId, epoch: isCount, asks: isFlag, report: orNull(isReport) },
};

export const BUDGET_COMMAND_KINDS: ReadonlySet<string> = new Set(Object.keys(commands));

export const isBudgetCommand = isVariant<BudgetCommand, "kind">("kind", commands);

export const isPreviewInput = isRecord<PreviewInput>({ report: isReport, amountCents: orNull(isCents) });
