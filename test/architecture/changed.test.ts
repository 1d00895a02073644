import { expect } from "chai";
import { allEdges, nearestFirst } from "../support/changed.ts";
import { allFiles } from "../support/plan.ts";

/** Without endings, so that this file names none of these. */
const nearest = async (changed: string, ending = "ts") => {
  const file = `${changed}.${ending}`;
  return nearestFirst(await allFiles(), [file], await allEdges([file]));
};

describe("npm test -- --changed", () => {
  it("takes tests that reach what has changed, importers first, then those of its subject", async () => {
    const ofKeys = await nearest("src/domain/api-key");
    expect(ofKeys.slice(0, 2)).to.have.members([
      "test/architecture/secret-scan.test.ts",
      "test/identity/api-key.test.ts",
    ]);
    expect(ofKeys).to.include("test/agents/agent-keys.test.ts");
    const ofHandlers = (await nearest("server/handlers/webhooks")).slice(0, 5);
    expect(ofHandlers.filter((test) => !test.startsWith("test/webhooks/"))).to.deep.equal([]);
  });

  it("follows what is bundled, and what is read as a text; what nothing reaches has no test", async () => {
    expect(await nearest("workflows/approval")).to.include("test/workflows/approval.test.ts");
    expect(await nearest("web/src/main", "tsx")).to.include("test/dashboard/payments.test.ts");
    expect((await nearest("docs/tests", "md"))[0]).to.equal("test/architecture/documents.test.ts");
    expect((await nearest("test/mcp/toolset.test"))[0]).to.equal("test/mcp/toolset.test.ts");
    expect(await nearest("src/domain/gone")).to.deep.equal([]);
  });
});
