import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { z } from "zod";
import { requiredSetting } from "../support/shared-engines.ts";
import { cardPayment, type TestAgent, until, type World } from "../support/world.ts";
import { endpointAt, openScene, type Scene, worldIn } from "../webhooks/support.ts";

const span = z.object({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().optional(),
  name: z.string(),
  links: z.array(z.object({ traceId: z.string() })).optional(),
});
const exported = z.object({
  resourceSpans: z.array(z.object({ scopeSpans: z.array(z.object({ spans: z.array(span) })) })),
});
type Span = z.output<typeof span>;

/** The caller's trace, and its span. */
const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER = "00f067aa0ba902b7";
const PURPOSE = "a purpose that belongs into no trace";

describe("traces", () => {
  let collector: Server;
  let scene: Scene;
  let world: World;
  let agent: TestAgent;
  const bodies: string[] = [];
  let spans: readonly Span[] = [];
  let told = "";
  let transactionId = "";
  let metrics = { type: "", text: "" };

  before(async () => {
    collector = createServer((request, response) => {
      void (async () => {
        bodies.push(Buffer.concat(await request.toArray()).toString("utf8"));
        response.setHeader("content-type", "application/json").end("{}");
      })();
    }).listen(0, "127.0.0.1");
    await once(collector, "listening");
    const address = collector.address();
    const port = typeof address === "object" ? (address?.port ?? 0) : 0;
    scene = await openScene(undefined, { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${String(port)}` });
    world = await worldIn(scene);
    await endpointAt(world, scene.receiver, "/traced");
    agent = await world.agent();
    const headers = { traceparent: `00-${TRACE}-${CALLER}-01` };
    const body = cardPayment({ purpose: PURPOSE });
    const paid = await world.api.ok("createPayment", 201, { token: agent.key, body, headers });
    transactionId = paid.transaction.id;
    const delivered = await until("the payment's delivery", () => {
      const { requests } = scene.receiver;
      const found = requests.find(({ body: text }) => text.toString("utf8").includes(transactionId));
      return Promise.resolve(found ?? null);
    });
    told = String(delivered.headers["traceparent"]);
    const answered = await fetch(new URL("/metrics", scene.service.baseUrl));
    metrics = { type: answered.headers.get("content-type") ?? "", text: await answered.text() };
    await scene.service.stop();
    spans = bodies.flatMap((text) =>
      exported
        .parse(JSON.parse(text))
        .resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)),
    );
  });
  after(async () => {
    await scene?.receiver.close();
    collector?.close();
  });

  const named = (name: string): Span[] => spans.filter((each) => each.name === name);

  it("a payment is one trace from its caller's request to its webhook's receiver", () => {
    const own = spans.filter(({ traceId }) => traceId === TRACE);
    const names = own.map(({ name }) => name);
    expect(names).to.include.members([
      "createPayment",
      "payment decision",
      "ledger command",
      "payment rail",
      "payment record",
      "webhook",
    ]);
    expect(own.find(({ name }) => name === "createPayment")?.parentSpanId).to.equal(CALLER);
    const ids = new Set([CALLER, ...own.map(({ spanId }) => spanId)]);
    for (const { name, parentSpanId } of own) expect(ids, name).to.include(parentSpanId);
    expect(told).to.match(new RegExp(`^00-${TRACE}-`));
  });

  it("an update of a ledger belongs to its command's trace, or is linked to each of them", () => {
    const updates = named("ledger update");
    const ofPayment = updates.filter(
      ({ links = [], traceId }) => traceId === TRACE || links.some((link) => link.traceId === TRACE),
    );
    expect(ofPayment).to.have.lengthOf.above(0);
    expect(spans.some(({ name }) => name.startsWith("activity "))).to.equal(true);
  });

  it("the request's log line leads to its trace", async () => {
    const file = join(
      requiredSetting("TEST_LOG_DIR"),
      `${scene.service.env["TEMPORAL_TASK_QUEUE"] ?? ""}.log`,
    );
    const lines = (await readFile(file, "utf8")).split("\n");
    const line = lines.find((each) => each.includes('"createPayment"'));
    expect(JSON.parse(line ?? "{}")).to.include({ trace_id: TRACE });
  });

  it("a payment's duration leads to its trace, by an exemplar in the format of OpenMetrics", () => {
    const { text, type } = metrics;
    expect(type).to.match(/^application\/openmetrics-text; version=1\.0\.0/);
    expect(text).to.match(/# EOF\s*$/);
    const exemplar = `# {trace_id="${TRACE}"}`;
    const found = text.split("\n").filter((line) => line.includes(exemplar));
    for (const phase of ["decision", "rail", "record"])
      expect(text).to.match(
        new RegExp(`_bucket\\{[^}]*phase="${phase}"\\} \\d+ # \\{trace_id="${TRACE}"\\}`),
      );
    expect(found.some((line) => line.includes('operation="createPayment"'))).to.equal(true);
  });

  it("nothing that an agent wrote, and no key, is in what was exported", () => {
    const all = bodies.join("\n");
    for (const hidden of [PURPOSE, agent.key, world.token]) expect(all).not.to.include(hidden);
  });
});
