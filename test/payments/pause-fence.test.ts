import { expect } from "chai";
import type { CardLedgerDocument } from "../../src/rails/card/network-books.ts";
import { COLLECTIONS } from "../../src/store/documents.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { cardPayment, newWorld, type TestAgent, until, type World } from "../support/world.ts";
import { gate } from "../workflows/support/doubles.ts";

describe("a pause amid processes that die or stall", () => {
  let service: TestService;
  let world: World;
  /** The next payment to be sent waits there, in a process that sleeps. */
  let sleeping: { readonly reached: ReturnType<typeof gate>; readonly wake: ReturnType<typeof gate> } | null =
    null;
  /** Fences that are never laid: as if the process had died before. */
  let failing = 0;
  /** The next resume waits there, in a process that stalls. */
  let stalling: { readonly reached: ReturnType<typeof gate>; readonly wake: ReturnType<typeof gate> } | null =
    null;
  before(async () => {
    service = await startTestService({
      decorateBackends: (backends) => {
        const { ledgers } = backends;
        const submit = ledgers.submitRecorded.bind(ledgers);
        ledgers.submitRecorded = async (project, command, options) => {
          const stalled = command.kind === "resume" ? stalling : null;
          stalled?.reached.open();
          await stalled?.wake.opened;
          return submit(project, command, options);
        };
        return backends;
      },
      decorateEffects: (plain) => {
        const { card } = plain.rails;
        return {
          ...plain,
          rails: {
            ...plain.rails,
            card: {
              capabilities: card.capabilities,
              network: card.network,
              async send(profile, payment, permit) {
                const held = sleeping;
                sleeping = null;
                held?.reached.open();
                await held?.wake.opened;
                return card.send(profile, payment, permit);
              },
              async fence(places) {
                failing -= 1;
                if (failing >= 0) throw Object.assign(new Error("it died"), { code: "ECONNRESET" });
                await card.fence(places);
              },
              query: (payment) => card.query(payment),
              settle: (...asked) => card.settle(...asked),
              withhold: (profile, payment) => card.withhold(profile, payment),
              balance: (profile) => card.balance(profile),
              detach: (profile) => card.detach(profile),
            },
          },
        };
      },
    });
    world = await newWorld(service);
  });
  after(() => service?.stop());

  const by = ({ id }: TestAgent) => ({ token: world.token, id });
  const captures = (): Promise<number> =>
    service.db
      .collection<CardLedgerDocument>(COLLECTIONS.sandboxCardLedger)
      .countDocuments({ organizationId: world.organization.organizationId, status: "captured" });

  /** A payment that is decided, and whose process sleeps just before it sends it. */
  async function asleep(agent: TestAgent) {
    const { reached, wake } = { reached: gate(), wake: gate() };
    sleeping = { reached, wake };
    const paying = world.api.call("createPayment", { token: agent.key, body: cardPayment() });
    await reached.opened;
    return {
      /** The process goes on; its caller is answered. */
      wake: async () => {
        wake.open();
        expect((await paying).status).to.equal(201);
      },
    };
  }

  async function resumedAndPaid(agent: TestAgent, before: number): Promise<void> {
    await world.api.ok("resumeAgent", 200, by(agent));
    await until("it is paid", async () => ((await captures()) === before + 1 ? true : null));
  }

  it("is answered 503 until its fence is laid; nothing is captured after that", async () => {
    const agent = await world.agent();
    const before = await captures();
    const payment = await asleep(agent);
    failing = 1;
    await world.api.refused("pauseAgent", 503, "SERVICE_UNAVAILABLE", by(agent));
    expect((await world.api.ok("getAgent", 200, by(agent))).agent.state).to.equal("paused");
    await world.api.ok("pauseAgent", 200, by(agent));
    await payment.wake();
    expect(await captures()).to.equal(before);
    await resumedAndPaid(agent, before);
  });

  it("leaves its agent among those that are left to stop, until its fence is laid", async () => {
    const agent = await world.agent();
    const before = await captures();
    const payment = await asleep(agent);
    const team = { token: world.token, id: world.organization.teamId };
    // Beside those of its other agents, which have nothing on the way.
    failing = 1;
    const first = await world.api.call("pauseTeamAgents", team);
    expect(first.status === 503 || Reflect.get(Object(first.body), "remaining") === 1).to.equal(true);
    expect((await world.api.ok("pauseTeamAgents", 200, team)).remaining).to.equal(0);
    await payment.wake();
    expect(await captures()).to.equal(before);
    await resumedAndPaid(agent, before);
  });

  it("does not end by a resume that stalled until the agent was paused once more", async () => {
    const agent = await world.agent();
    await world.api.ok("pauseAgent", 200, by(agent));
    const { reached, wake } = { reached: gate(), wake: gate() };
    stalling = { reached, wake };
    const resuming = world.api.refused("resumeAgent", 503, "SERVICE_UNAVAILABLE", by(agent));
    await reached.opened;
    stalling = null;
    await world.api.ok("pauseAgent", 200, by(agent));
    wake.open();
    await resuming;
    await world.api.refused("createPayment", 403, "AGENT_PAUSED", { token: agent.key, body: cardPayment() });
    await world.api.ok("resumeAgent", 200, by(agent));
  });

  it("lists no fence among the card ledger's entries, nor in a payment's story", async () => {
    const agent = await world.agent();
    const payment = await asleep(agent);
    await world.api.ok("pauseAgent", 200, by(agent));
    await payment.wake();
    const { entries } = await world.api.ok("listCardLedger", 200, { token: world.token });
    expect(entries.every(({ status }) => status === "captured")).to.equal(true);
    const { transactions } = await world.api.ok("listTransactions", 200, {
      token: world.token,
      query: { agent_id: agent.id },
    });
    const [waiting] = transactions;
    const story = await world.api.ok("getTransactionStory", 200, {
      token: world.token,
      id: waiting?.id ?? "",
    });
    expect(waiting?.status).to.equal("pending");
    expect(story.railSteps).to.deep.equal([]);
  });
});
