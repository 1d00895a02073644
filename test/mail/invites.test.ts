import { randomBytes, randomUUID } from "node:crypto";
import { expect } from "chai";
import { AuditAppender } from "../../src/audit/chain/appender.ts";
import { auditSeal } from "../../src/audit/chain/seal.ts";
import { mailActivities } from "../../src/mail/activities.ts";
import { smtpMail } from "../../src/mail/smtp.ts";
import { authCollections } from "../../src/store/identity-documents.ts";
import { MAILED_INVITES_MAX } from "../../src/identity/invite-caps.ts";
import { INVITE_LINK_PURPOSE } from "../../src/identity/invite-link.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { Sealer } from "../../src/secrets/sealer.ts";
import { type InviteMailEnd, inviteMailWorkflowId } from "../../src/messages/mail.ts";
import { toRecord } from "../replay/histories.ts";
import { codeOf } from "../support/contract-api.ts";
import {
  type MailServer,
  type ReceivedMail,
  readMail,
  startMailServer,
  tokenIn,
} from "../support/mail-server.ts";
import { newEmail, type Role } from "../support/people.ts";
import { noteSecret } from "../support/secrets.ts";
import { PASSWORD, startTestService, type TestService } from "../support/service.ts";
import { elevate, newWorld, tally, times, until, type World } from "../support/world.ts";

const PUBLIC_URL = "https://spend.example.com";
const FROM = { name: "Spending", address: "spending@example.com" };
const WEEK_MS = 7 * 24 * 3_600_000;

/** Such that no hour, and so no day, ends while the tests of limits run. */
const aheadMs = new Date().getUTCMinutes() < 56 ? 0 : 240_000;

const accept = (token: string, name = "New") => ({ body: { token, name, password: PASSWORD } });
const everyone = (): boolean => true;

describe("invites by mail", () => {
  const credentials = { user: "mailer", pass: randomBytes(12).toString("base64url") };
  let server: MailServer;
  let service: TestService;
  let world: World;
  /** As if the server died when it had written an invite: its mail is not started. */
  let isBegun: (inviteId: string) => boolean = everyone;
  before(async () => {
    noteSecret(credentials.pass);
    server = await startMailServer({ credentials });
    service = await startTestService({
      publicUrl: PUBLIC_URL,
      clock: () => new Date(Date.now() + aheadMs),
      settings: {
        SMTP_URL: `smtp://${credentials.user}:${credentials.pass}@127.0.0.1:${String(server.port)}`,
        MAIL_FROM: `${FROM.name} <${FROM.address}>`,
        BASE_URL: PUBLIC_URL,
      },
      decorateBackends: ({ mailInvite, ...means }) => ({
        ...means,
        mailInvite: async (invite) => {
          if (isBegun(invite._id)) await mailInvite?.(invite);
        },
      }),
    });
  });
  after(async () => {
    await service?.stop();
    await server?.close();
  });
  beforeEach(async () => {
    isBegun = everyone;
    server.answer(null);
    world = await newWorld(service);
  });

  const records = () => authCollections(service.db);
  const ask = async (email: string, more: object = {}) => {
    await elevate(world);
    const body = { email, role: "member", ...more };
    return (await world.api.ok("createInvite", 201, { token: world.token, body })).invite;
  };
  const mailsTo = (email: string): readonly ReceivedMail[] =>
    server.mails.filter(({ to }) => to.includes(email));
  const mailTo = async (email: string): Promise<ReceivedMail> =>
    until(`a mail to ${email}`, () => Promise.resolve(mailsTo(email)[0] ?? null));
  const workflow = (inviteId: string) =>
    service.connections.temporal.workflow.getHandle<() => Promise<InviteMailEnd>>(
      inviteMailWorkflowId({ inviteId }),
    );
  /** How an invite's mail ended, whichever process started it. */
  const endOf = async (inviteId: string): Promise<InviteMailEnd> => {
    await until("its mail was begun", async () =>
      (await records().invites.findOne({ _id: inviteId, mailStartPending: true })) === null ? true : null,
    );
    return await workflow(inviteId).result();
  };
  const deliveries = async () => {
    const { invites } = await world.api.ok("listInvites", 200, { token: world.token });
    return invites.map(({ delivery, email }) => [email, delivery]);
  };
  const entriesOf = async (action: string) =>
    (await world.api.ok("listAuditLog", 200, { token: world.token, query: { action } })).entries;

  /** Everything that the database holds of it. */
  const databaseText = async (): Promise<string> => {
    const all = await service.db.collections();
    const texts = all.map(async (each) => JSON.stringify(await each.find().toArray()));
    return (await Promise.all(texts)).join("\n");
  };

  it("the token is in the mail alone, and a user who accepts by it has a proved address", async () => {
    const email = newEmail();
    await elevate(world);
    const body = { email, role: "admin" };
    const { invite, token: answered } = await world.api.ok("createInvite", 201, { token: world.token, body });
    expect([answered, invite.delivery]).to.deep.equal([null, "mailing"]);
    const mail = await mailTo(email);
    expect(mail).to.deep.include({ from: FROM.address, to: [email], user: credentials.user });
    const { headers, text } = readMail(mail);
    expect(headers.get("message-id")).to.deep.equal([`<${invite.id}@example.com>`]);
    const token = tokenIn(mail);
    expect(text).to.include(`${PUBLIC_URL}/invite#token=${token}`).and.to.include("an admin");
    expect(await endOf(invite.id)).to.equal("mailed");
    expect(await deliveries()).to.deep.equal([[email, "mailed"]]);

    const history = JSON.stringify(toRecord(await workflow(invite.id).fetchHistory()));
    const payloads = [...history.matchAll(/"data":\s*"([^"]*)"/g)].map(([, data = ""]) =>
      Buffer.from(data, "base64").toString(),
    );
    expect(payloads.join("\n")).to.include(invite.id);
    for (const where of [history, ...payloads, await databaseText()]) {
      expect(where.includes(token)).to.equal(false);
      expect(where.includes(credentials.pass)).to.equal(false);
    }
    const [entry] = await entriesOf("mailInvite");
    expect(entry).to.deep.include({
      actor: { type: "system", id: "mail" },
      resource: { type: "invite", id: invite.id },
      after: { email, delivery: "mailed" },
    });

    const session = await world.api.ok("acceptInvite", 201, accept(token));
    expect(session.user).to.deep.include({ email, emailVerified: true, role: "admin" });
    await world.api.refused("acceptInvite", 404, "NOT_FOUND", accept(token));
  });

  it("a mail server that takes nothing for now is tried again; meanwhile the link lies sealed", async () => {
    const email = newEmail();
    server.answer((_step, to) => (to === email ? 451 : null));
    const before = server.asked;
    const invite = await ask(email);
    await until("a first try", () => Promise.resolve(server.asked > before ? true : null));
    expect(await deliveries()).to.deep.equal([[email, "mailing"]]);
    const [meanwhile, record] = [await databaseText(), await records().invites.findOne({ _id: invite.id })];
    server.answer(null);
    const token = tokenIn(await mailTo(email));
    expect(await endOf(invite.id)).to.equal("mailed");
    expect(mailsTo(email)).to.have.lengthOf(1);
    expect(meanwhile.includes(token)).to.equal(false);
    expect(record?.mail?.sealedLink).to.match(/^[0-9a-f]{8}\./);
    const ended = await records().invites.findOne({ _id: invite.id });
    expect(ended?.mail?.sealedLink, "what is over has no link").to.equal(null);
    await world.api.ok("acceptInvite", 201, accept(token));
  });

  it("who dies between mail and record mails again under the same Message-ID, with one entry", async () => {
    const email = newEmail();
    isBegun = () => false;
    const invite = await ask(email);
    const written = await records().invites.findOne({ _id: invite.id });
    if (written === null) throw new Error("there is an invite");
    expect(await endOf(invite.id)).to.equal("mailed");
    // As it was when the worker died.
    await records().invites.replaceOne({ _id: invite.id }, written);
    const input = { inviteId: invite.id, organizationId: world.organization.organizationId };
    expect(await activities().mailInvite(input)).to.equal("mailed");
    expect(await activities().mailInvite(input), "what is written down is not sent again").to.equal("mailed");
    const ids = mailsTo(email).map((mail) => readMail(mail).headers.get("message-id"));
    expect(ids).to.deep.equal(times(2, () => [`<${invite.id}@example.com>`]));
    expect(await entriesOf("mailInvite")).to.have.lengthOf(1);
  });

  /** As a worker's, on another clock. */
  const activities = (clockAheadMs = aheadMs) => {
    const masterKey = MasterKey.parse(service.env["MASTER_KEY"] ?? "", "MASTER_KEY");
    const sealer = new Sealer(masterKey);
    return mailActivities({
      db: service.db,
      mail: smtpMail(
        { from: FROM, server: { host: "127.0.0.1", port: server.port, tls: "offered", credentials } },
        null,
      ),
      baseUrl: PUBLIC_URL,
      isGenuine: () => true,
      openLink: (inviteId, sealed) => sealer.open(INVITE_LINK_PURPOSE, inviteId, sealed),
      auditLog: new AuditAppender(service.db, auditSeal(masterKey.deriveKeys("audit-log"))),
      clock: () => new Date(Date.now() + clockAheadMs),
      onOutcome: () => undefined,
      onWarning: () => undefined,
    });
  };

  it("an address that is refused for good is asked once, shown, and in the audit log", async () => {
    const email = newEmail();
    server.answer((step, to) => (step === "recipient" && to === email ? 550 : null));
    const before = server.asked;
    const invite = await ask(email);
    expect(await endOf(invite.id)).to.equal("refused");
    expect(await deliveries()).to.deep.equal([[email, "refused"]]);
    expect(server.asked - before).to.equal(1);
    const [entry] = await entriesOf("mailInvite");
    expect(entry).to.deep.include({
      before: { email, delivery: "mailing" },
      after: { email, delivery: "refused" },
    });
  });

  it("an invite whose writer died before it began the mail is mailed all the same, once", async () => {
    const email = newEmail();
    isBegun = () => false;
    const invite = await ask(email);
    expect(mailsTo(email)).to.deep.equal([]);
    await mailTo(email);
    expect(await endOf(invite.id)).to.equal("mailed");
    expect(mailsTo(email)).to.have.lengthOf(1);
    const { mailStartPending } = (await records().invites.findOne({ _id: invite.id })) ?? {};
    expect(mailStartPending).to.equal(undefined);
  });

  it("an invite whose writer died with a clock ahead is mailed long before that time comes", async () => {
    const email = newEmail();
    isBegun = () => false;
    const invite = await ask(email);
    const createdAt = new Date(invite.createdAt).getTime() + 3_600_000;
    await records().invites.updateOne({ _id: invite.id }, { $set: { createdAt: new Date(createdAt) } });
    await mailTo(email);
    expect(await endOf(invite.id)).to.equal("mailed");
  });

  it("what is withdrawn, or no longer good, is not mailed any more; its end is in the audit log", async () => {
    const email = newEmail();
    server.answer((_step, to) => (to === email ? 451 : null));
    const invite = await ask(email);
    const input = { inviteId: invite.id, organizationId: world.organization.organizationId };
    const refusal: unknown = await activities()
      .mailInvite(input)
      .catch((error: unknown) => error);
    expect(String(refusal)).to.include("451").and.not.to.include(email);
    expect(await activities(aheadMs + WEEK_MS + 1_000).mailInvite(input)).to.equal("expired");
    const [entry] = await entriesOf("mailInvite");
    expect(entry?.after).to.deep.equal({ email, delivery: "expired" });
    await world.api.ok("revokeInvite", 200, { token: world.token, id: invite.id });
    // Only then is none under way any more.
    expect(await endOf(invite.id)).to.equal("gone");
    server.answer(null);
    expect(mailsTo(email)).to.deep.equal([]);
  });

  it("names with ends of lines add no header, no recipient and no link", async () => {
    const inviter = newEmail();
    const evil = "Ada\r\nBcc: evil@example.com\r\n\r\nhttps://evil.example/pay";
    await ask(inviter, { role: "admin" satisfies Role });
    const admin = await world.api.ok("acceptInvite", 201, accept(tokenIn(await mailTo(inviter)), evil));
    const { organizationId } = world.organization;
    const name = "Acme\r\nTo: evil@example.com";
    await records().organizations.updateOne({ _id: organizationId }, { $set: { name } });
    const email = newEmail();
    await world.api.ok("createInvite", 201, { token: admin.token ?? "", body: { email, role: "member" } });
    const mail = await mailTo(email);
    const { headers, text } = readMail(mail);
    expect(mail.to).to.deep.equal([email]);
    expect(headers.get("to")).to.deep.equal([email]);
    expect([...headers.keys()].toSorted()).to.deep.equal([
      "auto-submitted",
      "content-transfer-encoding",
      "content-type",
      "date",
      "from",
      "message-id",
      "mime-version",
      "subject",
      "to",
    ]);
    expect(text.match(/https?:\/\/\S+/g)).to.deep.equal([`${PUBLIC_URL}/invite#token=${tokenIn(mail)}`]);
    expect(server.mails.flatMap(({ to }) => to)).not.to.include("evil@example.com");
  });

  it("the same request, by its idempotency key, is answered the same and mailed once", async () => {
    const email = newEmail();
    const body = { email, role: "member", idempotencyKey: randomUUID() };
    const calls = await Promise.all(
      times(8, () => world.api.call("createInvite", { token: world.token, body })),
    );
    const repeated = await world.api.ok("createInvite", 200, { token: world.token, body });
    const statuses = tally(calls.map(({ status }) => status));
    expect(statuses["201"] ?? 0).to.be.at.most(1);
    for (const answer of calls.filter(({ status }) => status < 300)) {
      expect(answer.body).to.deep.equal(repeated);
    }
    expect(repeated.token).to.equal(null);
    expect(await endOf(repeated.invite.id)).to.equal("mailed");
    const again = await world.api.ok("createInvite", 200, { token: world.token, body });
    expect(again, "as the first was, though it is mailed by now").to.deep.equal(repeated);
    expect(mailsTo(email)).to.have.lengthOf(1);
    const other = { ...body, email: newEmail() };
    await world.api.refused("createInvite", 422, "IDEMPOTENCY_KEY_REUSED", {
      token: world.token,
      body: other,
    });
    expect(mailsTo(other.email)).to.deep.equal([]);
  });

  it("one address is mailed 5 invites in a day; who is refused takes no place, and others go on", async () => {
    const [email, other] = [newEmail(), newEmail()];
    const { perAddress } = MAILED_INVITES_MAX;
    for (const each of times(perAddress, () => email)) await ask(each);
    const over = { token: world.token, body: { email: email.toUpperCase(), role: "member" } };
    const refused = await world.api.refused("createInvite", 429, "RATE_LIMITED", over);
    expect(refused.retry_after_seconds).to.be.within(1, 86_400);
    expect(await endOf((await ask(other)).id)).to.equal("mailed");
    expect(mailsTo(email).length).to.be.at.most(perAddress);
    expect(mailsTo(email.toUpperCase())).to.deep.equal([]);
    expect((await deliveries()).map(([to]) => to)).to.have.members([email, other]);
    const elsewhere = await newWorld(service);
    const body = { email, role: "member" };
    await elsewhere.api.ok("createInvite", 201, { token: elsewhere.token, body });
    expect(await (await fetch(`${service.baseUrl}/metrics`)).text()).to.match(
      /spending_control_limit_hits_total\{limit="mailed_invites"\} [1-9]/,
    );
  });

  it("of any number at once exactly as many are mailed as the organization's hour has left", async () => {
    const LEFT = 3;
    await ask(newEmail());
    const { organizationId } = world.organization;
    const hour = { _id: { $regex: `^${organizationId}/hour/` } };
    const count = MAILED_INVITES_MAX.perOrganization - LEFT;
    await records().inviteCounts.updateOne(hour, { $set: { count } });
    const asked = times(8, () => ({ email: newEmail(), role: "member" }));
    const answers = await Promise.all(
      asked.map((body) => world.api.call("createInvite", { token: world.token, body })),
    );
    expect(tally(answers.map((answer) => codeOf(answer) ?? "made"))).to.deep.equal({
      made: LEFT,
      RATE_LIMITED: 8 - LEFT,
    });
    expect(await deliveries()).to.have.lengthOf(LEFT + 1);
    const over = { token: world.token, body: { email: newEmail(), role: "member" } };
    const { retry_after_seconds: seconds } = await world.api.refused(
      "createInvite",
      429,
      "RATE_LIMITED",
      over,
    );
    expect(seconds).to.be.within(1, 3_600);
  });

  it("mails are counted by what came of them", async () => {
    const metrics = await (await fetch(`${service.baseUrl}/metrics`)).text();
    for (const outcome of ["sent", "refused", "unsent"]) {
      expect(metrics).to.match(new RegExp(`spending_control_mails_total\\{outcome="${outcome}"\\} [1-9]`));
    }
  });
});
