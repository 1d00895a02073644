import { expect } from "chai";
import { readConfig } from "../../server/config.ts";
import { ConfigError } from "../../src/lib/config-error.ts";

const read = (env: Readonly<Record<string, string>>) => readConfig(env, "127.0.0.1").webhooks;

describe("settings of webhooks", () => {
  it("by default send to the public internet alone, five times, and keep deliveries 30 days", () => {
    expect(read({})).to.deep.equal({
      allowCidrs: [],
      allowPorts: [],
      caFile: null,
      backoffSeconds: [300, 1_800, 7_200, 28_800],
      retentionDays: 30,
    });
  });

  it("read lists, and an empty one as none", () => {
    const settings = read({
      WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8, ::1/128",
      WEBHOOK_ALLOW_PORTS: "9443",
      WEBHOOK_BACKOFF_SECONDS: "",
    });
    expect(settings.allowCidrs).to.deep.equal(["127.0.0.0/8", "::1/128"]);
    expect(settings.allowPorts).to.deep.equal([9_443]);
    expect(settings.backoffSeconds).to.deep.equal([]);
  });

  it("name the bounds of a number", () => {
    const said = "WEBHOOK_RETENTION_DAYS: must be a whole number from 1 to 3650.";
    expect(() => read({ WEBHOOK_RETENTION_DAYS: "a month" })).to.throw(ConfigError, said);
  });

  for (const [name, value] of [
    ["WEBHOOK_ALLOW_CIDRS", "localhost"],
    ["WEBHOOK_ALLOW_CIDRS", "127.0.0.1"],
    ["WEBHOOK_ALLOW_PORTS", "0"],
    ["WEBHOOK_BACKOFF_SECONDS", "300,soon"],
    ["WEBHOOK_BACKOFF_SECONDS", "0"],
    ["WEBHOOK_RETENTION_DAYS", "0"],
  ] as const) {
    it(`refuse ${name}=${value}, by its name`, () => {
      expect(() => read({ [name]: value })).to.throw(ConfigError, name);
    });
  }

  it("refuse to forget a delivery before its last attempt", () => {
    expect(() => read({ WEBHOOK_RETENTION_DAYS: "1", WEBHOOK_BACKOFF_SECONDS: "86400" })).to.throw(
      ConfigError,
    );
  });
});
