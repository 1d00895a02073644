import { randomBytes } from "node:crypto";
import { expect } from "chai";
import * as fc from "fast-check";
import { Webhook } from "standardwebhooks";
import { newWebhookSecret, signatureHeaders } from "../../src/webhooks/signature.ts";
import { svcSignature, verifyWebhook, type WebhookInput } from "../../src/webhooks/verify-webhook.ts";
import { seed } from "../support/seed.ts";

/** 32 bytes each, from 0 to 31 and from 32 to 63. */
const SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const OTHER_SECRET = "whsec_ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";
const SECONDS = 1_800_000_000;
const AT = new Date(SECONDS * 1_000 + 999);
const BODY =
  '{"id":"dlv_01","type":"agent.paused","created_at":"2027-01-15T08:00:00.123Z","org_id":"01a1fedc-b36f-716a-9ab4-93fd85fe3901","agent_name":"Käufer €🛒","data":{"agent":{}}}';
const EVENT: unknown = JSON.parse(BODY);

/** What OpenSSL makes of the same: `openssl dgst -sha256 -hmac`, and with the key in hex. */
const SVC = "sha256=900922445a80200fcb3684ff63123fdebf27c8d7b072e1ce652d95eee333f53a";
const OTHER_SVC = "sha256=e2da0ea319fb20368f6b760d96065bd483f57761de0d3b8ddf3249bf1abe882c";
const STANDARD = "v1,GavxUg24IIfQd3UXEqds1PtWGkWPVxqF7ry0t1S6fd8=";
const OTHER_STANDARD = "v1,dIYZyeZclKc5FTtFl86JpOou3d6KcJh66l/44N4VDCU=";

const signed = (secrets: readonly string[] = [SECRET]) =>
  signatureHeaders({ deliveryId: "dlv_01", eventType: "agent.paused", body: BODY, at: AT, secrets });

const input = (changes: Partial<WebhookInput> = {}): WebhookInput => ({
  rawBody: BODY,
  headers: signed(),
  secret: SECRET,
  now: AT,
  ...changes,
});

const verdict = (changes: Partial<WebhookInput> = {}): string => {
  const verified = verifyWebhook(input(changes));
  return verified.ok ? "accepted" : verified.reason;
};

const withHeader = (name: string, value: string | string[] | undefined) => ({
  headers: { ...signed(), [name]: value },
});

/** The genuine signature of another body, with the headers of this one. */
const withSignedBody = (rawBody: string | Uint8Array) => ({
  rawBody,
  ...withHeader("Svc-Signature", svcSignature(SECRET, String(SECONDS), rawBody)),
});

const withBodyField = (field: string, value: unknown) =>
  withSignedBody(JSON.stringify({ ...JSON.parse(BODY), [field]: value }));

const laterBy = (seconds: number) => ({ now: new Date((SECONDS + seconds) * 1_000) });

/** The text with one character replaced by another of its kind. */
const altered = (text: string, index: number): string =>
  text.slice(0, index) + (text[index] === "1" ? "2" : "1") + text.slice(index + 1);

describe("a new webhook secret", () => {
  it("is the prefix and the base64 of 32 random bytes, never of fewer", () => {
    expect(newWebhookSecret((size) => Uint8Array.from({ length: size }, (_, index) => index))).to.equal(
      SECRET,
    );
    expect(newWebhookSecret(randomBytes)).to.match(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(newWebhookSecret(randomBytes)).to.not.equal(newWebhookSecret(randomBytes));
    expect(() => newWebhookSecret((size) => new Uint8Array(size - 1))).to.throw("too few");
  });
});

describe("the headers of a delivery", () => {
  it("carry the signatures that another implementation computes", () => {
    expect(signed()).to.deep.equal({
      "Svc-Signature": SVC,
      "Svc-Timestamp": String(SECONDS),
      "Svc-Event-Type": "agent.paused",
      "Svc-Delivery-Id": "dlv_01",
      "webhook-id": "dlv_01",
      "webhook-timestamp": String(SECONDS),
      "webhook-signature": STANDARD,
    });
  });

  it("carry two signatures during a rotation, that of the newest secret first", () => {
    const headers = signed([OTHER_SECRET, SECRET]);
    expect(headers["Svc-Signature"]).to.equal(`${OTHER_SVC},${SVC}`);
    expect(headers["webhook-signature"]).to.equal(`${OTHER_STANDARD} ${STANDARD}`);
  });

  it("are not made without a secret, nor with what is none", () => {
    expect(() => signed([])).to.throw("without a signature");
    expect(() => signed(["secret"])).to.throw("whsec_");
  });

  it("are accepted by the standardwebhooks library, with each secret of a rotation", () => {
    const delivery = { deliveryId: "dlv_01", eventType: "agent.paused", body: BODY, at: new Date() };
    const once = signatureHeaders({ ...delivery, secrets: [SECRET] });
    const twice = signatureHeaders({ ...delivery, secrets: [OTHER_SECRET, SECRET] });
    expect(new Webhook(SECRET).verify(BODY, once)).to.deep.equal(EVENT);
    expect(new Webhook(SECRET).verify(BODY, twice)).to.deep.equal(EVENT);
    expect(new Webhook(OTHER_SECRET).verify(BODY, twice)).to.deep.equal(EVENT);
    expect(() => new Webhook(OTHER_SECRET).verify(BODY, once)).to.throw("No matching signature");
    expect(() => new Webhook(SECRET).verify(BODY.replace("dlv_01", "dlv_02"), once)).to.throw("No matching");
  });
});

describe("verifying a delivery", () => {
  it("gives the event of a genuine one, from bytes or a string, with any kind of headers", () => {
    const bytes = new TextEncoder().encode(BODY);
    const lowerCase = Object.fromEntries(
      Object.entries(signed()).map(([name, value]) => [name.toLowerCase(), value]),
    );
    const asLists = Object.fromEntries(Object.entries(signed()).map(([name, value]) => [name, [value]]));
    for (const rawBody of [BODY, bytes, Buffer.from(bytes)]) {
      for (const headers of [signed(), lowerCase, asLists, new Headers(signed())]) {
        expect(verifyWebhook(input({ rawBody, headers }))).to.deep.equal({ ok: true, event: EVENT });
      }
    }
  });

  it("accepts either secret during a rotation, at both ends of it", () => {
    const rotating = { headers: signed([OTHER_SECRET, SECRET]) };
    expect(verdict({ ...rotating, secret: SECRET })).to.equal("accepted");
    expect(verdict({ ...rotating, secret: OTHER_SECRET })).to.equal("accepted");
    expect(verdict({ secret: [OTHER_SECRET, SECRET] })).to.equal("accepted");
  });

  it("gives an event without an agent, and leaves out what later versions may add", () => {
    const { agent_name: _name, ...bare } = JSON.parse(BODY);
    const verified = verifyWebhook(input(withSignedBody(JSON.stringify({ ...bare, added_later: 1 }))));
    expect(verified).to.deep.equal({ ok: true, event: bare });
  });

  it("refuses a body with any of its bytes altered, taken away or added", () => {
    const bytes = Buffer.from(BODY);
    for (let index = 0; index < bytes.length; index += 1) {
      const flipped = Buffer.from(bytes);
      flipped.writeUInt8(bytes.readUInt8(index) ^ 1, index);
      expect(verdict({ rawBody: flipped }), `byte ${String(index)}`).to.equal("bad_signature");
      expect(verdict({ rawBody: bytes.subarray(0, index) })).to.equal("bad_signature");
    }
    expect(verdict({ rawBody: `${BODY}\n` })).to.equal("bad_signature");
    expect(verdict({ rawBody: JSON.stringify(EVENT, null, 1) }), "written again").to.equal("bad_signature");
  });

  it("refuses headers with any character altered", () => {
    for (const name of ["Svc-Signature", "Svc-Timestamp", "Svc-Event-Type", "Svc-Delivery-Id"]) {
      const genuine = signed()[name] ?? "";
      for (let index = 0; index < genuine.length; index += 1) {
        const given = altered(genuine, index);
        expect(verdict(withHeader(name, given)), `${name}: ${given}`).to.not.equal("accepted");
      }
    }
  });

  const REFUSED: readonly (readonly [string, Partial<WebhookInput>, string])[] = [
    ["another secret", { secret: OTHER_SECRET }, "bad_signature"],
    ["a secret in letters of another case", { secret: SECRET.replace("AAEC", "aaec") }, "bad_signature"],
    ["another second", withHeader("Svc-Timestamp", String(SECONDS + 1)), "bad_signature"],
    ["a fraction of a second", withHeader("Svc-Timestamp", `${SECONDS}.0`), "bad_timestamp"],
    ["a sign", withHeader("Svc-Timestamp", `+${SECONDS}`), "bad_timestamp"],
    ["a negative second", withHeader("Svc-Timestamp", `-${SECONDS}`), "bad_timestamp"],
    ["a zero in front", withHeader("Svc-Timestamp", `0${SECONDS}`), "bad_timestamp"],
    ["hexadecimal digits", withHeader("Svc-Timestamp", "0x6b49d200"), "bad_timestamp"],
    ["an exponent", withHeader("Svc-Timestamp", "18e8"), "bad_timestamp"],
    ["a line behind", withHeader("Svc-Timestamp", `${SECONDS}\n`), "bad_timestamp"],
    ["digits of another script", withHeader("Svc-Timestamp", "١٨٠٠٠٠٠٠٠٠"), "bad_timestamp"],
    ["milliseconds", withHeader("Svc-Timestamp", String(SECONDS * 1_000)), "bad_timestamp"],
    ["a date", withHeader("Svc-Timestamp", AT.toISOString()), "bad_timestamp"],
    ["301 s of age", laterBy(301), "too_old"],
    ["301 s of a future", laterBy(-301), "too_new"],
    ["more age than asked for", { ...laterBy(11), toleranceSeconds: 10 }, "too_old"],
    ["a clock that is none", { now: new Date(Number.NaN) }, "too_old"],
    ["a tolerance that is none", { toleranceSeconds: Number.NaN }, "too_old"],
    ["an upper-case scheme", withHeader("Svc-Signature", SVC.toUpperCase()), "bad_signature"],
    [
      "upper-case digits",
      withHeader("Svc-Signature", `sha256=${SVC.slice(7).toUpperCase()}`),
      "bad_signature",
    ],
    ["a cut signature", withHeader("Svc-Signature", SVC.slice(0, -1)), "bad_signature"],
    ["a longer signature", withHeader("Svc-Signature", `${SVC}0`), "bad_signature"],
    ["the scheme alone", withHeader("Svc-Signature", "sha256="), "bad_signature"],
    ["no scheme", withHeader("Svc-Signature", SVC.slice(7)), "bad_signature"],
    ["another scheme", withHeader("Svc-Signature", SVC.replace("256", "1")), "bad_signature"],
    ["letters beyond ASCII", withHeader("Svc-Signature", SVC.replace("9", "é")), "bad_signature"],
    ["commas alone", withHeader("Svc-Signature", ",,,,"), "bad_signature"],
    ["a signature of the other kind", withHeader("Svc-Signature", STANDARD), "bad_signature"],
    [
      "a genuine signature behind four others",
      withHeader("Svc-Signature", `${`${OTHER_SVC},`.repeat(4)}${SVC}`),
      "bad_signature",
    ],
    ["another id", withHeader("Svc-Delivery-Id", "dlv_02"), "bad_signature"],
    ["another type", withHeader("Svc-Event-Type", "agent.resumed"), "bad_signature"],
    ["another id in the body", withBodyField("id", "dlv_02"), "bad_signature"],
    ["another type in the body", withBodyField("type", "agent.resumed"), "bad_signature"],
    ["an id that is a number", withBodyField("id", 1), "malformed_body"],
    ["no organization", withBodyField("org_id", undefined), "malformed_body"],
    ["a date that is none", withBodyField("created_at", "yesterday"), "malformed_body"],
    ["an agent's id that is null", withBodyField("agent_id", null), "malformed_body"],
    ["data that is a list", withBodyField("data", []), "malformed_body"],
    ["data that is null", withBodyField("data", null), "malformed_body"],
    ["no JSON", withSignedBody("dlv_01"), "malformed_body"],
    ["no object", withSignedBody("[]"), "malformed_body"],
    ["an empty body", withSignedBody(""), "malformed_body"],
    ["a byte order mark", withSignedBody(`\uFEFF${BODY}`), "malformed_body"],
    ["no UTF-8", withSignedBody(Buffer.from(BODY, "latin1")), "malformed_body"],
  ];
  for (const [what, changes, reason] of REFUSED) {
    it(`refuses ${what}: ${reason}`, () => {
      expect(verdict(changes)).to.equal(reason);
    });
  }

  for (const name of ["Svc-Signature", "Svc-Timestamp", "Svc-Event-Type", "Svc-Delivery-Id"]) {
    it(`refuses a delivery whose ${name} is missing, empty or there twice, in any form`, () => {
      const value = signed()[name] ?? "";
      expect(verdict(withHeader(name, undefined)), "missing").to.equal("missing_header");
      expect(verdict(withHeader(name, "")), "empty").to.equal("missing_header");
      expect(verdict(withHeader(name, [])), "an empty list").to.equal("missing_header");
      expect(verdict(withHeader(name, [value, value])), "a list of two").to.equal("missing_header");
      expect(verdict(withHeader(name.toLowerCase(), value)), "two spellings").to.equal("missing_header");
      const headers = new Headers(signed());
      headers.append(name, value);
      expect(verdict({ headers }), "joined").to.not.equal("accepted");
      headers.delete(name);
      expect(verdict({ headers }), "missing in Headers").to.equal("missing_header");
    });
  }

  it("accepts up to 300 s either way, whatever the fraction of the receiver's second", () => {
    for (const seconds of [-300, -1, 0, 1, 300, 300.999]) {
      expect(verdict(laterBy(seconds)), String(seconds)).to.equal("accepted");
    }
  });

  it("finds the genuine signature among others that are not", () => {
    expect(verdict(withHeader("Svc-Signature", `sha256=00,v2=1,,${SVC}`))).to.equal("accepted");
    expect(verdict(withHeader("Svc-Signature", `${OTHER_SVC},${SVC}`))).to.equal("accepted");
  });

  it("throws where the receiver has no secret, so that an empty one never lets a sender in", () => {
    for (const secret of ["", "whsec_", "secret", [], [SECRET, ""]]) {
      const headers = withHeader("Svc-Signature", svcSignature("", String(SECONDS), BODY)).headers;
      expect(() => verdict({ secret, headers }), JSON.stringify(secret)).to.throw(TypeError, "whsec_");
    }
  });

  it(`accepts what was signed and nothing that differs in one bit (TEST_SEED=${seed})`, () => {
    const anything = fc.record({
      key: fc.uint8Array({ minLength: 32, maxLength: 32 }),
      id: fc.stringMatching(/^dlv_[0-9A-Z]{1,26}$/),
      type: fc.constantFrom("transaction.completed", "agent.created"),
      data: fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue()),
      seconds: fc.integer({ min: 1, max: 4_000_000_000 }),
      place: fc.nat(),
      bit: fc.integer({ min: 0, max: 7 }),
    });
    fc.assert(
      fc.property(anything, ({ bit, data, id, key, place, seconds, type }) => {
        const secret = newWebhookSecret(() => key);
        const event = { id, type, created_at: "2027-01-15T08:00:00.123Z", org_id: "o", data };
        const body = JSON.stringify(event);
        const now = new Date(seconds * 1_000);
        const headers = signatureHeaders({
          deliveryId: id,
          eventType: type,
          body,
          at: now,
          secrets: [secret],
        });
        const rawBody = Buffer.from(body);
        const genuine = verifyWebhook({ rawBody, headers, secret, now });
        expect(genuine).to.deep.equal({ ok: true, event: JSON.parse(body) });
        const index = place % rawBody.length;
        rawBody.writeUInt8(rawBody.readUInt8(index) ^ (1 << bit), index);
        expect(verifyWebhook({ rawBody, headers, secret, now })).to.deep.equal({
          ok: false,
          reason: "bad_signature",
        });
      }),
      { seed },
    );
  });
});
