import { existsSync } from "node:fs";
import { copyFile, rm } from "node:fs/promises";
import { expect } from "chai";
import type { Document } from "mongodb";
import { COLLECTIONS } from "../../src/store/documents.ts";
import { acceptRecordsOn } from "../../server/admin/restore-ledger/accept-records.ts";
import { reconcileOn } from "../../server/admin/reconcile/reconcile.ts";
import { restoreLedgerOn, restoreLedgersOn } from "../../server/admin/restore-ledger/restore-ledger.ts";
import { TemporalCalls } from "../../src/actors/calls.ts";
import { TemporalActors } from "../../src/actors/temporal.ts";
import { collectionsOf } from "../../src/store/collections.ts";
import { ownEngines, type OwnEngines } from "../outage/engines.ts";
import { codeOf } from "../support/contract-api.ts";
import { startServiceOn } from "../support/own-service.ts";
import type { TestService } from "../support/service.ts";
import {
  cardPayment,
  type Fields,
  newWorld,
  type TestAgent,
  until,
  type World,
  worldOf,
} from "../support/world.ts";

const UNAVAILABLE = "503 SERVICE_UNAVAILABLE";

/** SQLite's files: what is not in the main one yet is in the others. */
async function copyDatabase(from: string, to: string): Promise<void> {
  for (const part of ["", "-wal", "-shm"]) {
    await rm(to + part, { force: true });
    if (existsSync(from + part)) await copyFile(from + part, to + part);
  }
}

/** Everything of the service but what its card processor has, which is another company. */
async function dump({ db }: TestService): Promise<ReadonlyMap<string, readonly Document[]>> {
  const found = await db.listCollections({}, { nameOnly: true }).toArray();
  const names = found.map(({ name }) => name).filter((name) => name !== COLLECTIONS.sandboxCardLedger);
  const contents = names.map(async (name) => [name, await db.collection(name).find().toArray()] as const);
  return new Map(await Promise.all(contents));
}

async function requeue(
  { db }: TestService,
  contents: ReadonlyMap<string, readonly Document[]>,
): Promise<void> {
  for (const [name, documents] of contents) {
    await db.collection(name).deleteMany({});
    if (documents.length > 0) await db.collection(name).insertMany([...documents]);
  }
}

const bodyOf = (amountCents: number): Fields => cardPayment({ amountCents });

describe("engines from backups of different times", () => {
  let engines: OwnEngines;
  let service: TestService;
  let world: World;
  let agent: TestAgent;

  before(async () => {
    engines = await ownEngines();
    service = await startServiceOn({ env: engines.env });
    world = await newWorld(service);
    agent = await world.agent({ budgetCents: 1_000 });
  });
  after(async () => {
    await service?.stop();
    await engines?.stop();
  });

  /** What is answered, with the payment's id or why it was denied. */
  async function pay(body: Fields): Promise<string> {
    const answer = await world.api.call("createPayment", { token: agent.key, body });
    if (answer.status >= 300) return `${String(answer.status)} ${codeOf(answer) ?? ""}`;
    const { transaction } = await world.api.ok("createPayment", 200, { token: agent.key, body });
    return `${String(answer.status)} ${transaction.denialCode ?? transaction.id}`;
  }

  async function paid(body: Fields): Promise<string> {
    const answer = await until("a payment", async () => {
      const told = await pay(body);
      return told === UNAVAILABLE ? null : told;
    });
    return answer.split(" ")[1] ?? "";
  }

  /** Another process of the service, which remembers nothing. */
  async function startAnew(): Promise<void> {
    service = await startServiceOn({ env: engines.env });
    world = worldOf(service, world.organization);
  }

  /** Once the ledger answers queries: what is refused then is not for want of a worker. */
  async function ledgerAnswers(): Promise<void> {
    const { addresses, temporal } = service.connections;
    const actors = new TemporalActors(new TemporalCalls(temporal, addresses.taskQueue));
    await until("the ledger's answer", () =>
      actors.ledgerState(world.organization.projectId).catch(() => null),
    );
  }

  async function captures(): Promise<readonly string[]> {
    const found = await collectionsOf(service.db).cardLedger.find({ status: "captured" }).toArray();
    return found.map(({ transactionId }) => transactionId).toSorted();
  }

  const restore = (isConfirmed: boolean) =>
    restoreLedgerOn(service.connections, service.env, {
      projectId: world.organization.projectId,
      isConfirmed,
      patienceMs: 30_000,
      onProgress: () => undefined,
    });

  it("a ledger older than its records decides nothing until restored, and pays nothing twice", async () => {
    const { temporal, temporalDatabase } = engines;
    const first = await paid(bodyOf(400));
    // A database that is copied while nothing is written is one that its process was killed on.
    temporal.freeze();
    await copyDatabase(temporalDatabase, `${temporalDatabase}.backup`);
    temporal.thaw();
    const lost = bodyOf(400);
    const second = await paid(lost);
    await service.stop();
    await temporal.stop();
    await copyDatabase(`${temporalDatabase}.backup`, temporalDatabase);
    await temporal.start();
    await startAnew();
    await ledgerAnswers();

    expect(await pay(lost)).to.equal(UNAVAILABLE);
    expect(await pay(bodyOf(400))).to.equal(UNAVAILABLE);
    expect((await restore(false)).lost).to.match(/^running from a backup, at revision \d+ of \d+$/);
    expect(await pay(lost)).to.equal(UNAVAILABLE);
    const everything = { isConfirmed: true, onProgress: () => undefined };
    const { refused, restored } = await restoreLedgersOn(service.connections, service.env, everything);
    expect(restored.map(({ totals }) => totals)).to.deep.equal([{ spentMc: 800_000, reservedMc: 0 }]);
    expect(refused).to.deep.equal([]);
    const looking = { organizationId: null, repair: false, patienceMs: 30_000, onProgress: () => undefined };
    const { differences } = await reconcileOn(service.connections, service.env, looking);
    expect(differences).to.deep.equal([]);
    expect(await restoreLedgersOn(service.connections, service.env, everything)).to.deep.equal({
      restored: [],
      refused: [],
    });
    expect(await pay(lost)).to.equal(`200 ${second}`);
    expect(await pay(bodyOf(400))).to.equal("201 BUDGET_EXCEEDED");
    expect(await captures()).to.deep.equal([first, second].toSorted());
  });

  it("records older than their ledger let nothing be decided until accepted, or paid twice", async () => {
    const backup = await dump(service);
    const lost = bodyOf(100);
    const third = await paid(lost);
    await service.stop();
    await startAnew();
    await requeue(service, backup);
    await ledgerAnswers();

    const { projectId } = world.organization;
    expect(await pay(lost)).to.equal(UNAVAILABLE);
    expect(await pay(bodyOf(200))).to.equal(UNAVAILABLE);
    expect(await restore(true).catch(String)).to.match(/its records are from a backup/);
    const accept = (isConfirmed: boolean) =>
      acceptRecordsOn(service.connections, service.env, { projectId, isConfirmed });
    const lacking = [{ agentId: agent.id, payments: 1 }];
    expect(await accept(false)).to.deep.include({ isDone: false, lacking });
    expect(await pay(bodyOf(200))).to.equal(UNAVAILABLE);
    expect(await accept(true)).to.deep.include({ isDone: true, lacking });
    // What was lost is still counted, and its key is still known.
    expect(await paid(bodyOf(200))).to.equal("BUDGET_EXCEEDED");
    expect(await pay(lost)).to.equal(UNAVAILABLE);
    const captured = await captures();
    expect(captured.filter((id) => id === third)).to.have.lengthOf(1);
    expect(captured).to.have.lengthOf(3);
  });
});
