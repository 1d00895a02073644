import type { CommandOf, LedgerReply, RecordedCap } from "./commands.ts";
import type { Draft } from "./draft.ts";

/** Budgets of the project and its teams, each replaced whole, in one decision. */

export function replaceProject(draft: Draft, command: CommandOf<"replace_project">): LedgerReply {
  const { capCents, teams, version } = command;
  const { cap } = draft.level(null);
  if (version !== cap.version) return { kind: "version_conflict", version: cap.version };
  const caps = [setCap(draft, null, capCents)];
  for (const team of teams) {
    const isChanged = draft.level(team.teamId).cap.capCents !== team.capCents;
    if (isChanged) caps.push(setCap(draft, team.teamId, team.capCents));
  }
  return { kind: "replaced", version: version + 1, caps };
}

/** The team's cap, and the budgets of its agents. An agent that was archived meanwhile is passed over. */
export function replaceTeam(draft: Draft, command: CommandOf<"replace_team">): LedgerReply {
  const { agents, capCents, teamId, version } = command;
  const { cap } = draft.level(teamId);
  if (version !== cap.version) return { kind: "version_conflict", version: cap.version };
  const caps = [setCap(draft, teamId, capCents)];
  for (const { agentId, budgetCents } of agents) setBudget(draft, teamId, agentId, budgetCents);
  return { kind: "replaced", version: version + 1, caps };
}

function setCap(draft: Draft, teamId: string | null, capCents: number | null): RecordedCap {
  const { version } = draft.level(teamId).cap;
  const cap = { capCents, version: version + 1 };
  draft.setLevel(teamId, { cap, capChangedAt: draft.now });
  return { teamId, cap };
}

function setBudget(draft: Draft, teamId: string, agentId: string, budgetCents: number): void {
  const known = draft.ledger.accounts.get(agentId);
  const isOfTeam = known !== undefined && known.teamId === teamId && known.status !== "closed";
  if (!isOfTeam || known.policy.budgetCents === budgetCents) return;
  const account = draft.account(agentId);
  if (account === undefined) return;
  account.policy = { ...account.policy, budgetCents };
  account.policyVersion += 1;
  draft.touch(account);
}

/** The agent's account, as `followRules` does a level. */
export function followRestrictions(
  draft: Draft,
  { agentId, version }: CommandOf<"follow_restrictions">,
): LedgerReply {
  const account = draft.account(agentId);
  if (account === undefined) return { kind: "no_account" };
  account.rulesVersion = Math.max(account.rulesVersion, version);
  return { kind: "confirmed" };
}

export function followRules(draft: Draft, { teamId, version }: CommandOf<"follow_rules">): LedgerReply {
  const { rulesVersion } = draft.level(teamId);
  if (version > rulesVersion) draft.setLevel(teamId, { rulesVersion: version });
  return { kind: "confirmed" };
}
