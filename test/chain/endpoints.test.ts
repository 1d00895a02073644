import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { type OwnAnvil, startOwnAnvil } from "../support/own-anvil.ts";
import { startProvider } from "./provider.ts";
import { newPayment, openScene, type Scene } from "./support.ts";

/** An endpoint that answers each request so; or never. */
async function startServer(
  answering: (answer: ServerResponse) => void,
): Promise<{ readonly url: string; readonly server: Server }> {
  const server = createServer((_request, answer) => answering(answer));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { server, url: `http://127.0.0.1:${String(port)}` };
}

describe("two endpoints of one chain", () => {
  let anvil: OwnAnvil;
  let other: OwnAnvil;
  let scene: Scene;
  before(async () => {
    [anvil, other] = await Promise.all([startOwnAnvil(), startOwnAnvil()]);
    scene = await openScene(anvil.url);
    // Nothing in them tells the first blocks of two local chains apart.
    await other.call("anvil_mine", ["0x5"]);
  });
  after(async () => {
    await scene.close();
    await Promise.all([anvil.kill(), other.kill()]);
  });

  it("payments go on by the second while the first refuses, is gone or is silent", async () => {
    const [gone, silent] = await Promise.all([startProvider(anvil.url), startServer(() => undefined)]);
    await gone.close();
    const busy = await startProvider(anvil.url, { isTooMany: () => true });
    for (const rpcUrl of [gone.url, silent.url, busy.url]) {
      const agent = await scene.funded(500);
      const process = scene.open({ rpcUrl, fallbackRpcUrl: anvil.url });
      const outcome = await process.wallets.rail.send(agent.profile, newPayment(100));
      expect(outcome.status, rpcUrl).to.equal("settled");
      expect(process.troubles.join()).to.include('reached through another endpoint {"now":"the second"}');
      expect(process.repairs.get("endpoint_changed")).to.equal(1);
    }
    await busy.close();
    silent.server.closeAllConnections();
    silent.server.close();
  });

  it("a second one on another chain is never used, and what is paid by the first goes on", async () => {
    const elsewhere = await startServer((answer) => answer.end(JSON.stringify({ id: 1, result: "0x1" })));
    const first = await startProvider(anvil.url);
    const agent = await scene.funded(500);
    const process = scene.open({ rpcUrl: first.url, fallbackRpcUrl: elsewhere.url });
    expect((await process.wallets.rail.send(agent.profile, newPayment(100))).status).to.equal("settled");
    await first.close();
    expect(await process.wallets.rail.balance(agent.profile)).to.deep.equal({ kind: "unreadable" });
    expect(process.troubles.join()).to.include("is on another chain and is not used");
    elsewhere.server.closeAllConnections();
    elsewhere.server.close();
  });

  it("that they disagree is logged once and counted each time; a silent one says nothing", async () => {
    const same = scene.open({ fallbackRpcUrl: anvil.url }).wallets;
    await same.rpc.endpoints.compare();
    const process = scene.open({ fallbackRpcUrl: other.url });
    const { endpoints } = process.wallets.rpc;
    for (let at = 0; at < 2; at += 1) await endpoints.compare();
    expect(process.troubles.join()).to.match(/^the chain's endpoints disagree[^;]*; [^;]*"two blocks \d+"/);
    expect(process.troubles).to.have.length(1);
    expect(process.repairs.get("endpoints_disagree")).to.equal(2);
    const silent = scene.open({ fallbackRpcUrl: "http://127.0.0.1:9" });
    await silent.wallets.rpc.endpoints.compare();
    expect([...silent.repairs.keys(), ...silent.troubles]).to.deep.equal([]);
  });
});
