import { connect } from "node:net";
import { expect } from "chai";
import { ContractApi } from "../support/contract-api.ts";
import { Api, onceReachable } from "../support/api.ts";
import { timed } from "../support/in-time.ts";
import { type Child, until } from "../support/process.ts";
import { isSoak, shortOrSoak, someOrAll } from "../support/soak.ts";
import { Load, pay, replay } from "./support/load.ts";
import { roleEnvironment, Roles } from "./support/roles.ts";
import { Tenant } from "./support/tenant.ts";

/** End of each log in a failure. */
const LOGGED_CHARACTERS = 2_000;

const SWEPT_MS = 120_000;
const ANSWERED_MS = 5_500;
/** What is promised is 3 s; the rest is for the payments by which it is noticed. */
const GOES_ON_MS = 3_250;
const AGENTS = 20;
/** Before a kill, and after it. */
const PAID = shortOrSoak(15, 40);

describe("Servers and workers as processes of their own", () => {
  const env = roleEnvironment();
  const roles = new Roles({ ...env, METRICS_PORT: "0", DRAIN_SECONDS: "10", LOG_LEVEL: "warn" });
  let worker: Child;
  let apis: readonly Api[];
  let baseUrls: readonly string[];
  let tenant: Tenant;

  before(async () => {
    const [servers, started] = await Promise.all([
      Promise.all([roles.startServer(), roles.startServer()]),
      roles.startWorker(),
    ]);
    worker = started;
    baseUrls = servers.map(({ baseUrl }) => baseUrl);
    apis = servers.map(({ baseUrl }) => new Api(baseUrl));
    tenant = await Tenant.create({ baseUrl: servers[0].baseUrl, mongodbUri: env.MONGODB_URI, env });
  });
  after(async () => {
    await roles.stop();
  });

  it("METRICS_PORT: workers and servers answer probes there, and metrics nowhere else", async () => {
    for (const child of roles.children) {
      const [, address = ""] = await child.printed(/^ {2}Metrics +(http\S+)\/metrics$/m, SWEPT_MS);
      const statuses = async (...paths: readonly string[]) =>
        Promise.all(paths.map(async (path) => (await fetch(`${address}${path}`)).status));
      expect(await statuses("/healthz", "/readyz", "/metrics")).to.deep.equal([200, 200, 200]);
      expect(await statuses("/", "/v1/agents", "/mcp", "/docs")).to.deep.equal([404, 404, 404, 404]);
      const metrics = await (await fetch(`${address}/metrics`)).text();
      expect(metrics).to.include('spending_control_queue_length{queue="agent_commands"} 0');
    }
    for (const baseUrl of baseUrls) {
      expect((await fetch(`${baseUrl}/healthz`)).status).to.equal(200);
      expect((await fetch(`${baseUrl}/metrics`)).status).to.equal(404);
    }
  });

  it("two servers at once against one agent: never past its budget, and one payment for one key", async () => {
    const { agent, apiKey } = await tenant.createAgent({ budgetCents: 3_000 });
    const keys = Array.from({ length: 40 }, (_none, index) => `key ${index}`);
    // Each key goes to both servers at the same moment.
    const sent = await Promise.all(
      keys.flatMap((key) => apis.map((api) => onceReachable(() => pay(api, apiKey, key, 100)))),
    );
    expect(sent.filter(({ transactionId }) => transactionId === null)).to.deep.equal([]);
    expect(new Set(sent.map(({ transactionId }) => transactionId)).size).to.equal(40);
    await tenant.expectTotals(agent.id, { spentCents: 3_000, reservedCents: 0 }, SWEPT_MS);
    await tenant.expectBooksToAgree(SWEPT_MS);
  });

  const capsOfMany = async () => {
    const { token } = tenant;
    const api = new ContractApi(baseUrls[0] ?? "");
    const { project } = await api.ok("createProject", 201, { token, body: { name: "Capped" } });
    const teamIds: string[] = [];
    for (let index = 0; index < 5; index += 1) {
      const body = { name: "Team", projectId: project.id };
      teamIds.push((await api.ok("createTeam", 201, { token, body })).team.id);
    }
    const agents = await Promise.all(
      Array.from({ length: AGENTS }, async (_none, index) => {
        const teamId = teamIds[index % 5] ?? "";
        const { apiKey } = await tenant.api.createAgent(token, teamId, { budgetCents: 100_000 });
        return { apiKey, teamId };
      }),
    );
    // The first two teams meet their own cap, all together their project's.
    const teams = teamIds.map((teamId, index) => ({ teamId, capCents: index < 2 ? 700 : null }));
    const body = { capCents: 3_000, teams, version: 1 };
    await api.ok("setProjectBudget", 200, { token, id: project.id, body });
    const sent = await Promise.all(
      agents.flatMap(({ apiKey, teamId }, agent) =>
        Array.from({ length: 12 }, async (_none, index) => {
          const server = apis[(agent + index) % apis.length] ?? tenant.api;
          const paid = await onceReachable(() => pay(server, apiKey, `capped ${index}`, 100));
          const { status, transactionId } = paid;
          // 200: the payment of an earlier request that was answered 503.
          expect(status).to.be.oneOf([200, 201]);
          expect(transactionId).not.to.equal(null);
          return { apiKey, teamId, transactionId: transactionId ?? "" };
        }),
      ),
    );
    const spent = new Map<string, number>();
    for (const { apiKey, teamId, transactionId } of sent) {
      const { transaction } = await tenant.api.payment(apiKey, transactionId);
      if (transaction.status === "approved") spent.set(teamId, (spent.get(teamId) ?? 0) + 100);
      else expect(transaction.denialCode).to.be.oneOf(["TEAM_CAP_EXCEEDED", "PROJECT_CAP_EXCEEDED"]);
    }
    expect([...spent.values()].reduce((total, cents) => total + cents, 0)).to.equal(3_000);
    for (const teamId of teamIds.slice(0, 2)) expect(spent.get(teamId) ?? 0).to.be.at.most(700);
    await until("the records have followed", SWEPT_MS, async () => {
      const { usage } = await api.ok("getProjectBudget", 200, { token, id: project.id });
      expect(usage).to.deep.equal({ spentCents: 3_000, reservedCents: 0, remainingCents: 0, increases: [] });
      return true;
    });
    await tenant.expectBooksToAgree(SWEPT_MS);
  };
  // The ledger is the same whichever server asks it: payments at once under a cap are tried on one.
  if (isSoak)
    it(
      `two servers, ${AGENTS} agents in 5 teams, caps at both levels: each used to the cent, never past`,
      capsOfMany,
    );

  it("kill -9 of the worker under load: all are answered, a new one goes on, replays settle", async () => {
    const agents = await Promise.all([tenant.createAgent({ budgetCents: 100_000 }), tenant.createAgent()]);
    const apiKeys = agents.map(({ apiKey }) => apiKey);
    const load = new Load({ apiKeys, apis, clients: 6, name: "worker" });
    await load.untilPaid(PAID);
    await worker.end("SIGKILL");
    worker = await roles.startWorker();
    await load.untilPaid(PAID);
    const sent = await load.stop();
    const odd = sent.filter(({ ms, status }) => (status !== 201 && status !== 503) || ms > ANSWERED_MS);
    expect(odd).to.deep.equal([]);
    for (const api of apis) await replay(api, sent);
    await tenant.expectBooksToAgree(SWEPT_MS);
  });

  const moments = [
    { when: "under load", clients: 6 },
    { when: "between two payments", clients: 1 },
  ];
  for (const { clients, when } of someOrAll(moments, 1)) {
    it(`kill -9 of one of two workers ${when}: payments go on within 3 s`, async () => {
      const agents = await Promise.all([tenant.createAgent({ budgetCents: 100_000 }), tenant.createAgent()]);
      const apiKeys = agents.map(({ apiKey }) => apiKey).slice(0, clients);
      const load = new Load({ apiKeys, apis, clients, name: `stand-by ${clients}`, comeAgain: true });
      await load.untilPaid(10);
      // The ledger is in the cache of the worker that was there before.
      const standBy = await roles.startWorker();
      await load.untilPaid(10);
      await worker.end("SIGKILL");
      worker = standBy;
      // Each client's payment that was under way may have been decided before, and is only answered now.
      const { ownMs } = await timed(load.untilPaid(2 * clients + 1));
      await load.stop();
      expect(ownMs).to.be.below(GOES_ON_MS);
    });
  }

  /** A call at the second server that waits for a payment which is held, and has reached it. */
  async function waitingAtSecond() {
    const { apiKey } = await tenant.createAgent({ autoApprovalThresholdCents: 0 });
    const { approval, transaction } = await tenant.api.pay(apiKey, { amountCents: 500 });
    const [, second = ""] = baseUrls;
    const request = { token: apiKey, id: transaction.id, query: { waitSeconds: "45" } };
    // The second server has met the key before, so that the call that waits depends on no worker.
    await new ContractApi(second).ok("getPayment", 200, { token: apiKey, id: transaction.id });
    const answered = new ContractApi(second).okAtOnce("getPayment", 200, request);
    return { answered, approvalId: approval?.id ?? "" };
  }

  it("a call that waits at one server is answered when the other, or a worker, decides", async () => {
    const { answered, approvalId } = await waitingAtSecond();
    expect(await tenant.approve(approvalId)).to.equal("approved");
    expect((await answered).transaction.status).to.equal("approved");
  });

  it("SIGTERM: calls that wait are answered as it is, servers and workers end with 0", async () => {
    const running = roles.children.filter((child) => child.running);
    expect(running).to.have.lengthOf(3);
    const { answered } = await waitingAtSecond();
    // The server has it once it has answered what came after it.
    await onceReachable(() => new Api(baseUrls[1] ?? "").call("GET", "/v1/openapi.json"));
    const [first = ""] = baseUrls;
    const unfinished = connect(Number(new URL(first).port), "127.0.0.1").on("error", () => undefined);
    unfinished.write("POST /v1/auth/sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n");
    unfinished.write("Content-Type: application/json\r\n\r\n{");
    await onceReachable(() => new Api(first).call("GET", "/v1/openapi.json"));
    const exits = await Promise.all(running.map((child) => child.end("SIGTERM")));
    const last = running.map(({ stdout }) => stdout.slice(-LOGGED_CHARACTERS)).join("\n");
    expect(exits, last).to.deep.equal(running.map(() => ({ code: 0, signal: null })));
    expect((await answered).transaction.status).to.equal("pending");
    const cut = roles.children.filter(({ stdout }) => /"requests":1,.*requests were cut off/.test(stdout));
    expect(cut, "what outlasts the drain is told of").to.have.lengthOf(1);
  });
});
