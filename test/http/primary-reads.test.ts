import { prove, TEST_ACCESS_PROOFS, TEST_PAYMENT_PROOFS } from "../support/access-proofs.ts";
import { contentHash } from "../../src/lib/ids.ts";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { expect } from "chai";
import { type CommandStartedEvent, type Db, MongoClient } from "mongodb";
import { MongoDeliveryWindows } from "../../src/agents/key-deliveries/windows.ts";
import { DeliveryKeyFiles } from "../../src/agents/key-deliveries/delivery-keys.ts";
import { AuditAppender } from "../../src/audit/chain/appender.ts";
import { walkChains } from "../../src/audit/chain/verification.ts";
import { AuditOutbox } from "../../src/audit/audit-outbox.ts";
import { PaymentRulings } from "../../src/payments/rules/payment-rules.ts";
import { settingsOf } from "../../src/secrets/settings.ts";
import { collectionsOf } from "../../src/store/collections.ts";
import { connectMongo } from "../../src/store/connections.ts";
import { authCollections } from "../../src/store/identity-documents.ts";
import { MongoLedgerRevisions } from "../../src/store/ledger-revisions.ts";
import { mailCollections } from "../../src/store/mail-documents.ts";
import { transactionsOf } from "../../src/store/transactions.ts";
import { webhookCollections } from "../../src/store/webhook-documents.ts";
import { ownSeal } from "../audit/support.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";
import { requiredSetting } from "../support/shared-engines.ts";

const ELSEWHERE = "secondaryPreferred";

describe("where records are read", () => {
  let database: TestDatabase;
  before(async () => {
    database = await testDatabase();
  });
  after(() => database.close());

  /** Of a database that is read elsewhere, as far as its address can say so. */
  function readElsewhere(): string {
    const uri = new URL(requiredSetting("TEST_MONGODB_URI"));
    uri.pathname = database.db.databaseName;
    uri.searchParams.set("readPreference", ELSEWHERE);
    uri.searchParams.set("monitorCommands", "true");
    return uri.href;
  }

  it("every read is the primary's, whatever the URI says: what decides is never an old copy", async () => {
    const { db, mongo } = await connectMongo(readElsewhere());
    try {
      const asked: CommandStartedEvent[] = [];
      mongo.on("commandStarted", (event) => asked.push(event));
      const { agents, transactions } = collectionsOf(db);
      await transactions.findOne({ _id: "txn_1" });
      await agents.find({ teamId: "team" }).toArray();
      await agents.aggregate([{ $match: { teamId: "team" } }]).toArray();
      expect(asked.map(({ commandName }) => commandName)).to.deep.equal(["find", "find", "aggregate"]);
      for (const { command } of asked) {
        expect(command).to.not.have.nested.property("$readPreference.mode", ELSEWHERE);
      }
      expect(mongo.options.readPreference.mode).to.equal("primary");
    } finally {
      await mongo.close();
    }
  });

  describe("on a connection that reads elsewhere", () => {
    let client: MongoClient;
    let db: Db;
    /** The collections that were read elsewhere. */
    let elsewhere: string[];
    before(async () => {
      client = await new MongoClient(readElsewhere()).connect();
      db = client.db();
      client.on("commandStarted", ({ command, commandName }) => {
        const isElsewhere = command["$readPreference"]?.mode === ELSEWHERE;
        if (isElsewhere) elsewhere.push(String(command[commandName]));
      });
    });
    beforeEach(() => (elsewhere = []));
    after(() => client.close());

    it("who may do what, what was told and what is kept of secrets is the primary's all the same", () => {
      const { auditLog, dailyCreates, keyDeliveries, organizationKeys } = collectionsOf(db);
      const rooms = {
        identity: authCollections(db),
        mail: mailCollections(db),
        webhooks: webhookCollections(db),
        others: { auditLog, dailyCreates, keyDeliveries, organizationKeys, settings: settingsOf(db) },
      };
      const others = Object.entries(rooms).flatMap(([room, collections]) =>
        Object.entries(collections).flatMap(([name, { readPreference }]) =>
          readPreference?.mode === "primary" ? [] : [`${room}: ${name}`],
        ),
      );
      expect(others).to.deep.equal([]);
      expect(collectionsOf(db).agents.readPreference?.mode, "what is only shown").to.equal(ELSEWHERE);
    });

    it("what decides on a payment is the primary's: its rules, its like, how far its ledger is", async () => {
      const { ruled, transactions } = collectionsOf(db);
      const [project, team] = [randomUUID(), randomUUID()];
      const enabled = [{ type: "new_recipient" }, { type: "duplicate", params: { windowSeconds: 60 } }];
      const rules = enabled.map((rule) => ({ id: rule.type, enabled: true, params: {}, ...rule }));
      const approvalRules = { rules, version: 2, contentHash: contentHash(rules) };
      for (const name of ["projects", "teams"]) {
        const those = database.db.collection<{ _id: string }>(name);
        await those.insertMany([project, team].map((_id) => ({ _id, approvalRules })));
      }
      await prove(database.db, "projectRules");
      await prove(database.db, "teamRules");
      const rulings = new PaymentRulings({
        accessProofs: TEST_ACCESS_PROOFS,
        proofs: TEST_PAYMENT_PROOFS,
        collections: { ruled, transactions },
        clock: () => new Date(),
      });
      const payment = { rail: "card", recipient: "Shop", amountMc: 7_000, merchantCategory: null } as const;
      const owner = { organizationId: "organization", agentId: "agent", name: "Agent" };
      const profile = { ...owner, projectId: project, teamId: team };
      // One container alone is looked up in another way than several at once.
      for (const ids of [[project], [project, team]]) {
        const asked = ids.map((projectId) => rulings.of({ ...profile, projectId }, payment));
        const [first] = await Promise.all(asked);
        const checks = first?.rules?.checks.map(({ type }) => type);
        expect(checks).to.deep.equal(["new_recipient", "duplicate"]);
        await rulings.withSimilarPayment(first?.rules, "agent", payment);
        for (const projectId of ids) rulings.forget({ ...profile, projectId });
      }
      expect(await new MongoLedgerRevisions(db).read(project)).to.equal(0);
      expect(elsewhere).to.deep.equal([]);
    });

    it("what is committed is the primary's: transactions, ends of windows, entries and outbox", async () => {
      const seal = ownSeal();
      const log = new AuditAppender(db, seal);
      const outbox = new AuditOutbox({ db, log, seal, clock: () => new Date(), onWarning: () => undefined });
      expect((await outbox.sweep()).left).to.equal(0);
      const options = { db, seal, anchors: new Map(), organizationId: null, onEntry: () => undefined };
      for await (const report of walkChains(options)) expect.fail(report.organizationId);
      const folder = join(requiredSetting("TEST_DATA_DIR"), database.db.databaseName);
      const keys = await DeliveryKeyFiles.in(folder);
      const windows = new MongoDeliveryWindows(db, keys, () => new Date());
      expect(await windows.close(randomUUID())).to.equal("discarded");
      const read = await transactionsOf(client)((session) =>
        db.collection("agents").findOne({}, { session }),
      );
      expect(read).to.equal(null);
      expect(elsewhere).to.deep.equal([]);
    });
  });
});
