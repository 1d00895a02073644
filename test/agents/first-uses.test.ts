import { expect } from "chai";
import { FirstUses } from "../../src/agents/first-uses.ts";
import type { AgentCommand, AgentReply } from "../../src/domain/agent/commands.ts";

const UNUSABLE: AgentReply = { kind: "authenticated", firstUsedAt: null };

describe("the first use of an agent's key", () => {
  it("waits for the agent's actor if a machine created the agent, and for nothing otherwise", async () => {
    const asked: AgentCommand[] = [];
    const submit = (_agentId: string, command: AgentCommand) => {
      asked.push(command);
      return Promise.resolve(UNUSABLE);
    };
    const firstUses = new FirstUses({ submit }, () => undefined);
    const agent = { _id: "agent", key: { id: "akey_1" } };
    expect(await firstUses.accept({ ...agent, createdByLineage: null })).to.equal(true);
    expect(asked).to.deep.equal([]);
    expect(await firstUses.accept({ ...agent, createdByLineage: "lineage" })).to.equal(false);
    expect(asked).to.deep.equal([{ kind: "authenticate", keyId: "akey_1" }]);
  });
});
