import { must, mustBeSame, mustEqual } from "../../../lab/simulation/audit/violation.ts";
import type { RecordedCap } from "../../../src/domain/ledger/commands.ts";
import { contentOf } from "../support/account.ts";
import type { ActionOf } from "./actions.ts";
import type { AccountModel } from "./book.ts";
import type { LedgerWorld } from "./world.ts";

/** What becomes of the project and its teams: their caps, and their rules. */

export function projectCap(
  world: LedgerWorld,
  { capCents, isRecorded, stale, teamCapCents }: ActionOf<"project_cap">,
): void {
  const { caps } = world.model;
  const { version } = world.model.capOf("project");
  const teams = ["team-0", "team-1"].map((teamId) => ({ teamId, capCents: teamCapCents }));
  const asked = stale ? version - 1 : version;
  const requestId = world.requestId();
  const reply = world.judge({ kind: "replace_project", version: asked, capCents, teams, requestId });
  if (stale) return mustEqual(reply, { kind: "version_conflict", version }, "a stale budget");
  must(reply.kind === "replaced" && reply.version === version + 1, "a budget was not replaced");
  caps.set("project", { capCents, version: version + 1 });
  const changed: (string | null)[] = [null];
  for (const { teamId } of teams) {
    const before = world.model.capOf(teamId);
    if (before.capCents === teamCapCents) continue;
    caps.set(teamId, { capCents: teamCapCents, version: before.version + 1 });
    changed.push(teamId);
  }
  expectCapsReply(world, reply.caps, changed, isRecorded);
}

export function teamCap(
  world: LedgerWorld,
  { budgetCents, capCents, isRecorded, stale, team }: ActionOf<"team_cap">,
): void {
  const teamId = `team-${team}`;
  const before = world.model.capOf(teamId);
  const { version } = before;
  const members = [...world.model.agents.values()].filter((each) => each.teamId === teamId);
  const agents = members.map(({ agentId }) => ({ agentId, budgetCents }));
  const asked = stale ? version - 1 : version;
  const requestId = world.requestId();
  const reply = world.judge({ kind: "replace_team", teamId, version: asked, capCents, agents, requestId });
  if (stale) return mustEqual(reply, { kind: "version_conflict", version }, "a stale budget");
  must(reply.kind === "replaced" && reply.version === version + 1, "a budget was not replaced");
  world.model.caps.set(teamId, { capCents, version: version + 1 });
  if (capCents !== before.capCents) world.model.raiseVersion("project");
  expectCapsReply(world, reply.caps, [teamId], isRecorded);
  for (const agent of members) {
    if (agent.status === "closed" || agent.policy.budgetCents === budgetCents) continue;
    agent.policy = { ...agent.policy, budgetCents };
    agent.policyVersion += 1;
  }
}

function expectCapsReply(
  world: LedgerWorld,
  caps: readonly RecordedCap[],
  changed: readonly (string | null)[],
  isRecorded: boolean,
): void {
  mustEqual(
    caps.map(({ teamId }) => teamId),
    changed,
    "the caps that are to be in the records",
  );
  if (!isRecorded) return;
  const recorded = caps.map(({ teamId, cap: { version } }) => ({ teamId, version }));
  world.judge({ kind: "confirm_caps", caps: recorded });
  for (const { teamId } of caps) {
    const level = teamId === null ? world.ledger.project : world.ledger.teams.get(teamId);
    mustEqual(level?.recordedCapVersion, level?.cap.version, "a cap that is in its record");
  }
}

export function rules(world: LedgerWorld, { agent: place, team }: ActionOf<"rules">): void {
  const agent = place === null ? null : world.agent(place);
  if (agent !== null) return restrictions(world, agent);
  const id = team === null ? "project" : `team-${team}`;
  const teamId = team === null ? null : id;
  const version = (world.model.rules.get(id) ?? 0) + 1;
  world.judge({ kind: "follow_rules", teamId, version });
  // Told late, or twice.
  world.judge({ kind: "follow_rules", teamId, version: version - 1 });
  world.model.rules.set(id, version);
}

/** As `rules`, of an agent that still has an account. */
function restrictions(world: LedgerWorld, agent: AccountModel | undefined): void {
  if (agent === undefined || world.account(agent.agentId) === undefined) return;
  const { agentId } = agent;
  const version = (world.model.rules.get(agentId) ?? 0) + 1;
  world.judge({ kind: "follow_restrictions", agentId, version });
  world.judge({ kind: "follow_restrictions", agentId, version: version - 1 });
  world.model.rules.set(agentId, version);
}

/** A replacement that breaks off after its first agent: nothing of it is so. */
export function broken(world: LedgerWorld, { capCents, team }: ActionOf<"broken">): void {
  const teamId = `team-${team}`;
  const { version } = world.model.capOf(teamId);
  const members = [...world.model.agents.values()].filter((each) => each.teamId === teamId);
  const agents = members.map(({ agentId }) => ({ agentId, budgetCents: 77 }));
  Object.defineProperty(agents, agents.length, { get: breakOff, enumerable: true });
  const before = contentOf(world.ledger);
  const reply = world.tryToJudge({ kind: "replace_team", teamId, version, capCents, agents });
  mustEqual(reply.kind, "failed", "a command that breaks off");
  mustBeSame(contentOf(world.ledger), before, "a command that broke off has changed something");
}

function breakOff(): never {
  throw new Error("it breaks off");
}
