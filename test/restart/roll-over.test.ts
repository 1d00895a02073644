import { createOrganizationOn } from "../../server/admin/create-organization.ts";
import { mcOf } from "../../src/domain/money.ts";
import { expect } from "chai";
import { judge } from "../../src/domain/ledger/judge.ts";
import { packLedger } from "../../src/domain/ledger/pack.ts";
import { type Account, newLedger } from "../../src/domain/ledger/state.ts";
import {
  SNAPSHOT_QUERY,
  type AccountSnapshot,
  type SnapshotPage,
  LEDGER_SETTINGS,
  LEDGER_WORKFLOW,
  type LedgerInput,
  ledgerWorkflowId,
} from "../../src/messages/ledger.ts";
import { accessProofsIn } from "../support/access-proofs.ts";
import { sharedService, testPasswords, type TestService } from "../support/service.ts";
import { until } from "../support/process.ts";
import { shortOrSoak } from "../support/soak.ts";
import { Load, replay } from "./support/load.ts";
import { Tenant } from "./support/tenant.ts";

const CLIENTS = shortOrSoak(12, 24);
/** Every fifth request of a client is a retry of an earlier one, by this client or another. */
const RETRY_EVERY = 5;
/** Mostly enough that several roll-overs fall into them. */
const PAYMENTS = shortOrSoak(200, 3_000);
/** Where the machine is busy more of them come together in an update, which is fewer events: then as many again. */
const ROUNDS_MAX = 4;
/** Their idempotency keys are forgotten before the others are paid. */
const FORGOTTEN = shortOrSoak(20, 50);
const EVENTS_PER_RUN = shortOrSoak(20, 40);
const ROLL_OVERS_MIN = 4;
/** Of the first and of the last payments. */
const REPLAYED = shortOrSoak(30, 100);
const LOAD_MS = 400_000;
/** What a payment may take where the machine is not busy, and how many times the usual one where it is. */
const SLOWEST_MS = 1_000;
const SLOWEST_TIMES = 5;
const SWEPT_MS = 120_000;

/** Above every revision that the ledger before it has come to. */
const FAR_AHEAD = 1_000_000;

describe("A ledger that rolls over under load", function () {
  this.timeout(900_000);
  let service: TestService;
  let tenant: Tenant;

  before(async () => {
    service = await sharedService();
    const { baseUrl, connections, env } = service;
    const { mongodbUri } = connections.addresses;
    const passwords = await testPasswords(service.db);
    tenant = await Tenant.create({ baseUrl, env, mongodbUri }, (input) =>
      createOrganizationOn(connections, accessProofsIn(env), input, "command", passwords),
    );
  });

  const handle = (projectId: string) =>
    service.connections.temporal.workflow.getHandle(ledgerWorkflowId(projectId));

  /** The account once all that was paid is closed. */
  async function closedAccount(projectId: string, agentId: string): Promise<AccountSnapshot> {
    return until("all payments are closed", SWEPT_MS, async () => {
      const page = { after: null, limit: 10 };
      const { accounts } = await handle(projectId).query<SnapshotPage, [object]>(SNAPSHOT_QUERY, page);
      const account = accounts.find((each) => each.agentId === agentId);
      return account !== undefined && account.open.length === 0 ? account : null;
    });
  }

  /** Goes on with a ledger that rolls over far sooner than others, and has forgotten every idempotency key. */
  async function forgetAndHurry(projectId: string, known: AccountSnapshot): Promise<void> {
    const { agentId, keyId, name, policy, reservedCents, revision, sequence, spentCents, teamId } = known;
    const ledger = newLedger(tenant.organization.organizationId, projectId);
    judge(ledger, { kind: "open_account", agentId, keyId, name, policy, teamId }, Date.now());
    const account: Account | undefined = ledger.accounts.get(agentId);
    if (account === undefined) throw new Error("the account was not opened");
    Object.assign(account, { sequence, closed: sequence, evictedThrough: sequence, revision });
    account.confirmedRevision = revision;
    const totals = { spentMc: mcOf(spentCents), reservedMc: mcOf(reservedCents) };
    account.usage = { ...account.usage, ...totals };
    ledger.project = { ...ledger.project, totals };
    ledger.teams.set(teamId, { ...ledger.project, totals });
    // Servers would take it for one from a backup.
    ledger.revision = FAR_AHEAD;
    const settings = { ...LEDGER_SETTINGS, rollOverAfterEvents: EVENTS_PER_RUN };
    const input: LedgerInput = {
      start: { kind: "resume", ledger: packLedger(ledger, Date.now()) },
      settings,
    };
    const { addresses, temporal } = service.connections;
    await temporal.workflow.start(LEDGER_WORKFLOW, {
      workflowId: ledgerWorkflowId(projectId),
      taskQueue: addresses.taskQueue,
      workflowIdConflictPolicy: "TERMINATE_EXISTING",
      args: [input],
    });
  }

  /** How often the ledger has rolled over: each run names the one before it. */
  async function rollOvers(projectId: string): Promise<number> {
    const { addresses, temporal } = service.connections;
    const workflowId = ledgerWorkflowId(projectId);
    let runId = "";
    for (let count = 0; ; count += 1) {
      const { history } = await temporal.workflowService.getWorkflowExecutionHistory({
        namespace: addresses.temporalNamespace,
        execution: { workflowId, runId },
        maximumPageSize: 1,
      });
      const started = history?.events?.[0]?.workflowExecutionStartedEventAttributes;
      runId = started?.continuedExecutionRunId ?? "";
      if (runId === "") return count;
    }
  }

  it("loses no payment, makes none twice, even by old or forgotten keys, and no caller waits", async () => {
    const { agent, apiKey } = await tenant.createAgent({ budgetCents: 1_000_000 });
    const { id, projectId } = agent;
    const first = new Load({
      apiKeys: [apiKey],
      apis: [service.api],
      clients: CLIENTS,
      name: "forgotten",
      retryEvery: RETRY_EVERY,
      comeAgain: true,
    });
    await first.untilPaid(FORGOTTEN, LOAD_MS);
    const forgotten = await first.stop();
    await forgetAndHurry(projectId, await closedAccount(projectId, id));
    const load = new Load({
      apiKeys: [apiKey],
      apis: [service.api],
      clients: CLIENTS,
      name: "roll-over",
      retryEvery: RETRY_EVERY,
      comeAgain: true,
    });
    for (let round = 0; round < ROUNDS_MAX && (await rollOvers(projectId)) < ROLL_OVERS_MIN; round += 1)
      await load.untilPaid(PAYMENTS, LOAD_MS);
    const sent = await load.stop();
    expect(sent.filter(({ status }) => status !== 201)).to.deep.equal([]);
    expect(load.retries).to.be.greaterThan(PAYMENTS / RETRY_EVERY / 2);
    const rolledOver = await rollOvers(projectId);
    expect(rolledOver).to.be.at.least(ROLL_OVERS_MIN);

    process.stdout.write(`    ${String(sent.length)} payments, ${String(rolledOver)} roll-overs\n`);
    await replay(service.api, [...forgotten, ...sent.slice(0, REPLAYED), ...sent.slice(-REPLAYED)]);
    await tenant.expectBooksToAgree(SWEPT_MS);
    // A stall at a roll-over would hold up a batch each time; now and then, another program may have had the processor.
    const usualMs = sent.map(({ ms }) => ms).toSorted((a, b) => a - b)[sent.length >> 1] ?? 0;
    const slow = sent.filter(({ ms }) => ms > Math.max(SLOWEST_MS, SLOWEST_TIMES * usualMs));
    expect(slow.length).to.be.at.most((CLIENTS * rolledOver) / 2);
  });
});
