import type { CommandOf, LedgerReply } from "./commands.ts";
import type { Draft } from "./draft.ts";
import { type Cap, type Level, levelOf } from "./state.ts";

/** Budgets of the project and its teams, each replaced whole, in one decision. */

export function replaceProject(draft: Draft, command: CommandOf<"replace_project">): LedgerReply {
  const { capCents, teams, version } = command;
  const { project } = draft.ledger;
  if (version !== project.cap.version) return { kind: "version_conflict", version: project.cap.version };
  draft.setProject({ cap: { capCents, version: version + 1 } });
  for (const team of teams) {
    const { cap } = levelOf(draft.ledger, team.teamId);
    if (cap.capCents !== team.capCents) draft.setTeam(team.teamId, { cap: replaced(cap, team.capCents) });
  }
  return { kind: "replaced", version: version + 1 };
}

/** The team's cap, and the budgets of its agents. An agent that was archived meanwhile is passed over. */
export function replaceTeam(draft: Draft, command: CommandOf<"replace_team">): LedgerReply {
  const { agents, capCents, teamId, version } = command;
  const { cap } = levelOf(draft.ledger, teamId);
  if (version !== cap.version) return { kind: "version_conflict", version: cap.version };
  draft.setTeam(teamId, { cap: replaced(cap, capCents) });
  for (const { agentId, budgetCents } of agents) setBudget(draft, teamId, agentId, budgetCents);
  return { kind: "replaced", version: version + 1 };
}

function setBudget(draft: Draft, teamId: string, agentId: string, budgetCents: number): void {
  const known = draft.ledger.accounts.get(agentId);
  const isMeant = known !== undefined && known.teamId === teamId && known.standing !== "closed";
  if (!isMeant || known.policy.budgetCents === budgetCents) return;
  const account = draft.account(agentId);
  if (account === undefined) return;
  account.policy = { ...account.policy, budgetCents };
  account.policyVersion += 1;
  draft.touch(account);
}

const replaced = ({ version }: Cap, capCents: number | null): Cap => ({ capCents, version: version + 1 });

export function followRules(draft: Draft, { teamId, version }: CommandOf<"follow_rules">): LedgerReply {
  const level: Level = teamId === null ? draft.ledger.project : levelOf(draft.ledger, teamId);
  const rulesVersion = Math.max(level.rulesVersion, version);
  if (teamId === null) draft.setProject({ rulesVersion });
  else draft.setTeam(teamId, { rulesVersion });
  return { kind: "confirmed" };
}
