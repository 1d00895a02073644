import { expect } from "chai";
import { ROUTES } from "../../src/client/routes.ts";
import { addressOf } from "../../src/client/client.ts";
import { clientRoutes } from "../../src/contract/client-routes.ts";
import { operationList } from "../../src/contract/registry.ts";
import { allImports } from "../architecture/imports.ts";

describe("the client's routes", () => {
  it("are those of the contract, every operation's (else: npm run client-routes)", () => {
    expect(ROUTES).to.deep.equal(clientRoutes());
    const reachable = operationList.filter(([, { http }]) => http !== null).map(([id]) => id);
    expect(Object.keys(ROUTES)).to.have.members(reachable);
  });

  it("say which operations need no sign-in, which are replayed, listed and sent as files", () => {
    expect(ROUTES.signIn).to.deep.include({ anonymous: true });
    expect(ROUTES.createAgent).to.deep.equal({ method: "POST", path: "/v1/agents", replayable: true });
    expect(ROUTES.listAgents).to.deep.include({ list: "agents" });
    expect(ROUTES.exportTransactions).to.deep.include({ file: true });
  });

  it("bring nothing of the contract, a server or a package into what is loaded", async () => {
    const loaded = (await allImports()).filter(
      ({ from, typeOnly }) => from.startsWith("src/client/") && !typeOnly,
    );
    expect(loaded.length).to.be.greaterThan(2);
    expect(loaded.filter(({ to }) => !to.startsWith("src/client/"))).to.deep.equal([]);
  });

  it("take ids into the path as one part of it, whatever they hold", () => {
    const path = addressOf(ROUTES.getAgent, { id: "../a?b#c", query: { limit: 2, cursor: undefined } });
    expect(path).to.equal("/v1/agents/..%2Fa%3Fb%23c?limit=2");
  });
});
