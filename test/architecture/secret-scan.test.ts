import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { formatApiKey } from "../../src/domain/api-key.ts";
import { cardDataOf } from "../../src/engines/card-network/card-data.ts";
import { newWebhookSecret } from "../../src/webhooks/signature.ts";
import { Api } from "../support/api.ts";
import { scanForSecrets } from "../support/secrets.ts";

const part = (length: number): string => randomBytes(length).toString("base64url").slice(0, length);
const totp = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP";
const jwt = `eyJ${part(30)}.eyJ${part(200)}.${part(86)}`;
const refreshToken = `018f0000-0000-7000-8000-000000000000.${part(43)}.${part(43)}`;

const CARD = cardDataOf("acct_1", "ic_1");
const OTHER_DIGIT = String((Number(CARD.number.slice(-1)) + 1) % 10);

const webhookSecret = newWebhookSecret(randomBytes);

/** What lies in a file, and what the scan must say of it. */
const ROWS: readonly (readonly [string, string, RegExp | null])[] = [
  ["an agent's key", formatApiKey("agent", randomBytes), /^a key/],
  ["an organization's key", formatApiKey("organization", randomBytes), /^a key/],
  ["a session token", jwt, /^a session token/],
  ["a refresh token", refreshToken, /^a refresh token/],
  ["a TOTP secret within a longer run of its alphabet", `AAAA${totp}BBBB`, /^a TOTP secret/],
  ["a webhook's secret", webhookSecret, /^a webhook's secret/],
  ["a webhook's secret without its padding", webhookSecret.replace("=", ""), /^a webhook's secret/],
  ["an issuer's key", `rk_test_${"A1b2".repeat(6)}`, /^a card issuer's key/],
  ["the key by which a browser sees a card", `ek_test_acct_1_${"0a".repeat(24)}`, /^a card issuer's key/],
  ["a card's number", CARD.number, /^a card's number/],
  ["a card's code", JSON.stringify({ cvc: CARD.code }), /^a card's code/],
  ["what only looks like a card's number", CARD.number.replace(/.$/, OTHER_DIGIT), null],
  ["a password", "hunter2 hunter2 hunter2", /^a password/],
  ["what only looks like a key", `sk_svc_live_${"0".repeat(46)}`, null],
  ["what is too short for a webhook's secret", `whsec_${"A".repeat(39)}`, null],
  ["an unnoted TOTP secret", "K".repeat(32), null],
];

describe("the search for secrets finds what it looks for, so that finding nothing means something", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "spending-control-scan-"));
  });
  after(() => rm(folder, { recursive: true }));

  for (const [what, text, expected] of ROWS) {
    it(`${what}, amid binary data and across two chunks`, async () => {
      const noted = new Set([totp, "hunter2 hunter2 hunter2"]);
      const chunk = 1024 * 1024;
      for (const before of [100, chunk - 10]) {
        const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(text), Buffer.alloc(100)]);
        await writeFile(join(folder, "data.wt"), bytes);
        const { leaks } = await scanForSecrets(folder, noted);
        if (expected === null) expect(leaks).to.deep.equal([]);
        else expect(leaks[0]?.what).to.match(expected);
      }
    });
  }

  it("a call fails whose answer has a card's number or code, or an issuer's key", async () => {
    const ephemeralKey = `ek_test_acct_1_${"0a".repeat(24)}`;
    let served: object = {};
    const server = createServer((_request, response) => {
      response.setHeader("content-type", "application/json").end(JSON.stringify(served));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const api = new Api(`http://127.0.0.1:${String(typeof address === "object" ? address?.port : "")}`);
    const failureOf = async (answer: object): Promise<string | null> => {
      served = answer;
      return api.call("GET", "/v1/agents").then(
        () => null,
        (error: unknown) => String(error),
      );
    };
    expect(await failureOf({ reason: `for ${CARD.number}` })).to.include("a card's number");
    expect(await failureOf({ cvc: CARD.code })).to.include("a card's code");
    expect(await failureOf({ fault: `Invalid key rk_test_${"A1b2".repeat(6)}` })).to.include("issuer's key");
    expect(await failureOf({ other: ephemeralKey })).to.include("issuer's key");
    expect(await failureOf({ card: { ephemeralKey } })).to.equal(null);
    server.close();
  });
});
