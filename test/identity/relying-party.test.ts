import { expect } from "chai";
import { relyingPartyOf } from "../../src/identity/relying-party.ts";
import { readConfig } from "../../server/config.ts";
import { ConfigError } from "../../src/lib/config-error.ts";

const read = (env: NodeJS.ProcessEnv) => {
  const { baseUrl, webauthn } = readConfig(env, "127.0.0.1");
  return relyingPartyOf(baseUrl ?? "http://127.0.0.1:8080", webauthn);
};

describe("Whom passkeys are made for", () => {
  for (const [baseUrl, id, origin] of [
    ["http://spend.localhost:8080", "spend.localhost", "http://spend.localhost:8080"],
    ["https://control.example.com", "control.example.com", "https://control.example.com"],
    ["https://control.example.com:8443/", "control.example.com", "https://control.example.com:8443"],
    // Browsers make no passkeys for an address; a service on loopback is localhost to them.
    ["http://127.0.0.1:8080", "localhost", "http://localhost:8080"],
    ["http://[::1]:8080", "localhost", "http://localhost:8080"],
    ["http://localhost:3000", "localhost", "http://localhost:3000"],
  ] as const) {
    it(`from ${baseUrl}: ${id} and its origin`, () => {
      expect(read({ BASE_URL: baseUrl })).to.deep.equal({ id, origins: [origin] });
    });
  }

  it("is localhost where nothing is set", () => {
    expect(read({})).to.deep.equal({ id: "localhost", origins: ["http://localhost:8080"] });
  });

  it("can be a domain above BASE_URL's, with pages elsewhere below it", () => {
    const BASE_URL = "https://api.example.com";
    expect(read({ BASE_URL, WEBAUTHN_RP_ID: "example.com" })).to.deep.equal({
      id: "example.com",
      origins: [BASE_URL],
    });
    const WEBAUTHN_ORIGINS = "https://app.example.com, https://example.com:8443";
    const origins = ["https://app.example.com", "https://example.com:8443"];
    expect(read({ BASE_URL, WEBAUTHN_RP_ID: "example.com", WEBAUTHN_ORIGINS })).to.deep.equal({
      id: "example.com",
      origins,
    });
    // A page that is nowhere near BASE_URL is no contradiction where both are named.
    const elsewhere = { WEBAUTHN_RP_ID: "example.org", WEBAUTHN_ORIGINS: "https://app.example.org" };
    expect(read({ BASE_URL, ...elsewhere }).id).to.equal("example.org");
    const local = { WEBAUTHN_ORIGINS: "http://localhost:5173" };
    expect(read(local)).to.deep.equal({ id: "localhost", origins: ["http://localhost:5173"] });
  });

  const BASE_URL = "https://api.example.com";
  const WRONG: readonly (readonly [string, NodeJS.ProcessEnv, string])[] = [
    ["an address as the domain", { WEBAUTHN_RP_ID: "10.0.0.1" }, "WEBAUTHN_RP_ID"],
    ["a URL as the domain", { WEBAUTHN_RP_ID: "https://example.com" }, "WEBAUTHN_RP_ID"],
    ["a domain with a port", { WEBAUTHN_RP_ID: "example.com:443" }, "WEBAUTHN_RP_ID"],
    ["a domain in upper case", { WEBAUTHN_RP_ID: "Example.com" }, "WEBAUTHN_RP_ID"],
    ["a top-level domain", { WEBAUTHN_RP_ID: "com" }, "WEBAUTHN_RP_ID"],
    ["an empty domain", { WEBAUTHN_RP_ID: "" }, "WEBAUTHN_RP_ID"],
    ["a domain that is not BASE_URL's", { WEBAUTHN_RP_ID: "example.org" }, "WEBAUTHN_RP_ID"],
    ["one that only ends alike", { WEBAUTHN_RP_ID: "ample.com" }, "WEBAUTHN_RP_ID"],
    ["a domain below BASE_URL's", { WEBAUTHN_RP_ID: "x.api.example.com" }, "WEBAUTHN_RP_ID"],
    ["a path in an origin", { WEBAUTHN_ORIGINS: "https://api.example.com/" }, "WEBAUTHN_ORIGINS"],
    ["an origin without https", { WEBAUTHN_ORIGINS: "http://api.example.com" }, "WEBAUTHN_ORIGINS"],
    ["an origin that is none", { WEBAUTHN_ORIGINS: "api.example.com" }, "WEBAUTHN_ORIGINS"],
    ["localhost in name only", { WEBAUTHN_ORIGINS: "http://localhost.example.com" }, "WEBAUTHN_ORIGINS"],
    ["no origin at all", { WEBAUTHN_ORIGINS: "" }, "WEBAUTHN_ORIGINS"],
    ["an origin of another domain", { WEBAUTHN_ORIGINS: "https://api.example.org" }, "WEBAUTHN_ORIGINS"],
    [
      "one of several origins of another domain",
      { WEBAUTHN_ORIGINS: `${BASE_URL},https://evil.test` },
      "WEBAUTHN_ORIGINS",
    ],
  ];
  for (const [what, env, named] of WRONG) {
    it(`${what} prevents the start, naming ${named}`, () => {
      expect(() => readConfig({ BASE_URL, ...env }, "127.0.0.1"))
        .to.throw(ConfigError, named)
        .with.property("message")
        .that.does.not.include("\n");
    });
  }
});
