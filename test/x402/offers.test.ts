import { Challenge, Credential } from "mppx";
import { decodePaymentSignatureHeader } from "@x402/core/http";
import { expect } from "chai";
import { getAddress, keccak256, stringToBytes } from "viem";
import { chosenOffer, presented, validBeforeOf } from "../../src/rails/challenge/protocols/choose.ts";
import { nonceFor } from "../../src/rails/pocket/signing.ts";
import type { Fetched, TokenTerms } from "../../src/rails/challenge/protocols/offer.ts";
import { challengeMpp, challengeV2, encoded, requirement, somebody } from "./hand-made.ts";

const NOW = Date.UTC(2026, 0, 1);
const token = somebody();
const terms: TokenTerms = { chainId: 31_337, token, decimals: 6, name: "Test", version: "2" };
const facts = { token, name: "Test", version: "2" };
const MAX_MC = 5_000;

const answer = (headers: Fetched["headers"], body: unknown = {}): Fetched => ({
  url: "https://shop.example/",
  httpStatus: 402,
  headers,
  body: Buffer.from(JSON.stringify(body)),
});
const v2 = (...accepts: readonly unknown[]) => answer({ "payment-required": challengeV2(...accepts) });
const mpp = (fields: Parameters<typeof challengeMpp>[1] = {}) =>
  answer({ "www-authenticate": challengeMpp({ token }, fields) });
const chosen = (fetched: Fetched, given = terms) => chosenOffer(fetched, given, MAX_MC, NOW);

function offerIn(fetched: Fetched, given = terms) {
  const found = chosen(fetched, given);
  if (found.kind !== "offer") throw new Error(JSON.stringify(found));
  return found.offer;
}

const authorization = {
  from: somebody(),
  to: somebody(),
  units: 1_000n,
  validAfter: 0,
  validBefore: 1_800_000_000,
  nonce: keccak256("0x01"),
  signature: `0x${"11".repeat(65)}`,
} as const;

const nested = (levels: number): unknown => {
  let value: unknown = 1;
  for (let level = 0; level < levels; level += 1) value = [value];
  return value;
};

/** Offers that are never signed, by the reason that is told. */
const UNPAYABLE: readonly (readonly [what: string, fetched: Fetched, reason: RegExp])[] = [
  ["another chain", v2(requirement(facts, { network: "eip155:1" })), /another chain/],
  ["a chain by another name", v2(requirement(facts, { network: "base" })), /another chain/],
  ["another token", v2(requirement(facts, { asset: somebody() })), /another token/],
  ["a forged name", v2(requirement(facts, { extra: { name: "Evil", version: "2" } })), /domain/],
  ["a forged version", v2(requirement(facts, { extra: { name: "Test", version: "1" } })), /domain/],
  ["no domain", v2(requirement(facts, { extra: null })), /domain/],
  ["another scheme", v2(requirement(facts, { scheme: "upto" })), /scheme/],
  [
    "Permit2",
    v2(requirement(facts, { extra: { name: "Test", version: "2", assetTransferMethod: "permit2" } })),
    /transfer/,
  ],
  ["nobody", v2(requirement(facts, { payTo: `0x${"0".repeat(40)}` })), /no one/],
  ["the token itself", v2(requirement(facts, { payTo: token })), /no one/],
  ["nothing", v2(requirement(facts, { amount: "0" })), /price/],
  ["a negative price", v2(requirement(facts, { amount: "-1" })), /read/],
  ["a fraction of a unit", v2(requirement(facts, { amount: "1.5" })), /read/],
  ["more than exists", v2(requirement(facts, { amount: "9".repeat(30) })), /price/],
  ["no address", v2(requirement(facts, { payTo: "shop.eth" })), /read/],
  ["no JSON", answer({ "payment-required": "%%%" }), /read/],
  ["a challenge of 60 levels", v2(requirement(facts, { nested: nested(60) })), /read/],
  ["a challenge above 16 KiB", answer({ "payment-required": "A".repeat(16_385) }), /too large/],
  [
    "splits",
    mpp({
      request: {
        methodDetails: {
          chainId: 31_337,
          credentialTypes: ["authorization"],
          splits: [{ amount: "1", recipient: token }],
        },
      },
    }),
    /splits/,
  ],
  ["another chain by MPP", mpp({ request: { methodDetails: { chainId: 1 } } }), /another chain/],
  [
    "a hash by MPP",
    mpp({ request: { methodDetails: { chainId: 31_337, credentialTypes: ["hash"] } } }),
    /authorization/,
  ],
  ["another method", mpp({ params: { method: "stripe" } }), /method/],
  ["another header", mpp({ params: { header: "cookie" } }), /header/],
  ["an expired challenge", mpp({ params: { expires: "2025-12-31T23:59:59Z" } }), /expired/],
];

describe("offers of shops that ask for payment", () => {
  for (const [what, fetched, reason] of UNPAYABLE) {
    it(`one for ${what} is not payable`, () => {
      const found = chosen(fetched);
      expect(found.kind).to.equal("none");
      expect(found.kind === "none" ? found.reasons.join() : "").to.match(reason);
    });
  }

  it("a 402 that asks in no known way offers nothing", () => {
    expect(chosen(answer({}))).to.deep.equal({ kind: "none", reasons: [] });
  });

  it("a shop's challenge made of spaces occupies the process for no noticeable time", () => {
    const spaces = " ".repeat(7_900);
    const header = `Payment id="1"${spaces}realm${spaces}!`;
    const before = process.cpuUsage();
    expect(chosen(answer({ "www-authenticate": header })).kind).to.equal("none");
    expect(process.cpuUsage(before).user).to.be.below(50_000);
  });

  it("the cheapest payable offer is taken, and a price above the maximum is told", () => {
    const [dear, cheap, foreign] = ["90000", "2000", "1"].map((amount, at) =>
      requirement(facts, { amount, ...(at === 2 ? { network: "eip155:1" } : {}) }),
    );
    expect(offerIn(v2(dear, foreign, cheap)).units).to.equal(2_000n);
    expect(chosen(v2(dear, foreign))).to.deep.equal({ kind: "above_max", leastMc: 9_000 });
  });

  it("a price is counted in thousandths of a cent, and a started one whole", () => {
    expect(offerIn(v2(requirement(facts, { amount: "1000" }))).amountMc).to.equal(100);
    expect(offerIn(v2(requirement(facts, { amount: "1001" }))).amountMc).to.equal(101);
    const tokens = { ...terms, decimals: 18 };
    expect(offerIn(v2(requirement(facts, { amount: "1" })), tokens).amountMc).to.equal(1);
  });

  it("an authorization is good for 300 s at most, whatever the shop asks for", () => {
    for (const [maxTimeoutSeconds, seconds] of [
      [315_360_000, 300],
      [300, 300],
      [60, 60],
      [0, 30],
    ] as const) {
      const offer = offerIn(v2(requirement(facts, { maxTimeoutSeconds })));
      expect(validBeforeOf(offer, NOW)).to.equal(NOW / 1_000 + seconds);
    }
    const soon = offerIn(mpp({ params: { expires: "2026-01-01T00:00:20Z" } }));
    expect(validBeforeOf(soon, NOW)).to.equal(NOW / 1_000 + 20);
  });

  it("what pays version 2 is read by the package's own server, the accepted offer verbatim", () => {
    const accepted = requirement(facts, { extra: { name: "Test", version: "2", more: [1] } });
    const header = presented(offerIn(v2(accepted)).frame, authorization);
    expect(header.name).to.equal("payment-signature");
    const payload = decodePaymentSignatureHeader(header.value);
    expect(payload).to.deep.include({ x402Version: 2, accepted, resource: { url: "/" } });
    expect(payload.payload).to.deep.equal({
      signature: authorization.signature,
      authorization: {
        from: authorization.from,
        to: authorization.to,
        value: "1000",
        validAfter: "0",
        validBefore: "1800000000",
        nonce: authorization.nonce,
      },
    });
  });

  it("version 1 asks in the body, and by the fixed names of networks", () => {
    const { network: _network, ...rest } = { network: "", ...requirement(facts) };
    const accepts = [{ ...rest, network: "base-sepolia", maxAmountRequired: "3000" }];
    const asked = answer({}, { x402Version: 1, error: "pay", accepts });
    expect(chosen(asked).kind).to.equal("none");
    const offer = offerIn(asked, { ...terms, chainId: 84_532 });
    expect(offer.amountMc).to.equal(300);
    const header = presented(offer.frame, authorization);
    expect(header.name).to.equal("x-payment");
    const payload: unknown = JSON.parse(Buffer.from(header.value, "base64").toString());
    expect(payload).to.deep.include({ x402Version: 1, scheme: "exact", network: "base-sepolia" });
    expect(header.value).to.equal(encoded(payload));
  });

  it("what pays MPP is the challenge of mppx again, with the nonce that it demands", () => {
    const challenge = Challenge.from({
      id: "an id",
      realm: 'shop "one", Inc.',
      method: "evm",
      intent: "charge",
      description: "Wetter \u2014 heute",
      opaque: "eyJhIjoiYiJ9",
      request: {
        amount: "2000",
        currency: token,
        recipient: somebody(),
        methodDetails: { chainId: 31_337, credentialTypes: ["authorization"], decimals: 6 },
      },
    });
    const others = `Basic realm="x", ${Challenge.serialize(challenge)}`;
    const offer = offerIn(answer({ "www-authenticate": others }));
    expect(offer.nonce).to.equal(keccak256(stringToBytes('an idshop "one", Inc.')));
    expect(nonceFor('an idshop "one", Inc.'), "no shop demands the service's own").to.not.equal(offer.nonce);
    const header = presented(offer.frame, authorization);
    const credential = Credential.deserialize(header.value);
    expect(credential.challenge).to.deep.equal(challenge);
    expect(credential.source).to.equal(`did:pkh:eip155:31337:${getAddress(authorization.from)}`);
  });
});
