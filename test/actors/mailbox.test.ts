import { expect } from "chai";
import { ActorUnavailable, AgentMailboxes } from "../../server/actors/mailbox.ts";
import { Budgets } from "../../server/actors/budgets.ts";
import { CommandsRefused } from "../../server/actors/commands-refused.ts";
import type { AgentCommand } from "../../src/domain/agent/commands.ts";
import { projectedThrough, summarize } from "../../src/domain/agent/state.ts";
import { handleBudget } from "../../src/domain/budget/budget.ts";
import type { BudgetCommand, BudgetReply } from "../../src/domain/budget/commands.ts";
import { deliveriesOnce } from "../../src/domain/budget/deliveries-once.ts";
import { initialBudgetState } from "../../src/domain/budget/state.ts";
import { agentRefusal, budgetRefusal } from "../../src/messages/guards/refusals.ts";
import { TestActor } from "../domain/support/actor.ts";
import { times } from "../support/world.ts";

/** A quarter of what the engine takes in one message, since an update is repeated in its answer. */
const UPDATE_BYTES_MAX = 1_048_576;
const sizeOf = (commands: readonly unknown[]): number => Buffer.byteLength(JSON.stringify(commands));
const kindsIn = (commands: readonly { readonly kind: string }[]) => commands.map(({ kind }) => kind);

/** An agent's actor behind its guard, without an engine: each update is answered in a turn of its own. */
function stage() {
  const actor = new TestActor();
  const batches: (readonly AgentCommand[])[] = [];
  const mailboxes = new AgentMailboxes({
    submit(_agentId, commands) {
      batches.push(commands);
      const refusal = agentRefusal(commands);
      if (refusal !== null) return Promise.reject(new CommandsRefused(refusal, {}));
      const replies = commands.map((command) => actor.do(command));
      const { forgottenThrough } = actor.state;
      const horizon = { forgottenThrough, projectedThrough: projectedThrough(actor.state) };
      return new Promise((resolve) =>
        setImmediate(() => resolve({ replies, summary: summarize(actor.state), ...horizon })),
      );
    },
    report: () => Promise.resolve(),
    writeSummary: () => Promise.resolve(),
    hurry: () => undefined,
    confirmAfterMs: 1,
    onError: (message, error) => {
      throw new Error(message, { cause: error });
    },
  });
  const pay = (fields: object = {}): AgentCommand => ({
    kind: "pay",
    keyId: "akey_1",
    request: actor.request(1, fields),
    approvalWindowSeconds: 60,
    lookedUpThrough: 0,
  });
  return { actor, batches, mailboxes, pay };
}

describe("an agent's mailbox", () => {
  it("with confirmations to tell, too, a batch has no more commands than the actor takes", async () => {
    const { actor, batches, mailboxes, pay } = stage();
    const { revision: before } = await mailboxes.answered("agent", pay());
    // Its record is written, so that the next update tells of that, too.
    await mailboxes.flush("agent");
    expect(before).to.be.greaterThan(0);
    for (const _confirmation of times(200, () => null))
      mailboxes.confirmLater("agent", { kind: "confirm_report", revision: 1 }, Promise.resolve());
    const paying = times(190, () => mailboxes.submit("agent", pay()));
    const replies = await Promise.all(paying);
    expect(kindsIn(replies)).to.deep.equal(times(190, () => "decided"));
    expect(Math.max(...batches.map(({ length }) => length))).to.equal(128);
    expect(batches.some(([first]) => first?.kind === "confirm_summary")).to.equal(true);
    expect(actor.state.sequence).to.equal(191);
  });

  it("a batch never comes near the size at which the engine would end the actor", async () => {
    const { batches, mailboxes, pay } = stage();
    const purpose = "p".repeat(20_000);
    const paying = times(300, () => mailboxes.submit("agent", pay({ purpose })).catch(() => null));
    await Promise.all(paying);
    expect(batches.length).to.be.greaterThan(3);
    for (const batch of batches) expect(sizeOf(batch)).to.be.below(UPDATE_BYTES_MAX);
  });

  it("what stops an agent goes first, and is taken where nothing else is any more", async () => {
    const { batches, mailboxes, pay } = stage();
    const paying = times(1_001, () => mailboxes.submit("agent", pay()));
    const full = await mailboxes.submit("agent", pay()).catch((error: unknown) => error);
    expect(full).to.be.instanceOf(ActorUnavailable);
    const stops = (["pause", "revoke_key"] as const).map((kind) =>
      mailboxes.submit("agent", kind === "pause" ? { kind } : { kind, recordedKeyId: null }),
    );
    await Promise.all(stops);
    await Promise.all(paying);
    // The first payment was on its way already.
    expect(
      kindsIn(batches[1] ?? [])
        .filter((kind) => !kind.startsWith("confirm"))
        .slice(0, 3),
    ).to.deep.equal(["pause", "revoke_key", "pay"]);
  });

  it("a stop never goes before a resume or a new key that was asked for earlier", async () => {
    const { batches, mailboxes, pay } = stage();
    const first = mailboxes.submit("agent", pay());
    const asked: AgentCommand[] = [pay(), { kind: "resume" }, pay(), { kind: "pause" }, pay()];
    await Promise.all([first, ...asked.map((command) => mailboxes.submit("agent", command))]);
    expect(kindsIn(batches[1] ?? [])).to.deep.equal(["pay", "resume", "pause", "pay", "pay"]);
  });
});

describe("a budget's mailbox", () => {
  it("names whom to tell once in an update, and to everybody who has it to tell", async () => {
    const state = initialBudgetState("organization", "project");
    const batches: (readonly BudgetCommand[])[] = [];
    const answered: (readonly BudgetReply[])[] = [];
    const budgets = new Budgets((_place, commands) => {
      batches.push(commands);
      expect(budgetRefusal(commands)).to.equal(null);
      const replies = deliveriesOnce(commands.map((command) => handleBudget(state, command, 0)));
      answered.push(replies);
      return new Promise((resolve) => setImmediate(() => resolve(replies)));
    });
    const place = { organizationId: "organization", projectId: "project" };
    const named = times(3_300, (index) => ({ agentId: `agent-${index}`.padEnd(36, "x"), budgetCents: 100 }));
    const asked = times(12, (index) => [
      budgets.submit(place, {
        kind: "replace_team",
        teamId: `team-${index}`,
        version: 1,
        capCents: 1,
        budgets: named,
        complete: true,
      }),
      budgets.submit(place, {
        kind: "report",
        report: {
          agentId: `agent-${index}`,
          teamId: "another",
          revision: 1,
          spentCents: 0,
          reservedCents: 0,
          asks: [],
        },
      }),
    ]);
    const replies = await Promise.all(asked.flat());
    expect(new Set(kindsIn(replies))).to.deep.equal(new Set(["replaced", "reported"]));
    for (const reply of replies) {
      if (reply.kind === "replaced") expect(reply.deliveries).to.have.lengthOf(named.length);
    }
    for (const [index, batch] of batches.entries()) {
      expect(sizeOf(batch)).to.be.below(UPDATE_BYTES_MAX);
      expect(sizeOf(answered[index] ?? [])).to.be.below(UPDATE_BYTES_MAX);
    }
    expect(batches.length).to.be.below(24);
  });
});
