import { once } from "node:events";
import { MockActivityEnvironment } from "@temporalio/testing";
import { expect } from "chai";
import { withHeartbeats } from "../../src/lib/heartbeats.ts";

const endless = () => new Promise<never>(() => undefined);

describe("an activity with heartbeats", () => {
  it("beats while its work goes on", async () => {
    const environment = new MockActivityEnvironment();
    const beat = once(environment, "heartbeat");
    const work = async () => (await beat, "done");
    expect(await environment.run(() => withHeartbeats(work))).to.equal("done");
  });

  it("ends once it is cancelled, so that endless work does not hold up its worker's stop", async () => {
    const environment = new MockActivityEnvironment();
    const running = environment.run(() => withHeartbeats(endless));
    environment.cancel("WORKER_SHUTDOWN");
    const ended: unknown = await running.catch((error: unknown) => error);
    expect(ended).to.be.instanceOf(Error).with.property("name", "CancelledFailure");
  });
});
