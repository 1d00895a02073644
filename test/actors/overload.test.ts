import { expect } from "chai";
import { CallerGone } from "../../src/actors/actor-unavailable.ts";
import type { LedgerCommand } from "../../src/domain/ledger/commands.ts";
import { times } from "../support/world.ts";
import { ledgersOn, place, refusing, turn } from "./support.ts";

/** A ledger that answers when the test says so, on a clock that the test moves. */
function stage() {
  let nowMs = 0;
  const updates: { readonly commands: readonly LedgerCommand[]; readonly answer: () => void }[] = [];
  const ledgers = ledgersOn(
    (commands) =>
      new Promise((resolve) => updates.push({ commands, answer: () => resolve(refusing(commands)) })),
    () => nowMs,
  );
  const ask = (agentId: string, isAwaited?: () => boolean) => {
    const command = { kind: "resume", agentId } as const;
    const answered = ledgers.submitUnrecorded(place, command, { isAwaited });
    answered.catch(() => undefined);
    return answered;
  };
  return {
    ask,
    isOverloaded: (agentId: string) => ledgers.isOverloaded(place, agentId),
    /** Answers the update in flight after so long, and has the next one sent. */
    updateTakes: async (ms: number): Promise<readonly LedgerCommand[]> => {
      await turn();
      nowMs += ms;
      const update = updates.shift();
      update?.answer();
      for (const _turn of times(3, () => null)) await turn();
      return update?.commands ?? [];
    },
    passes: async (ms: number): Promise<void> => {
      await turn();
      nowMs += ms;
    },
  };
}

describe("a ledger whose decisions take long", () => {
  it("is overloaded once its update is a second old and eight wait, and not once it is answered", async () => {
    const { ask, isOverloaded, passes, updateTakes } = stage();
    void ask("one");
    await passes(1_001);
    for (const agentId of times(7, (index) => `agent ${String(index)}`)) void ask(agentId);
    expect(isOverloaded("late"), "seven wait").to.equal(false);
    void ask("eighth");
    expect(isOverloaded("late"), "eight wait").to.equal(true);
    await updateTakes(0);
    expect(isOverloaded("late"), "all are on their way").to.equal(false);
  });

  it("is not overloaded while its update is less than a second old", async () => {
    const { ask, isOverloaded, passes } = stage();
    for (const agentId of times(9, (index) => `agent ${String(index)}`)) void ask(agentId);
    await passes(1_000);
    expect(isOverloaded("late")).to.equal(false);
  });

  it("with more agents than its updates have room for is overloaded by the turn that is due", async () => {
    const { ask, isOverloaded, updateTakes } = stage();
    void ask("first");
    for (const agentId of times(1_000, (index) => `agent ${String(index)}`)) void ask(agentId);
    await updateTakes(400);
    await updateTakes(400);
    expect(isOverloaded("late")).to.equal(false);
    await updateTakes(400);
    expect(isOverloaded("late")).to.equal(true);
  });

  it("by one agent that sends without end is overloaded for that agent alone", async () => {
    const { ask, isOverloaded, updateTakes } = stage();
    void ask("quiet");
    for (const _command of times(200, () => null)) void ask("loud");
    for (const _update of times(6, () => null)) {
      void ask("quiet");
      await updateTakes(200);
    }
    expect(isOverloaded("quiet")).to.equal(false);
    expect(isOverloaded("loud")).to.equal(true);
  });

  it("is not sent what nobody waits for any more; what was sent goes on", async () => {
    const { ask, updateTakes } = stage();
    let isHere = true;
    const sent = ask("one", () => isHere);
    await turn();
    const waiting = ask("two", () => isHere);
    void ask("three");
    isHere = false;
    await updateTakes(10);
    expect((await sent).reply.kind).to.equal("inactive_key");
    expect(await waiting.catch((error: unknown) => error)).to.be.instanceOf(CallerGone);
    expect(await updateTakes(10)).to.deep.equal([{ kind: "resume", agentId: "three" }]);
  });
});
