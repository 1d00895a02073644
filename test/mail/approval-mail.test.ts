import { randomUUID } from "node:crypto";
import { expect } from "chai";
import type { MailedPerson } from "../../src/messages/mail.ts";
import { mailApprovals } from "../../src/mail/approval-mail.ts";
import { noticeHeld } from "../../src/mail/approval-notices.ts";
import type { MailMessage } from "../../src/mail/mail.ts";
import { MAILED_PEOPLE_MAX } from "../../src/domain/approval-mails.ts";
import type { ApprovalDocument } from "../../src/store/documents.ts";
import { mailCollections } from "../../src/store/mail-documents.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";
import { times } from "../support/world.ts";
import { eventDocument } from "../webhooks/documents.ts";
import { approvalRecord, mailedPerson } from "./held.ts";

const NOW = new Date("2026-11-26T12:00:00Z");
/** Payments that a step of the watch of events tells of at most. */
const HELD = 1_000;

describe("a mail about payments on hold", () => {
  let database: TestDatabase;
  before(async () => {
    database = await testDatabase();
  });
  after(() => database.close());

  const held = async (fields: Partial<ApprovalDocument>): Promise<string> => {
    const record = approvalRecord({ createdAt: NOW, expiresAt: new Date(NOW.getTime() + 1_000), ...fields });
    await mailCollections(database.db).approvals.insertOne(record);
    return record._id;
  };

  /** What is sent, and how that ends. */
  async function send({ organizationId, userId }: MailedPerson, approvalId: string | null) {
    const mails: MailMessage[] = [];
    const at = NOW.getTime();
    const end = await mailApprovals(
      { db: database.db, baseUrl: "https://spend.example.com", clock: () => NOW },
      { send: (message) => (mails.push(message), Promise.resolve("sent")) },
      {
        organizationId,
        userId,
        mail:
          approvalId === null
            ? { kind: "digest", since: at, through: at + 1_000 }
            : { kind: "single", approvalId, heldAt: at },
      },
    );
    return { end, mails };
  }

  for (const [what, fields] of [
    ["decided", { state: "completed" }],
    ["expired", { expiresAt: NOW }],
    ["another organization's", { organizationId: "another" }],
  ] as const) {
    it(`is not sent about a payment that is ${what}`, async () => {
      const person = await mailedPerson(database.db, { organizationId: randomUUID() });
      const id = await held({ organizationId: person.organizationId, ...fields });
      expect(await send(person, id)).to.deep.equal({ end: "withdrawn", mails: [] });
    });
  }

  it("is not sent to a person who may decide nothing before they enrol a second factor", async () => {
    const organizationId = randomUUID();
    const person = await mailedPerson(database.db, { organizationId, secondFactorRequired: true });
    const id = await held({ organizationId });
    expect((await send(person, id)).end).to.equal("unwanted");
    const { factors } = mailCollections(database.db);
    const totp = { _id: `totp:${person.userId}`, userId: person.userId, kind: "totp" } as const;
    await factors.insertOne({ ...totp, confirmed: null });
    expect((await send(person, id)).end).to.equal("unwanted");
    await factors.updateOne({ _id: totp._id }, { $set: { confirmed: {} } });
    expect((await send(person, id)).end).to.equal("sent");
  });

  it("as a digest lists 50 payments of its period, the most urgent first, and counts the others", async () => {
    const person = await mailedPerson(database.db, { organizationId: randomUUID() });
    const { organizationId, userId } = person;
    const since = NOW.getTime();
    const ids = [];
    for (const index of times(52, (each) => each))
      ids.push(await held({ organizationId, createdAt: new Date(since + index) }));
    await held({ organizationId, createdAt: new Date(since - 1) });
    const { mails } = await send(person, null);
    const [{ id, subject, text } = { id: "", subject: "", text: "" }] = mails;
    expect([id, subject]).to.deep.equal([
      `approvals-${since}-${since + 1_000}-${userId}`,
      "Approval needed: 52 payments",
    ]);
    const listed = [...text.matchAll(/approvals\/(apr_\S+)/g)].map(([, each]) => each);
    expect(listed).to.deep.equal(ids.slice(0, 50));
    expect(text).to.include("2 more are not listed here.");
  });

  it("is about what a bound member may decide, and never for an auditor", async () => {
    const organizationId = randomUUID();
    const binding = { type: "team", ids: ["theirs"] } as const;
    const bound = await mailedPerson(database.db, { organizationId, binding });
    const auditor = await mailedPerson(database.db, { organizationId, role: "auditor" });
    const events = ["theirs", "another"].map((teamId, index) => ({
      ...eventDocument(organizationId, index, { type: "approval.requested" }),
      data: { approval: approvalRecord({ organizationId, teamId }) },
    }));
    const told: unknown[] = [];
    const tell = ({ userId }: MailedPerson, payments: readonly { approvalId: string }[]) => {
      told.push([userId, payments.map(({ approvalId }) => approvalId)]);
      return Promise.resolve();
    };
    await noticeHeld({ db: database.db, tell }, events);
    expect(told).to.deep.equal([[bound.userId, [events[0]?.data.approval._id]]]);
    const [inside, outside] = [
      await held({ organizationId, teamId: "theirs" }),
      await held({ organizationId, teamId: "another" }),
    ];
    expect((await send(bound, inside)).end).to.equal("sent");
    expect((await send(bound, outside)).end).to.equal("withdrawn");
    expect((await send(auditor, inside)).end).to.equal("unwanted");
  });

  it("costs one signal for each person and batch, and no organization more than 50", async () => {
    const organizationId = randomUUID();
    await Promise.all(times(MAILED_PEOPLE_MAX + 5, () => mailedPerson(database.db, { organizationId })));
    const told = new Map<string, number>();
    const events = times(HELD, (index) => ({
      ...eventDocument(organizationId, index, { type: "approval.requested" }),
      data: { approval: approvalRecord({ organizationId }) },
    }));
    const tell = ({ userId }: MailedPerson, payments: readonly unknown[]) => {
      expect(told.has(userId)).to.equal(false);
      told.set(userId, payments.length);
      return Promise.resolve();
    };
    expect(await noticeHeld({ db: database.db, tell }, events)).to.equal(MAILED_PEOPLE_MAX);
    expect(new Set(told.values())).to.deep.equal(new Set([HELD]));
  });
});
