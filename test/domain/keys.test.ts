import { expect } from "chai";
import { FIRST_KEY, TestAgent } from "./support/agent.ts";

const mint = (agent: TestAgent, keyId: string) => agent.do({ kind: "mint_key", keyId });

describe("minting a key", () => {
  it("is answered the same when the engine repeats it, and changes nothing: the key is his alone", () => {
    const agent = new TestAgent();
    agent.do({ kind: "revoke_key" });
    const first = mint(agent, "akey_1");
    expect(first).to.deep.equal({ kind: "key", keyId: "akey_1" });
    const { revision } = agent.state;
    expect(mint(agent, "akey_1")).to.deep.equal(first);
    expect(agent.state.revision).to.equal(revision);
    expect(mint(agent, "akey_2")).to.deep.equal({ kind: "key_exists" });
  });

  it("is refused while there is an active key, and after the archive", () => {
    const agent = new TestAgent();
    expect(mint(agent, "akey_2")).to.deep.equal({ kind: "key_exists" });
    agent.do({ kind: "archive", by: { type: "user" } });
    expect(mint(agent, "akey_2")).to.deep.equal({ kind: "archived" });
    expect(agent.do({ kind: "revoke_key" })).to.deep.equal({ kind: "archived" });
  });
});

describe("using a key", () => {
  it("stamps the first use once, and is refused for any key but the active one", () => {
    const agent = new TestAgent();
    const use = (keyId: string) => agent.do({ kind: "authenticate", keyId });
    expect(use("akey_of_another")).to.deep.equal({ kind: "authenticated", firstUsedAt: null });
    expect(agent.state.access.authenticatedAt).to.equal(null);
    const firstUsedAt = agent.now;
    expect(use(FIRST_KEY)).to.deep.equal({ kind: "authenticated", firstUsedAt });
    agent.now += 1;
    expect(use(FIRST_KEY)).to.deep.equal({ kind: "authenticated", firstUsedAt });
    expect(agent.state.access.authenticatedAt).to.equal(firstUsedAt);
    agent.do({ kind: "revoke_key" });
    expect(use(FIRST_KEY)).to.deep.equal({ kind: "authenticated", firstUsedAt: null });
  });
});
