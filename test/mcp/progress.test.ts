import { expect } from "chai";
import { payment } from "../../src/contract/records.ts";
import { newWorld, type TestAgent, until, type World } from "../support/world.ts";
import { connectCurrent } from "./current-client.ts";
import { McpCaller } from "./support.ts";

interface Told {
  readonly progress: number;
  readonly total?: number | undefined;
}

describe("progress of calls that wait", () => {
  let world: World;
  let agent: TestAgent;
  before(async () => {
    world = await newWorld();
    agent = await world.agent({ autoApprovalThresholdCents: 0 });
  });

  type Call = (args: Record<string, unknown>, onprogress: (told: Told) => void) => Promise<unknown>;

  async function earlier(): Promise<Call> {
    const { client } = await McpCaller.connect(world.service.baseUrl, agent.key);
    return async (args, onprogress) => {
      const { structuredContent } = await client.callTool(
        { name: "get_payment", arguments: args },
        undefined,
        { onprogress },
      );
      return structuredContent;
    };
  }

  async function current(): Promise<Call> {
    const client = await connectCurrent(world.service.baseUrl, agent.key);
    return async (args, onprogress) => {
      const { structuredContent } = await client.callTool(
        { name: "get_payment", arguments: args },
        { onprogress },
      );
      return structuredContent;
    };
  }

  for (const [revision, connect] of [
    ["2025-11-25", earlier],
    ["2026-07-28", current],
  ] as const) {
    it(`${revision}: who asked hears that it goes on, and then its answer`, async () => {
      const call = await connect();
      const { approvalId, transactionId } = await agent.hold();
      const told: Told[] = [];
      const calling = call({ transactionId, waitSeconds: 45 }, (each) => told.push(each));
      await until("it is told of", () => Promise.resolve(told[0] ?? null));
      expect(told[0]).to.include({ total: 45 });
      await world.api.ok("approveApproval", 200, { token: world.token, id: approvalId });
      expect(payment.parse(await calling).transaction.status).to.equal("approved");
    });

    it(`${revision}: a call that does not wait is answered without any`, async () => {
      const call = await connect();
      const { transactionId } = await agent.hold();
      const told: Told[] = [];
      await call({ transactionId }, (each) => told.push(each));
      expect(told).to.deep.equal([]);
    });
  }
});
