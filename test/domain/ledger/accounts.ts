import { must, mustEqual } from "../../../lab/simulation/audit/violation.ts";
import type { FollowedAgent } from "../../../src/domain/agent/state.ts";
import type { LedgerReply } from "../../../src/domain/ledger/commands.ts";
import { openPolicy } from "../support/actor.ts";
import type { ActionOf } from "./actions.ts";
import type { AccountModel } from "./book.ts";
import { BOUNDS, leastAccountBytes, type LedgerWorld } from "./world.ts";

/** What becomes of accounts: opened, paused, followed, closed, and written into their agents' records. */

export function openAccount(world: LedgerWorld, team: number): void {
  const number = world.model.agents.size + 1;
  const opened = {
    agentId: `agent-${number}`,
    teamId: `team-${team}`,
    policy: { ...openPolicy, budgetCents: 60, autoApprovalThresholdCents: 8 },
    keyId: `key-${number}-1`,
  };
  const [weight, least] = [world.ledger.weightBytes, leastAccountBytes(world)];
  const reply = world.judge({ kind: "open_account", name: `Agent ${number}`, ...opened });
  const live = world.ledger.accounts.size;
  if (reply.kind === "project_full") {
    world.note("full");
    return must(live >= BOUNDS.accounts || weight >= BOUNDS.openedBelowBytes, "the project is not full");
  }
  mustEqual(reply, { kind: "opened", changed: true }, "an account");
  must(live <= BOUNDS.accounts, "more accounts than there may be");
  must(least < BOUNDS.openedBelowBytes, "an account beyond the accounts' weight");
  world.model.agents.set(opened.agentId, { ...opened, policyVersion: 1, status: "active", events: [] });
}

export function changePolicy(world: LedgerWorld, { agent: place, patch, stale }: ActionOf<"policy">): void {
  const agent = world.agent(place);
  if (agent === undefined) return;
  const { agentId, policyVersion } = agent;
  const version = stale ? policyVersion - 1 : policyVersion;
  const reply = world.judge({ kind: "change_policy", agentId, patch, version, requestId: world.requestId() });
  if (agent.status === "closed") return mustEqual(reply, { kind: "no_account" }, "a policy of none");
  if (stale) return mustEqual(reply, { kind: "version_conflict", version: policyVersion }, "a stale policy");
  const { budgetCents } = agent.policy;
  agent.policy = { ...agent.policy, ...patch };
  agent.policyVersion += 1;
  if (agent.policy.budgetCents !== budgetCents) world.model.raiseVersion(agent.teamId);
  mustEqual(reply.kind, "policy", "a changed policy");
}

export function life(world: LedgerWorld, { agent: place, change }: ActionOf<"life">): void {
  const agent = world.agent(place);
  if (agent === undefined) return;
  world.note(`${change}${agent.status === "closed" ? " of a closed one" : ""}`);
  switch (change) {
    case "stop":
      setAccountStatus(world, agent, "pause");
      return setKey(world, agent, null);
    case "pause":
    case "resume":
      return setAccountStatus(world, agent, change);
    case "revoke":
      return setKey(world, agent, null);
    case "mint":
      return setKey(world, agent, `key-${world.number()}`);
    case "old_mint":
      // Comes late, and is older than what the ledger has received.
      follow(world, agent.agentId, { keyId: "key-of-old", isArchived: false, revision: 0 });
      return;
    case "close":
      return close(world, agent);
  }
}

function setAccountStatus(world: LedgerWorld, agent: AccountModel, change: "pause" | "resume"): void {
  const { agentId } = agent;
  const inFlight = change === "pause" ? world.inFlight(agentId).toSorted() : [];
  const reply = world.judge({ kind: change, agentId, requestId: world.requestId() });
  if (agent.status === "closed") return mustEqual(reply, { kind: "no_account" }, `${change} of none`);
  const status = change === "pause" ? "paused" : "active";
  const changed = agent.status !== status;
  if (reply.kind !== "account_status")
    return mustEqual(reply.kind, "account_status", `${change} of ${agentId}`);
  const { fence, ...said } = reply;
  mustEqual(said, { kind: "account_status", status, changed }, `${change} of ${agentId}`);
  const fenced = fence === null ? [] : Object.values(fence.payments).flat().toSorted();
  mustEqual(fenced, inFlight, `what the ${change} of ${agentId} fences`);
  if (fence !== null) world.fenced(agentId, fence.fence);
  if (!changed) return;
  agent.status = status;
  const revision = world.account(agentId)?.revision ?? 0;
  agent.events.push({ type: status === "paused" ? "agent.paused" : "agent.resumed", revision });
  if (status === "paused" && agent.keyId === null) world.withdraw(agentId);
}

function setKey(world: LedgerWorld, agent: AccountModel, keyId: string | null): void {
  follow(world, agent.agentId, { keyId, isArchived: false });
  if (agent.status === "closed") return;
  agent.keyId = keyId;
  if (keyId === null && agent.status === "paused") world.withdraw(agent.agentId);
}

function follow(
  world: LedgerWorld,
  agentId: string,
  change: Pick<FollowedAgent, "keyId" | "isArchived"> & Partial<FollowedAgent>,
): LedgerReply {
  return world.judge({
    kind: "follow_agent",
    agentId,
    name: "An agent",
    revision: world.number(),
    ...change,
  });
}

function close(world: LedgerWorld, agent: AccountModel): void {
  const { agentId } = agent;
  const own = world.openPayments().filter((each) => each.agentId === agentId);
  const held = own.filter(({ payment }) => payment.phase === "held");
  const reply = follow(world, agentId, { keyId: null, isArchived: true });
  const ended = agent.status === "closed" ? [] : held.map(({ request }) => request.transactionId);
  mustEqual(reply, { kind: "followed", ended }, "a closed account");
  if (agent.status === "closed") return;
  for (const booked of held) {
    const isLate = world.now >= (booked.payment.approval?.expiresAt ?? 0);
    const now = world.open(agentId, booked.request.transactionId);
    must(now !== undefined, "what is on hold of a closed account is gone");
    mustEqual(now.status, isLate ? "expired" : "denied", "what was on hold of a closed account");
    booked.payment = now;
  }
  if (agent.status === "paused") world.withdraw(agentId);
  agent.status = "closed";
  agent.keyId = null;
  if (held.length > 0) world.model.counted(agentId, world.now);
}

/** The agent's record shows its account as it is now, or as it was before its last change. */
export function record(world: LedgerWorld, { agent: place, isOlder }: ActionOf<"record">): void {
  const agent = world.agent(place);
  const account = agent && world.account(agent.agentId);
  if (agent === undefined || account === undefined) return;
  const { agentId } = agent;
  const revision = account.revision - (isOlder ? 1 : 0);
  world.judge({ kind: "confirm_records", records: [{ agentId, revision }] });
  agent.events = agent.events.filter((event) => event.revision > revision);
  const now = world.account(agentId);
  if (now === undefined) return world.note("dropped");
  must(now.confirmedRevision >= revision, "what its record shows is not known");
}
