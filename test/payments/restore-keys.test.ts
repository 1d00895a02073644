import { expect } from "chai";
import { readRecords } from "../../server/admin/restore-ledger/records.ts";
import { collectionsOf } from "../../src/store/collections.ts";
import { sharedService } from "../support/service.ts";
import { newWorld } from "../support/world.ts";

describe("the key of an account in a restored ledger", () => {
  it("is the actor's; one that its record lacks was revoked by a stop, and the actor is told", async () => {
    const world = await newWorld(sharedService());
    const { id: _id } = await world.agent();
    const { connections, db } = world.service;
    const { agents, projects } = collectionsOf(db);
    const [agent, project] = [
      await agents.findOne({ _id }),
      await projects.findOne({ _id: world.organization.projectId }),
    ];
    if (agent === null || project === null || agent.key === null) throw new Error("there are records");
    const { key } = agent;
    const keysOf = async () => {
      const { recorded } = await readRecords(connections, project, null);
      return recorded.accounts.map(({ keyId, revokedKeyId }) => ({ keyId, revokedKeyId }));
    };
    const known = [{ keyId: key.id, revokedKeyId: null }];
    expect(await keysOf()).to.deep.equal(known);
    // A stop's record, as it is before the actor learns of it.
    await agents.updateOne({ _id }, { $set: { key: null } });
    expect(await keysOf()).to.deep.equal([{ keyId: null, revokedKeyId: key.id }]);
    // A key that is being minted: the actor has chosen it.
    await agents.updateOne({ _id }, { $set: { candidateKeys: [key] } });
    expect(await keysOf()).to.deep.equal(known);
  });
});
