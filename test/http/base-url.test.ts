import { expect } from "chai";
import { readConfig } from "../../server/config.ts";
import { ConfigError } from "../../src/lib/config-error.ts";

const baseUrlOf = (BASE_URL: string) => readConfig({ BASE_URL }, "127.0.0.1").baseUrl;

describe("BASE_URL", () => {
  for (const url of [
    "https://example.com/control",
    "http://localhost:8080/control/",
    "https://example.com/?x=1",
    "https://example.com/#x",
    "https://user:password@example.com",
  ]) {
    it(`${url} is refused in one line that says what to do`, () => {
      expect(() => baseUrlOf(url))
        .to.throw(ConfigError)
        .with.property("message")
        .that.matches(/^BASE_URL: must have no path, .*host name or a port of its own$/);
    });
  }

  it("may end with a slash, which is left out", () => {
    expect(baseUrlOf("https://example.com:8443/")).to.equal("https://example.com:8443");
  });
});
