import { randomUUID } from "node:crypto";
import { mkdir, rename, rmdir } from "node:fs/promises";
import { expect } from "chai";
import { startTestService, type TestService } from "../support/service.ts";
import { newWorld, organizationKey, type World } from "../support/world.ts";

/** The folder for key deliveries lies on a volume that may be away for a while, as the engines may. */
describe("while the folder for key deliveries is away", () => {
  let service: TestService;
  let world: World;
  let folder = "";

  before(async () => {
    service = await startTestService();
    world = await newWorld(service);
    folder = service.env["KEY_DELIVERY_DIR"] ?? "";
  });
  after(() => service.stop());

  async function withoutFolder(work: () => Promise<unknown>): Promise<void> {
    await rename(folder, `${folder}-away`);
    // What is left of a volume that is gone: the empty folder that it was mounted on.
    await mkdir(folder);
    try {
      await work();
    } finally {
      await rmdir(folder);
      await rename(`${folder}-away`, folder);
    }
  }

  const request = async () => {
    const { teamId } = world.organization;
    const body = { name: "Agent", teamId, budgetCents: 1, idempotencyKey: randomUUID() };
    return { token: (await organizationKey(world)).token, body };
  };

  it("a create is 503 CREATE_RETRYABLE and leaves no key elsewhere; its replay finishes it", async () => {
    const once = await request();
    await withoutFolder(() => world.api.refused("createAgent", 503, "CREATE_RETRYABLE", once));
    expect((await world.api.ok("createAgent", 201, once)).apiKey).to.match(/^sk_svc_live_/);
  });

  it("a replay is 503 CREATE_RETRYABLE and never says expired; later the key is delivered", async () => {
    const once = await request();
    const created = await world.api.ok("createAgent", 201, once);
    await withoutFolder(() => world.api.refused("createAgent", 503, "CREATE_RETRYABLE", once));
    expect((await world.api.ok("createAgent", 200, once)).apiKey).to.equal(created.apiKey);
  });
});
