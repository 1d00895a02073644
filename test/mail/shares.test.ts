import { expect } from "chai";
import type { AuditLog } from "../../src/audit/chain/appender.ts";
import { mailActivities } from "../../src/mail/activities.ts";
import type { MailMessage, Sent } from "../../src/mail/mail.ts";
import { mailCollections } from "../../src/store/mail-documents.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";
import { times, until } from "../support/world.ts";

const NO_LOG: AuditLog = { append: () => Promise.resolve() };

describe("mails of several organizations at once", () => {
  let database: TestDatabase;
  before(async () => {
    database = await testDatabase();
  });
  after(() => database.close());

  async function invite(organizationId: string): Promise<{ inviteId: string; organizationId: string }> {
    const { invites, organizations } = mailCollections(database.db);
    const inviteId = `inv_${organizationId}_${String(await invites.countDocuments())}`;
    await organizations.updateOne({ _id: organizationId }, { $set: { name: "Acme" } }, { upsert: true });
    await invites.insertOne({
      _id: inviteId,
      organizationId,
      email: `${inviteId}@example.com`,
      role: "member",
      createdBy: { id: "usr_1" },
      createdAt: new Date(),
      expiresAt: new Date(Date.now() + 3_600_000),
      mail: { state: "mailing", sealedLink: "sealed", endedAt: null },
    });
    return { inviteId, organizationId };
  }

  it("one whose mails the server takes slowly leaves places to others", async () => {
    const slow: (() => void)[] = [];
    const send = ({ to }: MailMessage): Promise<Sent> =>
      to.includes("org_slow")
        ? new Promise((resolve) => slow.push(() => resolve("sent")))
        : Promise.resolve("sent");
    const { mailInvite } = mailActivities({
      db: database.db,
      mail: { send },
      baseUrl: "https://spend.example.com",
      isGenuine: () => true,
      openLink: (_inviteId, sealed) => sealed,
      auditLog: NO_LOG,
      clock: () => new Date(),
      onOutcome: () => undefined,
      onWarning: () => undefined,
    });
    const mails = [];
    for (const _index of times(5, () => null)) mails.push(await invite("org_slow"));
    const sent = mails.map((each) => mailInvite(each).catch(() => "later"));
    await until("three are on their way", () => Promise.resolve(slow.length === 3 || null));
    expect(await mailInvite(await invite("org_quick"))).to.equal("mailed");
    for (const end of slow) end();
    expect(await Promise.all(sent)).to.deep.equal(["mailed", "mailed", "mailed", "later", "later"]);
  });
});
