import type { Server } from "node:http";
import { expect } from "chai";
import express from "express";
import { type ProbeDependencies, probes } from "../../server/http/probes.ts";
import { type Engine, EngineWatch } from "../../server/readiness.ts";
import { Metrics } from "../../src/metrics/metrics.ts";
import { inTime } from "../support/in-time.ts";

const engineOf = (name: string, look: Engine["look"]): Engine => ({ name, label: name.toLowerCase(), look });
const never = () => new Promise<never>(() => undefined);

describe("what is known of the engines", () => {
  let nowMs = 0;
  const now = () => nowMs;
  beforeEach(() => (nowMs = 0));

  it("is looked up once for all who ask at once, and anew after a second, not before", async () => {
    let looks = 0;
    const watch = new EngineWatch([engineOf("One", () => Promise.resolve((looks += 1)))], now);
    await Promise.all(Array.from({ length: 1_000 }, () => watch.states()));
    nowMs = 999;
    await watch.states();
    expect(looks).to.equal(1);
    nowMs = 1_000;
    await watch.states();
    expect(looks).to.equal(2);
  });

  it("a look that fails says that it is down until one succeeds", async () => {
    let isBroken = true;
    const look = () => (isBroken ? Promise.reject(new Error("broken")) : Promise.resolve());
    const watch = new EngineWatch([engineOf("One", look)], now);
    expect(await watch.states()).to.deep.equal([{ name: "One", label: "one", isUp: false }]);
    isBroken = false;
    nowMs = 1_000;
    expect(await watch.states()).to.deep.equal([{ name: "One", label: "one", isUp: true }]);
  });

  it("one that hangs delays no probe, and is down after two seconds; the others are as they are", async () => {
    const watch = new EngineWatch([engineOf("Hung", never), engineOf("Well", () => Promise.resolve())], now);
    const upOnes = async () =>
      (await inTime("a probe", watch.states(), 1_000)).flatMap(({ isUp, name }) => (isUp ? [name] : []));
    expect(await upOnes()).to.deep.equal(["Hung", "Well"]);
    nowMs = 2_000;
    expect(await upOnes()).to.deep.equal(["Well"]);
  });
});

describe("/readyz", () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.close();
  });

  async function serving(options: Pick<ProbeDependencies, "draining" | "showsDetails">) {
    const app = express().use(
      probes({
        metrics: new Metrics(),
        engines: new EngineWatch([engineOf("MongoDB", () => Promise.reject(new Error("gone")))]),
        blockedProjects: () => [{ projectId: "prj_1", reason: "stale_records" }],
        ...options,
      }),
    );
    const server = app.listen(0, "127.0.0.1");
    servers.push(server);
    await new Promise((resolve) => server.once("listening", resolve));
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("it listens on no port");
    return async () => {
      const response = await fetch(`http://127.0.0.1:${String(address.port)}/readyz`);
      return [response.status, await response.json()];
    };
  }

  it("fails for the process alone: shared engines and blocked projects are shown", async () => {
    let isDraining = false;
    const asked = await serving({ draining: () => isDraining });
    const shown = {
      missing: ["MongoDB"],
      blockedProjects: [{ projectId: "prj_1", reason: "stale_records" }],
    };
    expect(await asked()).to.deep.equal([200, { ready: true, ...shown }]);
    isDraining = true;
    expect(await asked()).to.deep.equal([503, { ready: false, ...shown }]);
  });

  it("names neither engines nor projects to the public where probes have a port of their own", async () => {
    const asked = await serving({ draining: () => false, showsDetails: false });
    expect(await asked()).to.deep.equal([200, { ready: true }]);
  });
});
