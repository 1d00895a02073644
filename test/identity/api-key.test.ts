import { randomBytes } from "node:crypto";
import * as zlib from "node:zlib";
import { expect } from "chai";
import * as fc from "fast-check";
import { apiKeyHashes } from "../../src/secrets/api-key-hash.ts";
import { classifyApiKey, formatApiKey, last4, type ApiKeyKind } from "../../src/domain/api-key.ts";
import { masterKeyOf } from "./support.ts";
import { seed } from "../support/seed.ts";

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const AGENT_KEY = "sk_svc_live_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcd3gnORk";
const ORGANIZATION_KEY = "svc_org_live_zyxwvutsrqponmlkjihgfedcbaZYXWVUTSRQPONM1V9mlA";

/** The values were computed with Python's zlib.crc32, independently of the code. */
const TABLE: readonly (readonly [why: string, value: string, kind: ApiKeyKind | null])[] = [
  ["an agent's key", AGENT_KEY, "agent"],
  ["an organization's key", ORGANIZATION_KEY, "organization"],
  ["all zeros", "sk_svc_live_000000000000000000000000000000000000000026b0ir", "agent"],
  ["a checksum padded with 0", "svc_org_live_0000000000000000000000000000000000000000024GMM", "organization"],
  ["a checksum padded with 00", "sk_svc_live_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA14200S9WA", "agent"],
  ["nothing", "", null],
  ["a prefix alone", "sk_svc_live_", null],
  ["a foreign prefix", AGENT_KEY.replace("sk_svc_live_", "sk_svc_test_"), null],
  ["the other kind's prefix", AGENT_KEY.replace("sk_svc_live_", "svc_org_live_"), null],
  ["a prefix in capitals", AGENT_KEY.replace("sk_svc", "SK_SVC"), null],
  ["one character short", AGENT_KEY.slice(0, -1), null],
  ["one character long", `${AGENT_KEY}0`, null],
  ["a line break at the end", `${AGENT_KEY}\n`, null],
  ["a space in front", ` ${AGENT_KEY}`, null],
  ["a letter's case changed", AGENT_KEY.replace("A", "a"), null],
  ["two neighbours swapped", AGENT_KEY.replace("01", "10"), null],
  ["a character outside base 62", AGENT_KEY.replace("0", "-"), null],
  ["a letter that only looks like one", AGENT_KEY.replace("A", "А"), null],
  ["a changed checksum", `${AGENT_KEY.slice(0, -1)}l`, null],
  ["a session token", "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", null],
];

describe("An API key's value", () => {
  for (const [why, value, kind] of TABLE) {
    it(`is taken for ${kind ?? "no key"}: ${why}`, () => {
      expect(classifyApiKey(value)).to.equal(kind);
    });
  }

  it("has 40 random characters, and its checksum is the CRC-32 of all that precedes in base 62", () => {
    for (const kind of ["agent", "organization"] as const) {
      const value = formatApiKey(kind, randomBytes);
      expect(value).to.match(/^(sk_svc_live|svc_org_live)_[0-9A-Za-z]{46}$/);
      let sum = 0;
      for (const digit of value.slice(-6)) sum = sum * 62 + BASE62.indexOf(digit);
      if ("crc32" in zlib) expect(sum).to.equal(zlib.crc32(value.slice(0, -6)));
      expect(classifyApiKey(value)).to.equal(kind);
    }
  });

  it(`is recognized whatever its bytes, refused with one changed (TEST_SEED=${seed})`, () => {
    const bytes = fc.infiniteStream(fc.integer({ min: 0, max: 255 }));
    const mutation = fc.tuple(fc.nat(), fc.constantFrom(...Array.from(BASE62)));
    const kind = fc.constantFrom<ApiKeyKind>("agent", "organization");
    fc.assert(
      fc.property(kind, bytes, mutation, (made, stream, [position, letter]) => {
        // Half of the bytes are small, so that a source that repeats itself still yields enough letters.
        const source = (size: number) =>
          Uint8Array.from(
            { length: size },
            (_, index) => (stream.next().value ?? 0) % (index % 2 ? 256 : 62),
          );
        const value = formatApiKey(made, source);
        expect(classifyApiKey(value)).to.equal(made);
        const at = position % value.length;
        const mutant = value.slice(0, at) + letter + value.slice(at + 1);
        if (mutant !== value) expect(classifyApiKey(mutant)).to.equal(null);
      }),
      { seed, numRuns: 300 },
    );
  });

  it("draws every letter equally often: bytes that would favour the first ones are thrown away", () => {
    const every = Uint8Array.from({ length: 64 }, (_, index) => 192 + index);
    const body = formatApiKey("agent", () => every).slice("sk_svc_live_".length, -6);
    // 192 to 247 are kept, 248 to 255 are not: after 56 letters it would begin again, and 40 fit before.
    expect(body).to.equal(Array.from(every.slice(0, 40), (byte) => BASE62.charAt(byte % 62)).join(""));
    const counts = new Map<string, number>();
    for (let made = 0; made < 3_000; made += 1) {
      const letters = formatApiKey("agent", randomBytes).slice("sk_svc_live_".length, -6);
      for (const letter of letters) counts.set(letter, (counts.get(letter) ?? 0) + 1);
    }
    const expected = (3_000 * 40) / 62;
    // Six standard deviations: one failure in 16 million runs.
    for (const count of counts.values())
      expect(Math.abs(count - expected)).to.be.below(6 * Math.sqrt(expected));
    expect(counts.size).to.equal(62);
  });

  it("is not made from a source that only yields what must be thrown away", () => {
    expect(() => formatApiKey("agent", (size) => new Uint8Array(size).fill(255))).to.throw(
      "does not look random",
    );
  });

  it("shows its last four characters only", () => {
    expect(last4(AGENT_KEY)).to.equal("nORk");
  });

  it("is stored as a hash that is the same for one pepper, and another for another", () => {
    const hash = apiKeyHashes(masterKeyOf("a")).make(AGENT_KEY);
    expect(hash).to.match(/^[0-9a-f]{8}\.[A-Za-z0-9_-]{43}$/);
    expect(hash).to.equal(apiKeyHashes(masterKeyOf("a")).make(AGENT_KEY));
    expect(hash).not.to.equal(apiKeyHashes(masterKeyOf("b")).make(AGENT_KEY));
    expect(hash).not.to.equal(apiKeyHashes(masterKeyOf("a")).make(ORGANIZATION_KEY));
  });
});
