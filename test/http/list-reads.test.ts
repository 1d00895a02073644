import { expect } from "chai";
import type { Db, Document } from "mongodb";
import { z } from "zod";
import { type AuditRecord, linkAll, NO_ENTRY } from "../../src/domain/audit/entry.ts";
import { AUDIT_LOG, auditDocument, auditLogOf } from "../../src/store/audit-documents.ts";
import { testSeal } from "../audit/support.ts";
import { recordOf } from "../audit/tampering.ts";
import { actionsOn } from "../../src/client/audit-actions.ts";
import { COLLECTIONS } from "../../src/store/documents.ts";
import { WEBHOOK_COLLECTIONS } from "../../src/store/webhook-documents.ts";
import { collectionsOf } from "../../src/store/collections.ts";
import type { OperationId } from "../../src/contract/registry.ts";
import { transactionOf } from "../support/payments-in-place.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { someOrAll } from "../support/soak.ts";
import { newEndpoint, newWorld, times, type World } from "../support/world.ts";
import { choices, type Query } from "../lists/reads.ts";

const LIMIT = 7;
/** Of 32 combinations, in each run. */
const REQUESTS = 12;
/** More than all that one test asks for. */
const PROFILE_BYTES = 64 * 1_024 * 1_024;

const read = z.object({
  docsExamined: z.int(),
  keysExamined: z.int(),
  nreturned: z.int(),
  planSummary: z.string(),
  hasSortStage: z.boolean().optional(),
  cursorid: z.unknown().optional(),
});

async function emptied(db: Db): Promise<void> {
  await db.dropCollection("system.profile");
  await db.createCollection("system.profile", { capped: true, size: PROFILE_BYTES });
}

/** Instants that many records share. */
const instant = (index: number): Date => new Date(Date.now() - (index % 60) * 86_400_000 - (index % 3));

/**
 * What MongoDB itself counts of the reads that requests come to: a page examines the records that it shows and the one
 * behind them, from whatever place in the list, whatever the filters. Of the lists that a binding narrows, see
 * `test/lists/plans.test.ts`.
 */
describe("what a page of a list reads", () => {
  let service: TestService;
  let world: World;
  before(async () => {
    service = await startTestService();
    world = await newWorld(service);
    await service.db.createCollection("system.profile", { capped: true, size: PROFILE_BYTES });
  });
  after(() => service.stop());

  /** Two pages of each of the requests, and what MongoDB has counted for each of them. */
  async function readsOf(
    collection: string,
    id: OperationId,
    requests: readonly { readonly token: string; readonly query: Query; readonly id?: string }[],
  ) {
    const { db } = service;
    const filter = {
      ns: `${db.databaseName}.${collection}`,
      op: "query",
      "command.sort": { $exists: true },
    };
    await db.command({ profile: 2, filter });
    let asked = 0;
    let shown = 0;
    try {
      for (const { query, ...request } of requests) {
        const first = await page(id, { ...request, query: { ...query, limit: String(LIMIT) } });
        const second =
          first.nextCursor === null
            ? null
            : await page(id, {
                ...request,
                query: { ...query, limit: String(LIMIT), cursor: first.nextCursor },
              });
        asked += second === null ? 1 : 2;
        shown += first.count + (second?.count ?? 0);
      }
    } finally {
      await db.command({ profile: 0, filter: "unset" });
    }
    // What goes on besides in the moment when it is switched off is in it, whatever its filter was.
    const reads = await db.collection("system.profile").find(filter).toArray();
    await emptied(db);
    return { reads: reads.map((each) => read.parse(each)), asked, shown };
  }

  async function page(id: OperationId, request: object) {
    const answer = await world.api.call(id, request);
    expect(answer.status, JSON.stringify(answer.body)).to.equal(200);
    const { nextCursor, ...rest } = z.looseObject({ nextCursor: z.string().nullable() }).parse(answer.body);
    const [items] = Object.values(rest);
    return { nextCursor, count: z.array(z.unknown()).parse(items).length };
  }

  /** Keys beside the records: one for each further stretch of the index that a page is merged from, and its end. */
  function expectNoMore(
    { asked, reads, shown }: Awaited<ReturnType<typeof readsOf>>,
    furtherKeys: number,
    furtherRecords = 0,
  ): void {
    expect(shown, "there is something to read").to.be.greaterThan(asked);
    expect(reads.length).to.be.at.least(1);
    for (const each of reads) {
      const said = JSON.stringify(each);
      expect(each.nreturned, said).to.be.at.most(LIMIT + 1);
      expect(each.docsExamined, said).to.be.at.most(each.nreturned + furtherRecords);
      expect(each.keysExamined, said).to.be.at.most(each.nreturned + furtherKeys);
      expect(each.hasSortStage ?? false, said).to.equal(false);
      expect(each.cursorid, said).to.equal(undefined);
    }
  }

  it("of an agent's payments, by any status", async () => {
    const agent = await world.agent();
    const place = {
      agentId: agent.id,
      teamId: world.organization.teamId,
      projectId: world.organization.projectId,
    };
    const statuses = ["approved", "denied", "failed"] as const;
    const records = statuses.flatMap((status) =>
      times(30, (index) =>
        transactionOf(world.organization.organizationId, place, { status, createdAt: instant(index) }),
      ),
    );
    await collectionsOf(service.db).transactions.insertMany(records);
    const requests = choices({ status: statuses }).map((query) => ({ token: agent.key, query }));
    expectNoMore(await readsOf(COLLECTIONS.transactions, "listPayments", requests), 4);
  });

  it("of the audit log, by any actor, resource, action and time, and all of them together", async () => {
    const { organizationId } = world.organization;
    const names = {
      actor: ["one", "two"],
      resource: ["this", "that"],
      action: ["signIn", "signOut"],
    };
    const kinds = choices(names).filter((kind) => Object.keys(kind).length === 3);
    const records = kinds.flatMap(({ action, actor, resource }) =>
      times(30, (index): AuditRecord => ({
        ...recordOf(index),
        organizationId,
        at: instant(index).getTime(),
        action: String(action),
        actor: { type: "system", id: String(actor) },
        resource: { type: "user", id: String(resource) },
        entryKey: `seeded-${String(actor)}-${String(resource)}-${String(action)}-${String(index)}`,
      })),
    );
    // Newer than all others, so that what is on no user would be read on the way to what is.
    const onTeams = times(200, (index): AuditRecord => ({
      ...recordOf(index),
      organizationId,
      at: Date.now(),
      action: "updateTeam",
      actor: { type: "system", id: "one" },
      resource: { type: "team", id: "this" },
      entryKey: `seeded-team-${String(index)}`,
    }));
    // Only what the service has sealed is listed.
    const seal = testSeal(String(service.env["MASTER_KEY"]));
    const entries = linkAll([...records, ...onTeams], { ...NO_ENTRY, sequence: 1_000_000 }, seal);
    await auditLogOf(service.db).insertMany(entries.map(auditDocument));
    const [from, to] = [instant(50).toISOString(), instant(10).toISOString()];
    const queries = choices({
      actor: ["one"],
      resource: ["this"],
      action: ["signIn"],
      from: [from],
      to: [to],
    });
    const requests = someOrAll(queries, REQUESTS).map((query) => ({ token: world.token, query }));
    expectNoMore(await readsOf(AUDIT_LOG, "listAuditLog", requests), 1);
    // By the type that most actions are on: the first key, and record, of each of the two stretches of each action on it.
    const ofUsers = requests.map(({ query, token }) => ({
      token,
      query: { ...query, resourceType: "user" },
    }));
    const stretches = 2 * actionsOn("user").length;
    expectNoMore(await readsOf(AUDIT_LOG, "listAuditLog", ofUsers), 2 * stretches, stretches);
  });

  it("of a webhook's deliveries, by any status", async () => {
    const endpoint = await newEndpoint(world);
    const { organizationId } = world.organization;
    const statuses = ["pending", "succeeded", "failed", "dropped"] as const;
    const records = statuses.flatMap((status) =>
      times(30, (index) => ({
        _id: `dlv_${status}_${String(index)}`,
        organizationId,
        endpointId: endpoint.id,
        eventId: null,
        eventType: "agent.created",
        isTest: false,
        body: "{}",
        status,
        attempts: [],
        attemptCount: 0,
        run: 1,
        runAttempts: 0,
        nextAttemptAt: null,
        createdAt: instant(index),
        expiresAt: new Date(Date.now() + 86_400_000),
      })),
    );
    await service.db
      .collection<Document & { _id: string }>(WEBHOOK_COLLECTIONS.deliveries)
      .insertMany(records);
    const requests = choices({ status: statuses }).map((query) => ({
      token: world.token,
      query,
      id: endpoint.id,
    }));
    expectNoMore(await readsOf(WEBHOOK_COLLECTIONS.deliveries, "listWebhookDeliveries", requests), 1);
  });

  it("of the sandbox processor's ledger", async () => {
    const { organizationId } = world.organization;
    const entries = times(40, (index) => ({
      _id: `ledger-${String(index)}`,
      organizationId,
      transactionId: `txn-${String(index)}`,
      merchant: "shop",
      amountCents: 100,
      status: "captured",
      createdAt: instant(index),
    }));
    await service.db
      .collection<Document & { _id: string }>(COLLECTIONS.sandboxCardLedger)
      .insertMany(entries);
    const requests = [{ token: world.token, query: {} }];
    expectNoMore(await readsOf(COLLECTIONS.sandboxCardLedger, "listCardLedger", requests), 1);
  });
});
