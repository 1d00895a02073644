import { expect } from "chai";
import { type Mail, MailUnsent } from "../../src/mail/mail.ts";
import { smtpMail, type SmtpServer } from "../../src/mail/smtp.ts";
import {
  type MailServer,
  type MailServerOptions,
  readMail,
  startMailServer,
} from "../support/mail-server.ts";

const FROM = { name: "Spending", address: "spending@example.com" };
const MESSAGE = { id: "inv_1", to: "ada@example.com", subject: "Invitation", text: "Come in.\n" };
const CREDENTIALS = { user: "mailer", pass: "a pass-word of mail" };
/** Reached on this machine, and not called loopback: what a server elsewhere is taken for. */
const ELSEWHERE = "0.0.0.0";

const through = (
  server: MailServer,
  how: Partial<SmtpServer> = {},
  extraCa: string | null = server.caPem,
): Mail =>
  smtpMail(
    {
      from: FROM,
      server: { host: ELSEWHERE, port: server.port, tls: "required", credentials: null, ...how },
    },
    extraCa,
  );
const unsent = async (mail: Mail, message = MESSAGE): Promise<string> => {
  const error: unknown = await mail.send(message).catch((each: unknown) => each);
  if (!(error instanceof MailUnsent)) throw new Error(`was not left unsent: ${String(error)}`);
  return error.message;
};

describe("mail by SMTP", () => {
  const open: MailServer[] = [];
  const serve = async (options: MailServerOptions = {}): Promise<MailServer> => {
    const server = await startMailServer({ host: ELSEWHERE, names: [ELSEWHERE, "127.0.0.1"], ...options });
    open.push(server);
    return server;
  };
  afterEach(async () => {
    await Promise.all(open.splice(0).map((server) => server.close()));
  });

  it("hands a message over by STARTTLS, to one address, under an id that is always the same", async () => {
    const server = await serve({ credentials: CREDENTIALS });
    const mail = through(server, { credentials: CREDENTIALS });
    expect([await mail.send(MESSAGE), await mail.send(MESSAGE)]).to.deep.equal(["sent", "sent"]);
    for (const received of server.mails) {
      expect(received).to.deep.include({
        from: FROM.address,
        to: [MESSAGE.to],
        isEncrypted: true,
        user: CREDENTIALS.user,
      });
      const { headers, text } = readMail(received);
      expect(headers.get("message-id")).to.deep.equal(["<inv_1@example.com>"]);
      expect(headers.get("from")).to.deep.equal(["Spending <spending@example.com>"]);
      expect(headers.get("to")).to.deep.equal([MESSAGE.to]);
      expect(headers.get("content-type")?.[0]).to.match(/^text\/plain\b/);
      expect(text.trim()).to.equal(MESSAGE.text.trim());
    }
    expect(server.mails).to.have.lengthOf(2);
  });

  it("sends nothing, and tells no password, to a server elsewhere that has no STARTTLS", async () => {
    const server = await serve({ tls: "none", credentials: CREDENTIALS });
    expect(await unsent(through(server, { credentials: CREDENTIALS }))).to.match(/ETLS|STARTTLS/);
    expect([server.signIns, server.asked, server.mails.length]).to.deep.equal([0, 0, 0]);
  });

  for (const tls of ["required", "implicit"] as const) {
    it(`sends nothing where the certificate is not to be trusted, TLS ${tls}`, async () => {
      const by = tls === "implicit" ? { tls } : {};
      const unknown = await serve({ ...by, credentials: CREDENTIALS });
      await unsent(through(unknown, { tls, credentials: CREDENTIALS }, null));
      const another = await serve({ ...by, names: ["mail.example.com"], credentials: CREDENTIALS });
      await unsent(through(another, { tls, credentials: CREDENTIALS }));
      expect([unknown.signIns, another.signIns]).to.deep.equal([0, 0]);
      const good = await serve({ ...by, credentials: CREDENTIALS });
      expect(await through(good, { tls, credentials: CREDENTIALS }).send(MESSAGE)).to.equal("sent");
      expect(good.mails[0]?.isEncrypted).to.equal(true);
    });
  }

  it("does with what a server on this machine has: a certificate of its own, or no TLS", async () => {
    for (const options of [{}, { tls: "none" }] as const) {
      const server = await serve(options);
      expect(await through(server, { tls: "offered" }, null).send(MESSAGE)).to.equal("sent");
      expect(server.mails[0]?.isEncrypted).to.equal(options.tls !== "none");
    }
  });

  for (const step of ["recipient", "message"] as const) {
    it(`takes 5xx to the ${step} for a refusal for good, and 4xx for one that may pass`, async () => {
      const server = await serve();
      const mail = through(server);
      server.answer((at) => (at === step ? 550 : null));
      expect(await mail.send(MESSAGE)).to.equal("refused");
      server.answer((at) => (at === step ? 451 : null));
      const said = await unsent(mail);
      expect(said).to.include("451");
      expect(said, "what servers say repeats addresses").not.to.include("ada@");
      server.answer(null);
      expect(await mail.send(MESSAGE)).to.equal("sent");
      expect(server.mails).to.have.lengthOf(1);
    });
  }

  it("tries again where it is the service that is refused: its password, or no server at all", async () => {
    const server = await serve({ credentials: CREDENTIALS });
    const wrong = { user: CREDENTIALS.user, pass: "another pass-word" };
    const said = await unsent(through(server, { credentials: wrong }));
    expect(said).to.include("EAUTH");
    expect(said).not.to.include(wrong.pass);
    await unsent(through(server));
    const { port } = server;
    await open.pop()?.close();
    expect(
      await unsent(
        smtpMail({ from: FROM, server: { host: ELSEWHERE, port, tls: "required", credentials: null } }, null),
      ),
    ).to.match(/ECONN|ESOCKET/);
  });

  for (const [code, enhanced] of [[530], [535], [550, "5.7.1"], [554, "5.7.26"]] as const) {
    it(`tries again where a recipient is refused for who sends: ${code} ${enhanced ?? ""}`, async () => {
      const server = await serve();
      const mail = through(server);
      server.answer((at) => (at === "recipient" ? code : null), enhanced);
      expect(await unsent(mail)).to.include(String(code));
      server.answer((at) => (at === "recipient" ? 550 : null), "5.1.1");
      expect(await mail.send(MESSAGE)).to.equal("refused");
    });
  }

  it("lets neither subject, text nor address add a recipient or a header", async () => {
    const server = await serve();
    const mail = through(server);
    const crlf = "x\r\nBcc: evil@example.com\r\n\r\nMAIL FROM:<evil@example.com>\r\n.\r\nQUIT\r\n";
    expect(await mail.send({ ...MESSAGE, subject: crlf, text: crlf })).to.equal("sent");
    for (const to of [
      "a@example.com,evil@example.com",
      "a@example.com>\r\nRCPT TO:<evil@example.com",
      "a b@c.com",
    ]) {
      expect(await mail.send({ ...MESSAGE, to })).to.equal("refused");
    }
    expect(server.mails.map(({ from, to }) => [from, to])).to.deep.equal([[FROM.address, [MESSAGE.to]]]);
    const { headers } = readMail(server.mails[0] ?? { raw: "" });
    expect(headers.has("bcc")).to.equal(false);
    expect(headers.get("to")).to.deep.equal([MESSAGE.to]);
  });
});
