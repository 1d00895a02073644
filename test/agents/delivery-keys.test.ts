import { isGrpcServiceError } from "@temporalio/client";
import { expect } from "chai";
import { newUuid } from "../../src/lib/ids.ts";
import { deliveryKeysOf } from "../support/life.ts";
import { sharedService, type TestService } from "../support/service.ts";
import { times, until } from "../support/world.ts";

const NOT_FOUND = "5";

/** Keys that servers and workers share without a volume. */
describe("an agent's delivery key in Temporal", () => {
  let service: TestService;
  before(async () => {
    service = await sharedService();
  });

  const historyOf = (agentId: string) =>
    service.connections.temporal.workflow.getHandle(`delivery-key/${agentId}`).fetchHistory();

  it("is one for all processes that obtain it at once, and for all that read it", async () => {
    const agentId = newUuid();
    const keys = await Promise.all(times(5, () => deliveryKeysOf(service).obtain(agentId)));
    keys.push((await deliveryKeysOf(service).read(agentId)) ?? Buffer.alloc(0));
    expect(new Set(keys.map((key) => key.toString("hex"))).size).to.equal(1);
    expect(keys[0]).to.have.length(32);
    await deliveryKeysOf(service).destroy(agentId);
  });

  it("is gone with its history once it is destroyed, again or before it was made", async () => {
    const agentId = newUuid();
    const keys = deliveryKeysOf(service);
    await keys.destroy(agentId);
    const key = await keys.obtain(agentId);
    const [event] = (await historyOf(agentId)).events ?? [];
    expect(event?.workflowExecutionStartedEventAttributes?.memo, "the search's sight").to.have.property(
      "fields",
    );
    await keys.destroy(agentId);
    expect(await keys.read(agentId)).to.equal(null);
    await until("its history is deleted", () =>
      historyOf(agentId).then(
        () => null,
        (error: unknown) => (isGrpcServiceError(error) && String(error.code) === NOT_FOUND ? true : null),
      ),
    );
    await keys.destroy(agentId);
    expect((await keys.obtain(agentId)).equals(key), "another one").to.equal(false);
    await keys.destroy(agentId);
  });
});
