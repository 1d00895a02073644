import type { LimitDenial } from "../agent/policy.ts";
import { checkCaps, remainingCents } from "./caps.ts";
import type { Addressed, BudgetCommand, BudgetReply, Unfinished } from "./commands.ts";
import type { Ask, BudgetReport, NamedAnswer } from "./report.ts";
import {
  type BudgetState,
  cappedTeams,
  type Delivery,
  GONE_FORGOTTEN_EVERY,
  GONE_KEPT_MS,
  GONE_MAX,
  isCapped,
  type Member,
  teamOf,
  usedOf,
} from "./state.ts";

/** What a project's budget does; all that is over one agent only is its own actor's. Changes the state in place. */

type Command<K extends BudgetCommand["kind"]> = Extract<BudgetCommand, { kind: K }>;

/** Decides one command; `now` is the actor's time in epoch milliseconds. Refusals are replies, and change nothing. */
export function handleBudget(state: BudgetState, command: BudgetCommand, now: number): BudgetReply {
  switch (command.kind) {
    case "report":
      return hear(state, command.report, now);
    case "replace_project":
      return replaceProject(state, command, now);
    case "replace_team":
      return replaceTeam(state, command, now);
    case "enrol":
      return enrol(state, command, now);
    case "delivered":
      return confirmDelivered(state, command, now);
  }
}

/**
 * The newest report of an agent stands; what it asks is answered once, and the same to whoever asks. An agent that no cap
 * is over is let pay without asking, and let go when it has said that it has nothing more to hear.
 */
function hear(state: BudgetState, report: BudgetReport, now: number): BudgetReply {
  const { agentId, asks, revision, teamId } = report;
  const gone = state.gone[agentId];
  if (gone !== undefined && revision <= gone[0]) return { kind: "reported", answers: [], exemptEpoch: null };
  const member = state.members[agentId] ?? join(state, agentId, teamId);
  if (revision > member.revision) take(state, member, report, now);
  const isAsked = (answer: NamedAnswer): boolean => asks.some((ask) => isFor(answer, ask));
  const answers = (member.answers ?? []).filter(isAsked);
  if (isCapped(state, teamId)) return { kind: "reported", answers, exemptEpoch: null };
  if (member.answers === undefined) letGo(state, agentId, member, now);
  else member.offered = true;
  return { kind: "reported", answers, exemptEpoch: state.epoch };
}

/** Whether it was ever let pay without asking is not known any more: until it has been told to ask, it may do so. */
function join(state: BudgetState, agentId: string, teamId: string): Member {
  const member: Member = { teamId, revision: -1, spentCents: 0, reservedCents: 0, offered: true };
  state.members[agentId] = member;
  delete state.gone[agentId];
  return member;
}

function letGo(state: BudgetState, agentId: string, member: Member, now: number): void {
  move(state, member, -member.spentCents, -member.reservedCents);
  delete state.members[agentId];
  state.gone[agentId] = [member.revision, now];
  state.letGo = (state.letGo ?? 0) + 1;
  if (state.letGo >= GONE_FORGOTTEN_EVERY) forgetGone(state, now);
}

/** Forgets the oldest of those that were let go. Costs a look at all of them, so it is done once for many. */
function forgetGone(state: BudgetState, now: number): void {
  state.letGo = 0;
  const all = Object.entries(state.gone);
  const tooMany = all.length - GONE_MAX;
  for (const [index, [id, [, at]]] of all.entries()) {
    if (index >= tooMany && at > now - GONE_KEPT_MS) break;
    delete state.gone[id];
  }
}

/** Takes over a newer report. What was answered, and the agent does not know yet, stays as it was answered. */
function take(state: BudgetState, member: Member, report: BudgetReport, now: number): void {
  const before = member.answers ?? [];
  member.revision = report.revision;
  move(state, member, report.spentCents - member.spentCents, report.reservedCents - member.reservedCents);
  const kept = report.asks.map((ask) => ({ ask, answer: before.find((answer) => isFor(answer, ask)) }));
  for (const { ask, answer } of kept) if (answer?.granted === true) reserve(state, member, ask);
  const answers = kept.map(({ ask, answer }) => answer ?? decide(state, member, ask, now));
  if (answers.length > 0) member.answers = answers;
  else delete member.answers;
}

const isFor = (answer: NamedAnswer, ask: Ask): boolean =>
  answer.transactionId === ask.transactionId && answer.kind === ask.kind;

/** What is checked again has its amount reserved already, which is not held against it. */
function decide(state: BudgetState, member: Member, ask: Ask, now: number): NamedAnswer {
  const { amountCents, kind, transactionId } = ask;
  const denial = checkCaps(state, member.teamId, amountCents, kind === "recheck" ? amountCents : 0);
  if (denial !== null) return { transactionId, kind, granted: false, denial, at: now };
  reserve(state, member, ask);
  return { transactionId, kind, granted: true };
}

function reserve(state: BudgetState, member: Member, { amountCents, kind }: Ask): void {
  if (kind === "reserve") move(state, member, 0, amountCents);
}

/** Changes a member's money, and with it every level's. */
function move(state: BudgetState, member: Member, spentCents: number, reservedCents: number): void {
  const team = (state.used.teams[member.teamId] ??= { spentCents: 0, reservedCents: 0 });
  for (const totals of [member, team, state.used.project]) {
    totals.spentCents += spentCents;
    totals.reservedCents += reservedCents;
  }
}

function replaceProject(state: BudgetState, command: Command<"replace_project">, now: number): BudgetReply {
  const { version } = state.project;
  if (command.version !== version) return { kind: "stale", version };
  if (!command.complete) return { kind: "incomplete" };
  state.project = { capCents: command.capCents, version: version + 1 };
  for (const { capCents, teamId } of command.teams) {
    const team = teamOf(state, teamId);
    if (team.capCents !== capCents) state.teams[teamId] = { capCents, version: team.version + 1 };
  }
  return replaced(state, now);
}

function replaceTeam(state: BudgetState, command: Command<"replace_team">, now: number): BudgetReply {
  const { budgets, capCents, teamId } = command;
  const { version } = teamOf(state, teamId);
  if (command.version !== version) return { kind: "stale", version };
  if (!command.complete) return { kind: "incomplete" };
  state.teams[teamId] = { capCents, version: version + 1 };
  const epoch = state.epoch + 1;
  for (const { agentId, budgetCents } of budgets) {
    const asks = state.deliveries[agentId]?.asks ?? false;
    state.deliveries[agentId] = { epoch, asks, budgetCents };
  }
  return replaced(state, now);
}

/** Decided: from here on it is carried through, whoever dies. */
function replaced(state: BudgetState, now: number): BudgetReply {
  state.epoch += 1;
  const teams = cappedTeams(state);
  state.enrolling = teams === "all" || teams.length > 0;
  state.toldSince = now;
  return { kind: "replaced", ...unfinished(state) };
}

/** An agent under a cap that may have been let pay without asking is told to ask. */
function enrol(state: BudgetState, command: Command<"enrol">, now: number): BudgetReply {
  const { agents, epoch, last } = command;
  for (const { agentId, teamId } of agents) {
    const member = state.members[agentId];
    const mayNotAsk = member === undefined || member.offered === true;
    if (!mayNotAsk || !isCapped(state, teamId)) continue;
    state.deliveries[agentId] = { ...budgetOf(state.deliveries[agentId]), epoch: state.epoch, asks: true };
  }
  if (last && epoch === state.epoch) state.enrolling = false;
  state.toldSince = now;
  return { kind: "enrolled", deliveries: outstanding(state) };
}

/** The budget that is on its way to an agent, and since which replacement. */
function budgetOf(delivery: Delivery | undefined): Pick<Delivery, "budgetCents" | "budgetEpoch"> {
  if (delivery === undefined || delivery.budgetCents === null) return { budgetCents: null };
  return { budgetCents: delivery.budgetCents, budgetEpoch: delivery.budgetEpoch ?? delivery.epoch };
}

function confirmDelivered(state: BudgetState, command: Command<"delivered">, now: number): BudgetReply {
  const { agentId, asks, epoch, report } = command;
  // Heard also where a later replacement has taken the delivery's place: who replaced before is answered now.
  if (report !== null) hear(state, report, now);
  const delivery = state.deliveries[agentId];
  if (delivery?.epoch !== epoch || delivery.asks !== asks) return { kind: "confirmed" };
  delete state.deliveries[agentId];
  const member = state.members[agentId];
  if (member === undefined || !isCapped(state, member.teamId)) return { kind: "confirmed" };
  // What it was offered before, it heeds no more. Under no cap an old demand excludes nothing: the offer is as new as it.
  if (delivery.asks && epoch === state.epoch) delete member.offered;
  return { kind: "confirmed" };
}

export const outstanding = (state: BudgetState): Addressed[] =>
  Object.entries(state.deliveries).map(([agentId, delivery]: [string, Delivery]) => ({
    agentId,
    ...delivery,
  }));

/** All that is to be done before what was decided is in force. */
export const unfinished = (state: BudgetState): Unfinished => ({
  epoch: state.epoch,
  enrols: state.enrolling ? cappedTeams(state) : null,
  deliveries: outstanding(state),
});

/** What an agent may still use, and what would become of a payment of its; without any effect. */
export interface CapView {
  readonly teamRemainingCents: number | null;
  readonly projectRemainingCents: number | null;
  /** Null where the payment fits, or none was asked about. */
  readonly denial: LimitDenial | null;
}

/** What the caps leave to an agent that reports this, and whether they would take a payment, now. */
export function previewCaps(state: BudgetState, report: BudgetReport, amountCents: number | null): CapView {
  const { teamId } = report;
  const known = state.members[report.agentId];
  const isNewer = isCapped(state, teamId) && report.revision > (known?.revision ?? -1);
  const preview = isNewer ? copyHaving(state, report) : state;
  const used = usedOf(preview, teamId);
  return {
    teamRemainingCents: remainingCents(teamOf(preview, teamId), used),
    projectRemainingCents: remainingCents(preview.project, preview.used.project),
    denial: amountCents === null ? null : checkCaps(preview, teamId, amountCents, 0),
  };
}

/** The state as it would be after a report, with no one's copy but its own. */
function copyHaving(state: BudgetState, report: BudgetReport): BudgetState {
  const known = state.members[report.agentId];
  const used = {
    project: { ...state.used.project },
    teams: { ...state.used.teams, [report.teamId]: { ...usedOf(state, report.teamId) } },
  };
  const members = known === undefined ? {} : { [report.agentId]: { ...known } };
  const copy: BudgetState = { ...state, used, members, gone: {} };
  hear(copy, report, 0);
  return copy;
}
