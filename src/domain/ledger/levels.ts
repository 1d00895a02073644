import { changedCalendar, isNewerZone, UTC_CALENDAR } from "./calendar.ts";
import type { CommandOf, LedgerReply, RecordedCap } from "./commands.ts";
import type { Draft } from "./draft.ts";
import { withSpendLimits } from "./policy.ts";
import type { Ledger } from "./state.ts";
import { keptIncreases } from "./increases.ts";
import { amountsOf, type SpendLimit } from "./windows.ts";

/** Budgets of the project and its teams. Each is replaced as a whole, in one decision. */

export function replaceProject(draft: Draft, command: CommandOf<"replace_project">): LedgerReply {
  const { capCents, spendLimits, teams, version } = command;
  const { cap } = draft.level(null);
  if (version !== cap.version) return { kind: "version_conflict", version: cap.version };
  const caps = [setCap(draft, null, capCents, spendLimits ?? cap.spendLimits)];
  for (const team of teams) {
    const { cap: before } = draft.level(team.teamId);
    const isChanged = before.capCents !== team.capCents;
    if (isChanged) caps.push(setCap(draft, team.teamId, team.capCents, before.spendLimits));
  }
  return { kind: "replaced", version: version + 1, caps };
}

/** Replaces the team's cap and the budgets of its agents. Skips agents that were archived meanwhile. */
export function replaceTeam(draft: Draft, command: CommandOf<"replace_team">): LedgerReply {
  const { agents, capCents, spendLimits, teamId, version } = command;
  const { cap } = draft.level(teamId);
  if (version !== cap.version) return { kind: "version_conflict", version: cap.version };
  const caps = [setCap(draft, teamId, capCents, spendLimits ?? cap.spendLimits)];
  for (const { agentId, budgetCents } of agents) setBudget(draft, teamId, agentId, budgetCents);
  return { kind: "replaced", version: version + 1, caps };
}

function setCap(
  draft: Draft,
  teamId: string | null,
  capCents: number | null,
  spendLimits: readonly SpendLimit[] | undefined,
): RecordedCap {
  const { cap: before } = draft.level(teamId);
  const after = { capCents, version: before.version + 1, ...withSpendLimits(spendLimits) };
  const cap = { ...after, ...keptIncreases(before, amountsOf(before), amountsOf(after)) };
  draft.setLevel(teamId, { cap, capChangedAt: draft.now });
  return { teamId, cap };
}

/** Replaces the calendar. The project's record shows it beside the cap and is written with it. */
export function replaceCalendar(draft: Draft, command: CommandOf<"replace_calendar">): LedgerReply {
  const { kind: _kind, requestId: _requestId, version, ...settings } = command;
  const { bounds, ledger, now } = draft;
  const { calendar: before } = ledger;
  if (version !== before.version) return { kind: "version_conflict", version: before.version };
  const calendar = changedCalendar(before, { ...settings, version: version + 1 }, bounds.at);
  draft.setCalendar(calendar);
  const { cap } = draft.level(null);
  draft.setLevel(null, { recordedCapVersion: cap.version - 1, capChangedAt: now });
  return { kind: "calendar", before, calendar, caps: [{ teamId: null, cap, calendar }] };
}

/** Returns the calendar as the project's record shows it. */
export const recordedCalendar = ({ calendar }: Ledger): Pick<RecordedCap, "calendar"> =>
  calendar.version === UTC_CALENDAR.version ? {} : { calendar };

export function followZone(draft: Draft, command: CommandOf<"follow_zone">): LedgerReply {
  const { kind: _kind, requestId: _requestId, ...zone } = command;
  const { bounds, ledger } = draft;
  if (isNewerZone(ledger.calendar, zone))
    draft.setCalendar(changedCalendar(ledger.calendar, zone, bounds.at));
  return { kind: "confirmed" };
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

/** Raises the rules version of an agent's account, as `followRules` does for a level. */
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
