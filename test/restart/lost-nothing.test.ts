import { Client, Connection } from "@temporalio/client";
import { expect } from "chai";
import { COLLECTIONS } from "../../src/store/documents.ts";
import { type DeliveryDocument, webhookCollections } from "../../src/store/webhook-documents.ts";
import { type Arrival, type Change, compareDelivered } from "../../lab/chaos/audit/delivered.ts";
import { Random } from "../../lab/random.ts";
import { choosePorts } from "../../src/engines/ports.ts";
import { deliveryWorkflowId } from "../../src/messages/delivery.ts";
import { ContractApi } from "../support/contract-api.ts";
import { until } from "../support/process.ts";
import { seed } from "../support/seed.ts";
import { isSoak, shortOrSoak } from "../support/soak.ts";
import { roleEnvironment } from "./support/roles.ts";
import { Tenant } from "./support/tenant.ts";
import { ELSEWHERE, UnrulyReceiver } from "./support/unruly-receiver.ts";
import { type Committed, committedOf } from "./support/webhook-changes.ts";
import { LOAD_POLICY, WebhookLoad } from "./support/webhook-load.ts";
import { WebhookPlace } from "./support/webhook-place.ts";

const EVENTS = shortOrSoak(40, 2_000);
const AGENTS = shortOrSoak(10, 20);
/** What is done to the service while events are made: one after another, each of them at once. */
const KILLS = [["killServer", "killWorker"], ["restartServer"]] as const;
/** Each costs the starts of its processes; the worker alone is the least of them. */
const DISASTERS = isSoak ? ([["killWorker"], ...KILLS] as const) : KILLS;
const TIMES = shortOrSoak(1, 3);
/** Many short waits: a delivery's attempts are not used up before the receiver is well, and last no longer than the test. */
const BACKOFF = Array.from({ length: 8 }, () => "1").join();
/** An attempt whose worker was killed is made again after 40 s. */
const DRAINED_MS = shortOrSoak(150_000, 600_000);
const RUN_MS = shortOrSoak(420_000, 1_800_000);

interface Registered {
  readonly id: string;
  readonly path: string;
  readonly secret: string;
  /** Whether it has asked for such a change, by its scope and types as the test knows them. */
  readonly wants: (change: Pick<Change, "type" | "agentId">, teamId: string) => boolean;
}

describe("Webhooks of a service that is killed, to receivers that fail", function () {
  this.timeout(RUN_MS);

  let env: ReturnType<typeof roleEnvironment>;
  let receiver: UnrulyReceiver;
  let place: WebhookPlace;
  let tenant: Tenant;
  let endpoints: readonly Registered[];
  let committed: Committed;
  let deliveries: readonly DeliveryDocument[] = [];
  let made = 0;

  before(async () => {
    receiver = await UnrulyReceiver.start(seed, ["/calm"]);
    // One port for all servers: sessions are those of a service at its address.
    const { port } = await choosePorts({ port: { port: 0, variable: "PORT" } });
    env = {
      ...roleEnvironment(),
      PORT: String(port),
      WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8",
      WEBHOOK_CA_FILE: receiver.tls.caFile,
      WEBHOOK_BACKOFF_SECONDS: BACKOFF,
    };
    place = await WebhookPlace.start(env);
    tenant = await Tenant.create({ baseUrl: place.baseUrl, mongodbUri: env.MONGODB_URI, env });
    const agents = await setUp();
    const load = new WebhookLoad({
      agents,
      api: () => place.api,
      token: tenant.token,
      random: new Random(seed).fork("load"),
      events: EVENTS,
    });
    await meetDisasters(load);
    made = await load.end();
    receiver.beWell();
    await tenant.withDatabase(async (db) => {
      const { organizationId } = tenant.organization;
      const records = webhookCollections(db).deliveries;
      await until("everything is delivered", DRAINED_MS, async () => {
        const undispatched = await db.collection(COLLECTIONS.events).countDocuments({ isPending: true });
        const pending = await records.countDocuments({ status: "pending" });
        return undispatched + pending === 0 ? true : null;
      });
      committed = await committedOf(db, organizationId);
      deliveries = await records.find({ organizationId }).toArray();
    });
  });
  after(async () => {
    const requests = String(receiver.tls.requests.length);
    const attempts = String(deliveries.reduce((sum, { attemptCount }) => sum + attemptCount, 0));
    process.stdout.write(
      `    seed ${String(seed)}: ${String(made)} events, ${String(deliveries.length)} deliveries, ${attempts} attempts noted, ` +
        `${requests} requests (${receiver.answers}), ${String(place.kills)} kills\n`,
    );
    await place.stop();
    await receiver.tls.close();
  });

  /** Endpoints of every kind, then the agents, so that their creation is told of, too. */
  async function setUp(): Promise<readonly { readonly id: string; readonly apiKey: string }[]> {
    const { token } = tenant;
    const { projectId, teamId } = tenant.organization;
    const api = new ContractApi(place.baseUrl);
    const { team } = await api.ok("createTeam", 201, { token, body: { projectId, name: "Second team" } });
    const register = async (
      path: string,
      fields: Readonly<Record<string, unknown>>,
      wants: Registered["wants"],
    ): Promise<Registered> => {
      const url = new URL(path, receiver.tls.url).toString();
      const body = { name: path, url, eventTypes: ["*"], ...fields };
      const { endpoint, secret } = await api.ok("createWebhook", 201, { token, body });
      return { id: endpoint.id, path, secret, wants };
    };
    const types = ["transaction.denied", "approval.completed"];
    const ofTeam = { scopeType: "team", scopeIds: [team.id] };
    const first = [
      await register("/calm", {}, () => true),
      await register("/all", {}, () => true),
      await register("/team", ofTeam, (_change, its) => its === team.id),
      await register("/types", { eventTypes: types }, ({ type }) => types.includes(type)),
    ];
    const created = await Promise.all(
      Array.from({ length: AGENTS }, (_none, index) =>
        tenant.api.createAgent(token, index % 2 === 0 ? teamId : team.id, { ...LOAD_POLICY }),
      ),
    );
    const agents = created.map(({ agent, apiKey }) => ({ id: agent.id, apiKey }));
    const own = agents[0]?.id ?? "";
    // That it was created is to be told before, so that this endpoint has not asked for it.
    await tenant.withDatabase((db) =>
      until("agents are told of", DRAINED_MS, async () => {
        const undispatched = await db.collection(COLLECTIONS.events).countDocuments({ isPending: true });
        return undispatched === 0 ? true : null;
      }),
    );
    const ofAgent = { scopeType: "agent", scopeIds: [own] };
    const last = await register(
      "/agent",
      ofAgent,
      ({ agentId, type }) => agentId === own && type !== "agent.created",
    );
    endpoints = [...first, last];
    return agents;
  }

  /** One after another, evenly over what is made; each at a moment when a delivery has just arrived. */
  async function meetDisasters(load: WebhookLoad): Promise<void> {
    const disasters = Array.from({ length: TIMES }, () => DISASTERS).flat();
    for (const [index, disaster] of disasters.entries()) {
      await load.untilMade((EVENTS * (index + 1)) / (disasters.length + 1));
      await receiver.nextRequest();
      await Promise.all(disaster.map((each) => place[each]()));
    }
  }

  const arrivalsAt = ({ path, secret }: Registered): readonly Arrival[] => receiver.arrivalsAt(path, secret);

  it("what the records say and what the audit log says agree, and it is as much as was done", () => {
    expect(committed.contradictions).to.deep.equal([]);
    expect(made).to.be.at.least(EVENTS);
    // A create that was answered 503 and comes again makes another agent.
    expect(committed.teamOf.size).to.be.at.least(AGENTS);
    expect(committed.changes).to.have.lengthOf(made + committed.teamOf.size);
  });

  it(`each endpoint got each change that it asked for, once by id (TEST_SEED=${String(seed)})`, () => {
    for (const endpoint of endpoints) {
      const asked = committed.changes.filter((change) =>
        endpoint.wants(change, committed.teamOf.get(change.agentId) ?? ""),
      );
      const entries = deliveries
        .filter(({ endpointId }) => endpointId === endpoint.id)
        .map(({ _id: id, status }) => ({ id, status }));
      expect(asked, endpoint.path).not.to.deep.equal([]);
      expect(compareDelivered(asked, arrivalsAt(endpoint), entries), endpoint.path).to.deep.equal([]);
    }
  });

  it("nothing came that was outside an endpoint's scope and types, or where it was redirected to", () => {
    for (const endpoint of endpoints) {
      const foreign = arrivalsAt(endpoint).filter((arrival) => !endpoint.wants(arrival, arrival.teamId));
      expect(foreign, endpoint.path).to.deep.equal([]);
    }
    const paths = new Set(receiver.tls.requests.map(({ path }) => path));
    expect([...paths].toSorted()).to.deep.equal(endpoints.map(({ path }) => path).toSorted());
    expect(paths.has(ELSEWHERE)).to.equal(false);
  });

  it("receivers failed and were tried again, and no endpoint was disabled or counts failures", async () => {
    const requests = receiver.tls.requests.length;
    expect(requests).to.be.greaterThan(deliveries.length * 1.1);
    // What was sent and never written down was sent again.
    const noted = deliveries.reduce((sum, { attemptCount }) => sum + attemptCount, 0);
    expect(requests).to.be.at.least(noted);
    const found = await tenant.withDatabase((db) => webhookCollections(db).endpoints.find({}).toArray());
    expect(
      found.map(({ consecutiveFailures, isActive }) => ({ consecutiveFailures, isActive })),
    ).to.deep.equal(endpoints.map(() => ({ consecutiveFailures: 0, isActive: true })));
  });

  it("deliveries of an agent's changes of state were started in their order, and each has ended", async () => {
    const connection = await Connection.connect({ address: env["TEMPORAL_ADDRESS"] ?? "" });
    try {
      const client = new Client({ connection, namespace: env["TEMPORAL_NAMESPACE"] ?? "" });
      const query = `TaskQueue = "${env["TEMPORAL_TASK_QUEUE"] ?? ""}" AND WorkflowType = "delivery"`;
      await until("all deliveries have ended", DRAINED_MS, async () => {
        const { count } = await client.workflow.count(`${query} AND ExecutionStatus = "Running"`);
        return count === 0 ? true : null;
      });
      const startOf = new Map<string, number>();
      for await (const { startTime, workflowId } of client.workflow.list({ query }))
        startOf.set(workflowId, startTime.getTime());
      expect(startOf.size).to.equal(deliveries.length);
      const [calm] = endpoints;
      if (calm === undefined) throw new Error("there is a calm endpoint");
      const states = arrivalsAt(calm).filter(({ type }) => /paused|resumed/.test(type));
      const started = ({ deliveryId }: Arrival): number =>
        startOf.get(deliveryWorkflowId({ deliveryId, run: 1 })) ?? 0;
      for (const agentId of committed.teamOf.keys()) {
        const own = states
          .filter((arrival) => arrival.agentId === agentId)
          .toSorted((one, other) => one.createdAt.localeCompare(other.createdAt));
        const starts = own.map(started);
        expect(starts, agentId).to.deep.equal(starts.toSorted((one, other) => one - other));
      }
    } finally {
      await connection.close();
    }
  });
});
