import { expect } from "chai";
import { TestActor } from "./support/actor.ts";

const mint = (actor: TestActor, keyId: string) => actor.do({ kind: "mint_key", keyId, recordedKeyId: null });

describe("minting a key", () => {
  it("is answered the same when the engine repeats it, and changes nothing: the key is his alone", () => {
    const actor = new TestActor();
    const first = mint(actor, "akey_1");
    expect(first).to.deep.equal({ kind: "key", keyId: "akey_1" });
    const { revision } = actor.state;
    expect(mint(actor, "akey_1")).to.deep.equal(first);
    expect(actor.state.revision).to.equal(revision);
    expect(mint(actor, "akey_2")).to.deep.equal({ kind: "key_exists" });
  });
});
