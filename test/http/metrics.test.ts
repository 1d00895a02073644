import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { MongoClient } from "mongodb";
import { z } from "zod";
import { Metrics } from "../../src/metrics/metrics.ts";
import { countsByRail, OLDEST_PENDING_EVENT, registerOpenWork } from "../../src/metrics/open-work.ts";
import { collectionsOf } from "../../src/store/collections.ts";
import { PACKAGE_ROOT } from "../../src/lib/package-root.ts";
import { McpCaller } from "../mcp/support.ts";
import { startTestService, type TestService } from "../support/service.ts";
import {
  cardPayment,
  newEndpoint,
  newWorld,
  organizationKey,
  testDelivery,
  type TestAgent,
  type TestOrganizationKey,
  times,
  until,
  type World,
} from "../support/world.ts";

const OWN = "spending_control_";

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** As prom-client keeps a metric. */
const labelled = z.object({ labelNames: z.array(z.string()).default([]) });

const SAMPLE = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/;

/** The product's own samples of a text in the format of Prometheus. */
function samplesIn(text: string): Sample[] {
  return text.split("\n").flatMap((line) => {
    const [, name = "", labels = "", value = ""] = SAMPLE.exec(line) ?? [];
    if (!name.startsWith(OWN)) return [];
    const pairs = [...labels.matchAll(/([a-z_]+)="([^"]*)"/g)].map(([, key = "", said = ""]) => [key, said]);
    return [{ name: name.slice(OWN.length), labels: Object.fromEntries(pairs), value: Number(value) }];
  });
}

const phase = (name: string) =>
  ["payment_phase_duration_seconds_count", { rail: "card", phase: name }] as const;

describe("metrics", () => {
  let service: TestService;
  let world: World;
  let agent: TestAgent;
  let limited: TestOrganizationKey;
  /** Whose next projection fails, so that only its actor's sweep can write it. */
  let unwritten = "";
  let aheadMs = 0;
  let fixedAt: number | null = null;

  before(async () => {
    service = await startTestService({
      clock: () => new Date(fixedAt ?? Date.now() + aheadMs),
      decorateEffects: (plain) => ({
        ...plain,
        projections: {
          ...plain.projections,
          async writePayment(profile, payment) {
            if (payment.request.purpose !== unwritten)
              return plain.projections.writePayment(profile, payment);
            unwritten = "";
            throw new Error("not written, as the test wants it");
          },
        },
      }),
    });
    world = await newWorld(service);
    agent = await world.agent({ autoApprovalThresholdCents: 500, budgetCents: 2_000 });
    limited = await organizationKey(world, { dailyCreateLimit: 1 });
  });
  after(() => service.stop());

  const scraped = async () => samplesIn(await (await fetch(`${service.baseUrl}/metrics`)).text());

  /** The sum over all samples with these labels; 0 where there is none. */
  async function read(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> {
    const wanted = Object.entries(labels);
    return (await scraped())
      .filter((one) => one.name === name && wanted.every(([key, value]) => one.labels[key] === value))
      .reduce((sum, { value }) => sum + value, 0);
  }

  /** By how much each rises while something is done; what is counted after the answer is waited for. */
  async function rises(
    expected: readonly (readonly [name: string, labels: Readonly<Record<string, string>>, by: number])[],
    work: () => Promise<unknown>,
  ): Promise<void> {
    const before = await Promise.all(expected.map(([name, labels]) => read(name, labels)));
    await work();
    for (const [index, [name, labels, by]] of expected.entries()) {
      const wanted = (before[index] ?? 0) + by;
      await until(`${name} ${JSON.stringify(labels)} is ${wanted}`, async () =>
        (await read(name, labels)) === wanted ? wanted : null,
      );
    }
  }

  it("names, kinds and labels are those that docs/metrics.md lists, by Prometheus' conventions", async () => {
    const text = await readFile(join(PACKAGE_ROOT, "docs", "metrics.md"), "utf8");
    const rows = [...text.matchAll(/^\| `(spending_control_\w+)` +\| (\w+) +\| ([^|]*)\|/gm)];
    const listed = rows.map(([, name = "", kind = "", labels = ""]) => ({
      name,
      kind,
      labels: labels.match(/[a-z_]+/g) ?? [],
    }));
    const metrics = new Metrics();
    registerOpenWork({ collections: collectionsOf(service.db), metrics, clock: () => new Date() });
    metrics.waitingCalls(() => 0);
    metrics.openStreams(() => 0);
    metrics.ledgerFills(() => []);
    metrics.engines(() => Promise.resolve([]));
    metrics.blockedProjects(() => []);
    metrics.missingOnChainSince(
      () => null,
      () => new Date(),
    );
    const declared = (await metrics.registry.getMetricsAsJSON())
      .filter(({ name }) => name.startsWith(OWN))
      .map(({ name, type }) => {
        const { labelNames } = labelled.parse(metrics.registry.getSingleMetric(name));
        return { name, kind: String(type), labels: [...labelNames] };
      });
    expect(listed).to.have.deep.members(declared);
    for (const { kind, name } of declared) {
      expect(name.endsWith("_total"), name).to.equal(kind === "counter");
      if (/duration|age/.test(name)) expect(name).to.match(/_seconds$/);
    }
  });

  it("what alerts watch is there at 0 before anything has happened", async () => {
    const samples = samplesIn(await new Metrics().registry.metrics());
    for (const [name, labels] of [
      ["forged_total", { what: "payload" }],
      ["refusals_total", { surface: "rest", code: "SERVICE_UNAVAILABLE" }],
      ["sweeps_total", { what: "payment", result: "failed" }],
      ["rail_calls_total", { rail: "card", call: "settle", result: "no_answer" }],
      ["payments_total", { rail: "wallet", status: "denied", denial_code: "BUDGET_EXCEEDED" }],
      ["mails_total", { outcome: "unsent" }],
      ["chain_repairs_total", { what: "foreign_nonce" }],
      ["shed_payments_total", { reason: "overload" }],
    ] as const) {
      expect(samples).to.deep.include({ name, labels, value: 0 });
    }
    // A project's id as a label has no value before there is a project.
    expect(samples.filter(({ value }) => value !== 0 && !Number.isNaN(value))).to.deep.equal([]);
  });

  it("a project that waits for an operator is counted by its reason", async () => {
    const metrics = new Metrics();
    metrics.blockedProjects(() => [{ projectId: "prj_1", reason: "stale_ledger" }]);
    const counted = samplesIn(await metrics.registry.metrics()).filter(
      ({ name }) => name === "blocked_projects",
    );
    expect(counted).to.have.deep.members([
      { name: "blocked_projects", labels: { reason: "ledger_lost" }, value: 0 },
      { name: "blocked_projects", labels: { reason: "stale_ledger" }, value: 1 },
      { name: "blocked_projects", labels: { reason: "stale_records" }, value: 0 },
    ]);
  });

  it("requests by operation, surface and status, timed; refusals by their code, of tools too", async () => {
    const mcp = await McpCaller.connect(service.baseUrl, agent.key);
    const listed = { operation: "listPayments" };
    await rises(
      [
        ["requests_total", { ...listed, surface: "rest", status: "200" }, 2],
        ["requests_total", { ...listed, surface: "rest", status: "401" }, 1],
        ["requests_total", { ...listed, surface: "mcp", status: "200" }, 1],
        ["requests_total", { surface: "rest", operation: "none", status: "404" }, 1],
        ["request_duration_seconds_count", { ...listed, surface: "rest" }, 3],
        ["refusals_total", { surface: "rest", code: "UNAUTHORIZED" }, 1],
        ["refusals_total", { surface: "mcp", code: "NOT_FOUND" }, 1],
      ],
      async () => {
        for (const token of [agent.key, agent.key]) await world.api.ok("listPayments", 200, { token });
        await world.api.refused("listPayments", 401, "UNAUTHORIZED", { token: "nobody" });
        await mcp.call("list_payments");
        await mcp.refused("get_payment", "NOT_FOUND", { transactionId: `txn_${"0".repeat(26)}` });
        await fetch(`${service.baseUrl}/v1/nowhere`);
      },
    );
    await mcp.close();
  });

  it("payments by rail, status and denial code, each phase timed, and what the rail answered", async () => {
    await rises(
      [
        ["payments_total", { rail: "card", status: "approved", denial_code: "none" }, 2],
        ["payments_total", { status: "denied", denial_code: "BUDGET_EXCEEDED" }, 1],
        ["payments_total", { status: "failed", denial_code: "CARD_DECLINED" }, 1],
        ["rail_calls_total", { rail: "card", call: "send", result: "settled" }, 2],
        ["rail_calls_total", { rail: "card", call: "send", result: "failed" }, 1],
        [...phase("lookup"), 4],
        [...phase("decision"), 4],
        [...phase("rail"), 3],
        [...phase("record"), 4],
      ],
      async () => {
        await agent.payAtOnce();
        const body = cardPayment();
        await world.api.ok("createPayment", 201, { token: agent.key, body });
        await agent.payAtOnce({ amountCents: 5_000 });
        await agent.payAtOnce({ merchant: "sandbox-decline" });
      },
    );
  });

  it("a replay counts as a request, and no payment again", async () => {
    const body = cardPayment({ amountCents: 1 });
    await world.api.ok("createPayment", 201, { token: agent.key, body });
    await rises(
      [
        ["requests_total", { operation: "createPayment", status: "200" }, 3],
        ["payments_total", {}, 0],
      ],
      async () => {
        for (const _again of times(3, String)) {
          await world.api.ok("createPayment", 200, { token: agent.key, body });
        }
      },
    );
  });

  it("payments on hold: counted once, open until they are decided, and the oldest one's age", async () => {
    expect(await read("oldest_approval_age_seconds")).to.equal(0);
    const held = { rail: "card", state: "held" };
    let approvalId = "";
    await rises(
      [
        ["payments_total", { status: "held", denial_code: "none" }, 2],
        ["open_payments", held, 2],
        ["open_payments", { state: "in_flight" }, 0],
      ],
      async () => {
        ({ approvalId } = await agent.hold({ amountCents: 501 }));
        await agent.hold({ amountCents: 502 });
      },
    );
    const { projectId: project } = world.organization;
    for (const bound of ["state_bytes", "open_payments"])
      await until(`${bound} of the ledger`, async () =>
        (await read("ledger_fill_ratio", { project, bound })) > 0 ? true : null,
      );
    aheadMs += 600_000;
    expect(await read("oldest_approval_age_seconds")).to.be.within(600, 720);
    await rises(
      [
        ["payments_total", { status: "denied", denial_code: "APPROVAL_DENIED" }, 1],
        ["open_payments", held, -1],
      ],
      () =>
        world.api.ok("denyApproval", 200, { token: world.token, id: approvalId, body: { feedback: "no" } }),
    );
  });

  it("what is open is counted by indexes alone, however much there ever was", async () => {
    for (const [name, pipeline] of [
      ["transactions", countsByRail({ status: "pending" })],
      ["approvals", countsByRail({ state: "pending" })],
      ["events", OLDEST_PENDING_EVENT],
    ] as const) {
      const plan = await service.db.collection(name).aggregate(pipeline).explain("queryPlanner");
      const text = JSON.stringify(plan);
      expect(text, name)
        .to.include("IXSCAN")
        .and.not.to.match(/COLLSCAN|FETCH/);
    }
  });

  it("attempts to deliver webhooks, timed, by whether they were acknowledged", async () => {
    const count = "webhook_attempt_duration_seconds_count";
    await rises(
      [
        [count, { result: "failed" }, 1],
        [count, { result: "acknowledged" }, 0],
      ],
      async () => void (await testDelivery(world, await newEndpoint(world))),
    );
  });

  it("the age of the oldest event that is still pending", async () => {
    const soon = Date.now() + aheadMs + 3_600_000;
    const metrics = new Metrics();
    registerOpenWork({
      collections: collectionsOf(service.db),
      metrics,
      clock: () => new Date(soon + 60_000),
    });
    // It lies in the future of the service, which leaves it alone.
    const events = ["younger", "oldest"].map((name, index) => ({
      _id: name,
      type: "agent.paused" as const,
      organizationId: `of-${name}`,
      projectId: null,
      teamId: null,
      agentId: null,
      agentName: null,
      createdAt: new Date(soon - index * 30_000),
      data: {},
      isPending: true as const,
      proof: "",
    }));
    const journal = collectionsOf(service.db).events;
    await journal.insertMany(events);
    const samples = samplesIn(await metrics.registry.metrics());
    await journal.deleteMany({ _id: { $in: events.map(({ _id }) => _id) } });
    expect(samples.find(({ name }) => name === "oldest_pending_event_age_seconds")?.value).to.equal(90);
  });

  it("who is over a limit, by which one: an address, an operation, a key, a day's creates", async () => {
    // Within one minute of the limits' clock.
    fixedAt = Date.now() + aheadMs;
    const small = await service.organization({ plan: "enterprise", restPerMinute: 3, mcpPerMinute: 2 });
    const read7 = () =>
      Promise.all(
        times(7, () =>
          fetch(`${service.baseUrl}/v1/auth/me`, { headers: { authorization: `Bearer ${small.token}` } }),
        ),
      );
    await rises([["limit_hits_total", { limit: "rest" }, 4]], read7);
    await rises([["limit_hits_total", { limit: "daily_creates" }, 1]], async () => {
      for (const name of ["One", "Two"]) {
        const body = { name, idempotencyKey: randomUUID() };
        await world.api.call("createProject", { token: limited.token, body });
      }
    });
    const signIns = 11;
    await rises(
      [
        ["limit_hits_total", { limit: "operation" }, 1],
        ["refusals_total", { code: "RATE_LIMITED" }, 1],
      ],
      () =>
        Promise.all(
          times(signIns, () =>
            world.api.call("signIn", { body: { email: "nobody@example.com", password: "wrong password" } }),
          ),
        ),
    );
    await rises([["limit_hits_total", { limit: "address" }, 10]], () =>
      Promise.all(
        times(110, () => fetch(`${service.baseUrl}/v1/none`, { headers: { "x-forwarded-for": "10.1.2.3" } })),
      ),
    );
  });

  afterEach(() => {
    fixedAt = null;
  });

  it("what is unconfirmed is swept by its actor, and counted", async () => {
    unwritten = "swept";
    await rises([["sweeps_total", { what: "payment", result: "done" }, 1]], async () => {
      await world.api.call("createPayment", {
        token: agent.key,
        body: cardPayment({ amountCents: 1, purpose: unwritten }),
      });
    });
  });

  it("the lengths of all queues are there, and zero when nothing is under way", async () => {
    const queues = (await scraped()).filter(({ name }) => name === "queue_length");
    expect(queues.map(({ labels }) => labels["queue"])).to.have.members([
      "agent_commands",
      "audit_entries",
      "ledger_commands",
      "events",
      "records",
    ]);
    await until("nothing waits", async () => ((await read("queue_length")) === 0 ? true : null));
  });

  it("hold Node's own once a process, since what collects them never ends", () => {
    const [first, second] = [new Metrics(), new Metrics()];
    const own = first.registry.getMetricsAsArray().filter(({ name }) => name.startsWith("nodejs_"));
    expect(own.map(({ name }) => name)).to.include.members([
      "nodejs_gc_duration_seconds",
      "nodejs_eventloop_lag_seconds",
    ]);
    for (const { name } of own) {
      expect(second.registry.getSingleMetric(name), name).to.equal(first.registry.getSingleMetric(name));
    }
  });

  it("where MongoDB does not answer, its gauges are left out and everything else is told", async () => {
    const metrics = new Metrics();
    const nowhere = new MongoClient("mongodb://127.0.0.1:1/none", { serverSelectionTimeoutMS: 3_000 });
    const collections = collectionsOf(nowhere.db());
    registerOpenWork({ collections, metrics, clock: () => new Date() });
    const names = new Set(samplesIn(await metrics.registry.metrics()).map(({ name }) => name));
    expect(names.has("open_payments") || names.has("oldest_approval_age_seconds")).to.equal(false);
    expect(await metrics.registry.metrics()).to.match(/^process_cpu_seconds_total \d/m);
    await nowhere.close();
  });
});
