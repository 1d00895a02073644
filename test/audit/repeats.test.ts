import { expect } from "chai";
import { AuditAppender, AuditLogUnavailable } from "../../src/audit/chain/appender.ts";
import { AuditOutbox } from "../../src/audit/audit-outbox.ts";
import type { OperationId } from "../../src/contract/registry.ts";
import type { AuditRecord } from "../../src/domain/audit/entry.ts";
import type { AuditDocument } from "../../src/store/audit-documents.ts";
import { ContractApi } from "../support/contract-api.ts";
import { LOOPBACK } from "../support/identity-provider.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { someOrAll } from "../support/soak.ts";
import { elevate, newWorld, until, type World } from "../support/world.ts";
import { breakIn, entriesOf, testSeal } from "./support.ts";
import type { Prepared } from "./write-rows.ts";
import { WRITES } from "./write-table.ts";

/** After so long a server that has begun something is taken for dead. */
const LATER_MS = 61_000;
const later = (): Date => new Date(Date.now() + LATER_MS);

/** What names the version that it replaces: of a repeat there is nothing left to replace. */
const VERSIONED = [
  "updateAgentBudgetPolicy",
  "setProjectBudget",
  "setTeamBudget",
  "setProjectApprovalRules",
  "setTeamApprovalRules",
  "setProjectRestrictions",
  "setTeamRestrictions",
  "setAgentRestrictions",
] as const satisfies readonly OperationId[];

/** What comes to the same when it is done again. */
const UNVERSIONED = [
  "updateAgent",
  "updateProject",
  "updateTeam",
  "pauseAgent",
  "resumeAgent",
  "archiveAgent",
  "updateWebhook",
] as const satisfies readonly OperationId[];

/** What it was and is, of the same fields: a reader of the entry sees what was changed, and what was not. */
function expectChange(entry: AuditDocument | undefined, prepared: Prepared): void {
  expect(entry?.before).to.be.an("object").that.deep.includes(prepared.before);
  expect(entry?.after).to.be.an("object").that.deep.includes(prepared.after);
  expect(entry?.after).to.have.all.keys(Object.keys(Object(entry?.before)));
}

describe("a write whose answer was lost, and that is repeated,", () => {
  let service: TestService;
  /** The server dies between a write and its entry, but for its process: told what it would have appended. */
  let cut: AuditRecord[] | null = null;

  before(async () => {
    service = await startTestService({
      clientDocuments: LOOPBACK,
      decorateBackends: (backends) => ({
        ...backends,
        auditLog: {
          append(record, when) {
            if (cut === null) return backends.auditLog.append(record, when);
            cut.push(record);
            return Promise.reject(new AuditLogUnavailable("the server is gone"));
          },
        },
      }),
    });
  });
  after(() => service?.stop());
  afterEach(() => (cut = null));

  const seal = () => testSeal(service.env["MASTER_KEY"] ?? "");

  /** Another server, some time later, appends what the one that is gone has left. */
  async function swept(): Promise<void> {
    const { db } = service;
    const log = new AuditAppender(db, seal());
    await new AuditOutbox({ db, log, seal: seal(), clock: later, onWarning: () => undefined }).sweep();
  }

  /** The write takes effect, and its caller is not told; then it is asked for again. Answers what its resource's entries say. */
  async function repeated(id: OperationId, status: number, sweptBetween: boolean) {
    const row = WRITES[id];
    if (row === undefined || row.kind === "harmless") throw new Error("it writes something");
    const prepared = await row.prepare(service);
    const api = new ContractApi(service.baseUrl);
    cut = [];
    expect((await api.call(id, prepared.request)).status).to.equal(503);
    const lost = await until("it is about to append its entry", () => Promise.resolve(cut?.[0] ?? null));
    cut = null;
    if (sweptBetween) await swept();
    const again = await api.call(id, prepared.request);
    expect(again.status, JSON.stringify(again.body)).to.equal(status);
    await swept();
    const chain = await entriesOf(service.db, lost.organizationId);
    expect(breakIn(chain, seal())).to.equal(null);
    const { action, resource } = lost;
    const about = chain.filter((entry) => entry.action === action && entry.resource.id === resource.id);
    return { about, prepared };
  }

  for (const [index, id] of someOrAll([...VERSIONED.entries()], 2)) {
    const sweptBetween = index % 2 === 1;
    it(`${id}, ${sweptBetween ? "after" : "before"} the sweep: one entry tells of the change`, async () => {
      const { about, prepared } = await repeated(id, 409, sweptBetween);
      const telling = about.filter(({ after, before }) => before !== null || after !== null);
      expect(telling).to.have.length(1);
      expectChange(telling[0], prepared);
      expect(telling[0]?.result.code).to.equal(null);
      expect(about.filter((entry) => entry !== telling[0]).map(({ result }) => result.status)).to.deep.equal([
        409,
      ]);
    });
  }

  for (const id of someOrAll(UNVERSIONED, 2))
    it(`${id}: the change has one entry, with before and after, and no second one`, async () => {
      const { about, prepared } = await repeated(id, 200, false);
      const telling = about.filter(
        ({ after, before }) => JSON.stringify(before) !== JSON.stringify(after) && after !== null,
      );
      expect(telling).to.have.length(1);
      expectChange(telling[0], prepared);
    });

  describe("whose record is a moment behind its ledger,", () => {
    let world: World;
    before(async () => {
      world = await newWorld(service);
      await elevate(world);
    });

    it("says what its policy was, as the ledger has it", async () => {
      const { api, token } = world;
      const { id } = await world.agent();
      const change = (budgetCents: number, version: number) => ({
        token,
        id,
        body: { budgetCents, version },
      });
      await api.ok("updateAgentBudgetPolicy", 200, change(700, 1));
      const record = { _id: id };
      const agents = service.db.collection<{ _id: string; policyVersion: number }>("agents");
      // As when another server has changed it and has not written it down yet.
      await agents.updateOne(record, { $set: { policyVersion: 1 } });
      cut = [];
      await api.call("updateAgentBudgetPolicy", change(900, 2));
      await until("it is about to append its entry", () => Promise.resolve(cut?.[0] ?? null));
      cut = null;
      await swept();
      const chain = await entriesOf(service.db, world.organization.organizationId);
      const left = chain.findLast(({ action }) => action === "updateAgentBudgetPolicy");
      expect(left?.before).to.deep.include({ budgetCents: 700, version: 2 });
      expect(left?.after).to.deep.include({ budgetCents: 900, version: 3 });
    });
  });
});
