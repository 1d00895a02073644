import { expect } from "chai";
import { readConfig } from "../../server/config.ts";
import { ConfigError } from "../../src/lib/config-error.ts";

const GOOD = {
  SMTP_URL: "smtps://mailer:s%3Acr%40t@mail.example.com",
  MAIL_FROM: "Spending <spending@example.com>",
  BASE_URL: "https://spend.example.com",
};
const read = (env: Readonly<Record<string, string>>) => readConfig(env, "127.0.0.1").mail;

describe("settings of mail", () => {
  it("without them nothing is mailed, and an empty one is none", () => {
    expect(read({})).to.equal(null);
    expect(read({ SMTP_URL: "", MAIL_FROM: "" })).to.equal(null);
  });

  it("name server, credentials and sender", () => {
    expect(read(GOOD)).to.deep.equal({
      server: {
        host: "mail.example.com",
        port: 465,
        tls: "implicit",
        credentials: { user: "mailer", pass: "s:cr@t" },
      },
      from: { name: "Spending", address: "spending@example.com" },
      caFile: null,
      baseUrl: "https://spend.example.com",
    });
    expect(read({ ...GOOD, MAIL_FROM: "spending@example.com" })?.from).to.deep.equal({
      name: "",
      address: "spending@example.com",
    });
  });

  for (const [url, host, port, tls] of [
    ["smtp://mail.example.com", "mail.example.com", 587, "required"],
    ["smtp://mail.example.com:25/", "mail.example.com", 25, "required"],
    ["smtp://192.0.2.1", "192.0.2.1", 587, "required"],
    ["smtp://0.0.0.0:2525", "0.0.0.0", 2_525, "required"],
    ["smtp://localhost.example.com", "localhost.example.com", 587, "required"],
    ["smtp://localhost:1025", "localhost", 1_025, "offered"],
    ["smtp://127.0.0.9", "127.0.0.9", 587, "offered"],
    ["smtp://[::1]:1025", "::1", 1_025, "offered"],
    ["smtp://[2001:db8::1]", "2001:db8::1", 587, "required"],
    ["smtps://localhost", "localhost", 465, "implicit"],
  ] as const) {
    it(`${url} is reached with TLS ${tls}`, () => {
      const server = read({ ...GOOD, SMTP_URL: url })?.server;
      expect(server).to.deep.equal({ host, port, tls, credentials: null });
    });
  }

  for (const [what, changed, named] of [
    ["no sender", { MAIL_FROM: "" }, "SMTP_URL"],
    ["no address of the service", { BASE_URL: undefined }, "BASE_URL"],
    ["a sender without a server", { SMTP_URL: "" }, "MAIL_FROM"],
    ["authorities without a server", { SMTP_URL: "", MAIL_FROM: "", SMTP_CA_FILE: "ca.pem" }, "SMTP_CA_FILE"],
    ["a sender that is no address", { MAIL_FROM: "spending" }, "MAIL_FROM"],
    ["two senders", { MAIL_FROM: "a@example.com, b@example.com" }, "MAIL_FROM"],
    ["a sender with a header of its own", { MAIL_FROM: "x\r\nBcc: y@z.com <a@example.com>" }, "MAIL_FROM"],
    ["another protocol", { SMTP_URL: "https://mail.example.com" }, "SMTP_URL"],
    ["no URL", { SMTP_URL: "mail.example.com:587" }, "SMTP_URL"],
    ["no host", { SMTP_URL: "smtp://" }, "SMTP_URL"],
    ["a password without a user", { SMTP_URL: "smtp://:s3cretive@mail.example.com" }, "SMTP_URL"],
    ["what is not encoded", { SMTP_URL: "smtp://me:s3cretive%@mail.example.com" }, "SMTP_URL"],
    [
      "an option that turns verification off",
      { SMTP_URL: "smtp://me:s3cretive@mail.example.com?tls.rejectUnauthorized=false" },
      "SMTP_URL",
    ],
  ] as const) {
    it(`refuse ${what}, by a setting's name and without a password`, () => {
      const env: Record<string, string> = {};
      for (const [name, value] of Object.entries({ ...GOOD, ...changed }))
        if (value !== undefined) env[name] = value;
      expect(() => read(env))
        .to.throw(ConfigError, named)
        .with.property("message")
        .that.does.not.include("s3cretive");
    });
  }
});
