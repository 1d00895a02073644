import { expect } from "chai";
import { MAILED_PEOPLE_MAX } from "../../src/domain/approval-mails.ts";
import { approvalMailsWorkflowId } from "../../src/messages/mail.ts";
import { COLLECTIONS } from "../../src/store/documents.ts";
import { toRecord } from "../replay/histories.ts";
import {
  type MailServer,
  readMail,
  type ReceivedMail,
  startMailServer,
  tokenIn,
} from "../support/mail-server.ts";
import { newEmail, type Role } from "../support/people.ts";
import { PASSWORD, sharedService, startTestService, type TestService } from "../support/service.ts";
import { elevate, newWorld, type TestAgent, times, until, type World } from "../support/world.ts";

const PUBLIC_URL = "https://spend.example.com";

describe("mails about payments on hold", () => {
  let server: MailServer;
  let service: TestService;
  let world: World;
  let agent: TestAgent;
  before(async () => {
    server = await startMailServer();
    service = await startTestService({
      publicUrl: PUBLIC_URL,
      evmRpcUrl: null,
      settings: {
        SMTP_URL: `smtp://127.0.0.1:${String(server.port)}`,
        MAIL_FROM: "Spending <spending@example.com>",
        BASE_URL: PUBLIC_URL,
      },
    });
  });
  after(async () => {
    await service?.stop();
    await server?.close();
  });
  beforeEach(async () => {
    server.answer(null);
    world = await newWorld(service);
    agent = await world.agent({ name: "Buyer", autoApprovalThresholdCents: 0 });
  });

  const mailsTo = (email: string): readonly ReceivedMail[] =>
    server.mails.filter(({ to }) => to.includes(email));
  const mailsAbout = (approvalId: string): readonly ReceivedMail[] =>
    server.mails.filter((mail) => readMail(mail).text.includes(`/approvals/${approvalId}`));
  const mailAbout = (approvalId: string): Promise<readonly ReceivedMail[]> =>
    until(`a mail about ${approvalId}`, () => {
      const found = mailsAbout(approvalId);
      return Promise.resolve(found.length > 0 ? found : null);
    });
  /** One more member, by a mailed invite. */
  async function join(role: Role): Promise<{ id: string; email: string; token: string }> {
    const email = newEmail();
    await elevate(world);
    await world.api.ok("createInvite", 201, { token: world.token, body: { email, role } });
    const mail = await until("the invite is mailed", () => Promise.resolve(mailsTo(email)[0] ?? null));
    const body = { token: tokenIn(mail), name: "New", password: PASSWORD };
    const { token = "", user } = await world.api.ok("acceptInvite", 201, { body });
    return { id: user.id, email, token };
  }
  const want = (token: string, approvalMails: boolean) =>
    world.api.ok("updateNotifications", 200, { token, body: { approvalMails } });
  const approval = (id: string) => world.api.ok("getApproval", 200, { token: world.token, id });

  it("the owner is mailed what is to be decided, with a link that decides nothing and no token", async () => {
    const { email, userId } = world.organization;
    const { approvalId } = await agent.hold({
      amountCents: 9_000,
      merchant: "Conference Inc",
      purpose: "Ticket, see https://evil.example/pay\r\n\r\nApproved already.\u202e",
    });
    const [mail, ...others] = await mailAbout(approvalId);
    if (mail === undefined) throw new Error("there is a mail");
    expect([mail.to, others]).to.deep.equal([[email], []]);
    const { headers, text } = readMail(mail);
    expect(headers.get("message-id")).to.deep.equal([`<${approvalId}-${userId}@example.com>`]);
    expect(text).to.include('Purpose: "Ticket, see https:∕∕evil·example∕pay Approved already."');
    expect(text.match(/https?:\/\/\S+/g)).to.deep.equal([
      `${PUBLIC_URL}/approvals/${approvalId}`,
      `${PUBLIC_URL}/settings/security`,
    ]);
    const page = await fetch(`${service.baseUrl}/approvals/${approvalId}`, { redirect: "manual" });
    expect(page.status).to.equal(200);
    expect((await approval(approvalId)).approval).not.to.have.property("resolution");

    const workflow = service.connections.temporal.workflow.getHandle(
      approvalMailsWorkflowId({ organizationId: world.organization.organizationId, userId }),
    );
    const history = JSON.stringify(toRecord(await workflow.fetchHistory()));
    const payloads = [...history.matchAll(/"data":\s*"([^"]*)"/g)]
      .map(([, data = ""]) => Buffer.from(data, "base64").toString())
      .join("\n");
    expect(payloads).to.include(approvalId);
    for (const secret of [email, "Conference", "Ticket"]) expect(payloads).not.to.include(secret);
  });

  it("members are mailed who want it, and nobody who has left or has switched it off", async () => {
    const [wanting, silent, removed] = [await join("member"), await join("admin"), await join("member")];
    for (const { token } of [wanting, removed]) await want(token, true);
    await want(world.token, false);
    expect(await world.api.ok("getNotifications", 200, { token: silent.token })).to.deep.equal({
      notifications: { approvalMails: false, mailAvailable: true },
    });
    await elevate(world);
    await world.api.ok("removeMember", 204, { token: world.token, id: removed.id });
    const { approvalId } = await agent.hold();
    const mails = await mailAbout(approvalId);
    expect(mails.flatMap(({ to }) => to)).to.deep.equal([wanting.email]);
  });

  it("a mail server that is down delays no decision, and what was decided is not mailed later", async () => {
    server.answer(() => 451);
    const before = server.asked;
    const decided = await agent.hold();
    await until("the mail server was asked", () => Promise.resolve(server.asked > before || null));
    await world.api.ok("approveApproval", 200, { token: world.token, id: decided.approvalId });
    const undecided = await agent.hold();
    server.answer(null);
    await mailAbout(undecided.approvalId);
    expect(mailsAbout(decided.approvalId)).to.deep.equal([]);
  });

  it("no more people of an organization can be mailed than the bound", async () => {
    const { organizationId } = world.organization;
    const others = times(MAILED_PEOPLE_MAX, (index) => ({
      organizationId,
      emailNormalized: `${String(index)}@example.com`,
      approvalMails: true,
    }));
    await service.db.collection("users").insertMany(others);
    const { token } = world;
    await want(token, false);
    const body = { approvalMails: true };
    await world.api.refused("updateNotifications", 409, "TOO_MANY_MAILED_PEOPLE", { token, body });
    await service.db.collection("users").deleteOne({ organizationId, emailNormalized: "0@example.com" });
    expect((await want(token, true)).notifications.approvalMails).to.equal(true);
  });

  it("without a mail server no workflow is started for a payment on hold", async () => {
    const other = await newWorld(sharedService());
    const { approvalId } = await (await other.agent({ autoApprovalThresholdCents: 0 })).hold();
    const { db, connections } = other.service;
    const event = { type: "approval.requested", "data.approval._id": approvalId };
    await until("its event was dispatched", () =>
      db.collection(COLLECTIONS.events).findOne({ ...event, isPending: { $exists: false } }),
    );
    const { organizationId, userId } = other.organization;
    const workflow = connections.temporal.workflow.getHandle(
      approvalMailsWorkflowId({ organizationId, userId }),
    );
    expect(await workflow.describe().catch(({ name }: Error) => name)).to.equal("WorkflowNotFoundError");
    const { token } = other;
    expect(await other.api.ok("getNotifications", 200, { token })).to.deep.equal({
      notifications: { approvalMails: true, mailAvailable: false },
    });
  });
});
