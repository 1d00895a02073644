import { expect } from "chai";
import { ForwardSeals } from "../../src/actors/forwarding.ts";
import { FORWARD_PATH } from "../../src/actors/ledger-peers.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { Sealer } from "../../src/secrets/sealer.ts";
import { type ServerDocument, SERVERS } from "../../src/store/servers.ts";
import { ContractApi } from "../support/contract-api.ts";
import { secondService } from "../support/own-service.ts";
import { TEST_MASTER_KEY } from "../support/payloads.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { cardPayment, newWorld, type TestAgent, times, type World } from "../support/world.ts";

const MASTER_KEY = MasterKey.parse(TEST_MASTER_KEY, "a test");

const forwards = async ({ baseUrl }: TestService, result: string): Promise<number> => {
  const text = await (await fetch(`${baseUrl}/metrics`)).text();
  const found = new RegExp(`ledger_forwards_total\\{result="${result}"\\} (\\d+)`).exec(text);
  return Number(found?.[1] ?? 0);
};

describe("Several servers on one database", () => {
  const services: TestService[] = [];
  let world: World;
  let agent: TestAgent;

  before(async () => {
    const first = await startTestService({ settings: { INTERNAL_URL: "http://127.0.0.1:0" } });
    services.push(first, await secondService(first), await secondService(first));
    world = await newWorld(first);
    agent = await world.agent({ budgetCents: 1_000_000 });
  });
  after(() => Promise.all(services.map((service) => service.stop())));

  it("payments through any of them go to the ledger through one, which each sees at once", async () => {
    const paid = await Promise.all(
      services.flatMap((service) => {
        const api = new ContractApi(service.baseUrl);
        return times(10, () => api.ok("createPayment", 201, { token: agent.key, body: cardPayment() }));
      }),
    );
    expect(new Set(paid.map(({ transaction }) => transaction.id)).size).to.equal(30);
    const answered = await Promise.all(services.map((service) => forwards(service, "answered")));
    expect(
      answered.filter((count) => count === 0),
      "servers that forward nothing",
    ).to.have.length(1);
    let heldCents = 3_000;
    for (const service of services) {
      const api = new ContractApi(service.baseUrl);
      await api.ok("createPayment", 201, { token: agent.key, body: cardPayment() });
      heldCents += 100;
      const token = await service.api.signIn(world.organization.email, world.organization.password);
      const { agent: shown } = await api.ok("getAgent", 200, { token, id: agent.id });
      expect(shown.spentCents + shown.reservedCents).to.equal(heldCents);
    }
  });

  it("the public port knows nothing of what servers forward", async () => {
    for (const { baseUrl } of services) {
      const { status } = await fetch(`${baseUrl}${FORWARD_PATH}`, { method: "POST", body: "x" });
      expect(status).to.equal(404);
    }
  });

  it("the internal port keeps an idle connection as long as the public one", async () => {
    const { organizationId, projectId } = world.organization;
    const [server] = await world.service.db.collection<ServerDocument>(SERVERS).find().toArray();
    const seals = new ForwardSeals(new Sealer(MASTER_KEY.deriveKeys("server-calls")), Date.now);
    const nothing = { project: { organizationId, projectId }, commands: [] };
    const { sealed: body } = seals.sealCommands(server?._id ?? "", nothing);
    const { headers, status } = await fetch(`${server?.url ?? ""}${FORWARD_PATH}`, { method: "POST", body });
    expect([status, headers.get("keep-alive")]).to.deep.equal([200, "timeout=75"]);
  });

  it("one that stops is left out, and those that remain pay on", async () => {
    const [first, , third] = services;
    if (first === undefined || third === undefined) throw new Error("three run");
    await services.splice(1, 1)[0]?.stop();
    const apis = services.map(({ baseUrl }) => new ContractApi(baseUrl));
    const paid = await Promise.all(
      times(20, (number) =>
        (apis[number % 2] ?? new ContractApi(first.baseUrl)).ok("createPayment", 201, {
          token: agent.key,
          body: cardPayment(),
        }),
      ),
    );
    expect(paid).to.have.length(20);
  });
});
