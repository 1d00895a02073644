import { expect } from "chai";
import { ActorUnavailable } from "../../src/actors/actor-unavailable.ts";
import { AgentActors } from "../../src/actors/agent-actors.ts";
import { CommandsRefused } from "../../src/actors/commands-refused.ts";
import { NoSuchActor } from "../../src/actors/no-such-actor.ts";
import { handle } from "../../src/domain/agent/handle.ts";
import {
  type AgentSummary,
  followedOf,
  initialAgentState,
  isUnfollowed,
  summarize,
} from "../../src/domain/agent/state.ts";
import type { LedgerCommand } from "../../src/domain/ledger/commands.ts";
import type { AgentCommand } from "../../src/messages/agent.ts";
import { agentRefusal } from "../../src/messages/guards/batch-refusals.ts";
import { times } from "../support/world.ts";
import { place, sizeOf, turn, UPDATE_BYTES_MAX } from "./support.ts";

/** An agent's actor behind its guard. */
function life() {
  const state = initialAgentState(
    { ...place, teamId: "team", agentId: "agent", name: "Agent" },
    { keyId: "akey_1", lineageId: null, deliverableUntil: 0 },
    1,
  );
  const batches: (readonly AgentCommand[])[] = [];
  const told: LedgerCommand[] = [];
  const written: AgentSummary[] = [];
  const broken = { ledger: false, record: false };
  const errors: string[] = [];
  const actors = new AgentActors({
    async submit(agentId, commands) {
      batches.push(commands);
      await turn();
      if (agentId !== "agent") throw new NoSuchActor(agentId, {});
      const refusal = agentRefusal(commands);
      if (refusal !== null) throw new CommandsRefused(refusal, {});
      const replies = commands.map((command) => handle(state, command, 2));
      return {
        replies,
        unrecorded: state.confirmedRevision < state.revision ? summarize(state) : null,
        unfollowed: isUnfollowed(state) ? { agent: state.profile, followed: followedOf(state) } : null,
      };
    },
    ledgers: {
      submit(_place, command) {
        told.push(command);
        if (broken.ledger) return Promise.reject(new ActorUnavailable("no ledger"));
        return Promise.resolve({ kind: "followed", ended: [] });
      },
    },
    writeAgent(summary) {
      written.push(summary);
      return broken.record ? Promise.reject(new Error("no database")) : Promise.resolve();
    },
    onError: (message) => void errors.push(message),
  });
  return { actors, batches, broken, errors, state, told, written };
}

describe("an agent's mailbox", () => {
  it("answers once ledger and record are as the actor has decided, and confirms that after", async () => {
    const { actors, state, told, written } = life();
    expect(await actors.submit("agent", { kind: "revoke_key" })).to.deep.equal({
      kind: "key",
      keyId: "akey_1",
    });
    expect(told).to.deep.equal([
      { kind: "follow_agent", agentId: "agent", revision: 2, name: "Agent", keyId: null, isArchived: false },
    ]);
    expect(written.map(({ keyId }) => keyId)).to.deep.equal([null]);
    await actors.flushAll();
    expect([state.followedRevision, state.confirmedRevision]).to.deep.equal([2, 2]);
  });

  for (const what of ["ledger", "record"] as const) {
    it(`answers nobody that it is so where the ${what} could not be told, though it was decided`, async () => {
      const { actors, broken, state } = life();
      broken[what] = true;
      const failure: unknown = await actors
        .submit("agent", { kind: "revoke_key" })
        .catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(Error);
      expect(state.access.activeKeyId).to.equal(null);
      broken[what] = false;
      expect(await actors.submit("agent", { kind: "revoke_key" })).to.deep.equal({ kind: "no_key" });
      await actors.flushAll();
      expect([state.followedRevision, state.confirmedRevision]).to.deep.equal([2, 2]);
    });
  }

  it("has one update in flight, and what arrives meanwhile goes together in the next", async () => {
    const { actors, batches } = life();
    const asked = times(150, () => actors.submit("agent", { kind: "authenticate", keyId: "akey_1" }));
    const replies = await Promise.all(asked);
    expect(replies).to.deep.equal(times(150, () => ({ kind: "authenticated", firstUsedAt: 2 })));
    expect(batches[0]).to.have.length(1);
    expect(Math.max(...batches.map(({ length }) => length))).to.be.at.most(128);
    expect(batches.length).to.be.at.most(4);
  });

  it("a batch never comes near the size at which the engine would end the actor", async () => {
    const { actors, batches } = life();
    const rename = { kind: "rename", name: "n".repeat(20_000) } as const;
    await Promise.all(times(150, () => actors.submit("agent", rename).catch(() => null)));
    expect(batches.length).to.be.greaterThan(3);
    for (const batch of batches) expect(sizeOf(batch)).to.be.below(UPDATE_BYTES_MAX);
  });

  it("where there is no actor it says so, and keeps nothing", async () => {
    const { actors } = life();
    const failure: unknown = await actors
      .submit("nobody", { kind: "revoke_key" })
      .catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(NoSuchActor);
    expect(actors.waiting).to.equal(0);
  });
});
