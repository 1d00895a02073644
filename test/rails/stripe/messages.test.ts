import { createHmac } from "node:crypto";
import { expect } from "chai";
import { answerTo, isSigned, readMessage } from "../../../src/rails/stripe/messages.ts";

const NOW = new Date("2026-11-27T12:00:00Z");
const SECRETS = ["whsec_authorizations", "whsec_events"];
const ACCOUNT = "acct_1";

const authorization = {
  id: "iauth_1",
  amount: 2_000,
  approved: true,
  card: { id: "ic_1", last4: "4242" },
  created: 1_790_000_000,
  merchant_data: { name: "Rocket Rides", category_code: "4121", network_id: "99", country: "US" },
  pending_request: { amount: 500, currency: "usd", is_amount_controllable: false },
  request_history: [{ amount: 2_000, approved: true, reason: "webhook_approved" }],
  status: "pending",
  transactions: [],
  another_field: null,
};

const eventOf = (type: string, object: unknown, more: object = {}): Buffer =>
  Buffer.from(JSON.stringify({ id: "evt_1", type, created: 1_790_000_000, data: { object }, ...more }));

function signatureOf(body: Buffer, secret = SECRETS[0] ?? "", at = NOW): string {
  const seconds = Math.floor(at.getTime() / 1_000);
  const v1 = createHmac("sha256", secret).update(`${seconds}.${body.toString()}`).digest("hex");
  return `t=${seconds},v1=${v1},v0=00`;
}

const read = (body: Buffer, signature = signatureOf(body)) =>
  readMessage(
    { headers: { "stripe-signature": signature }, body },
    { secrets: SECRETS, accountId: ACCOUNT },
    NOW,
  );

describe("Stripe's messages", () => {
  it("are believed with a fresh signature of the exact bytes by one of the secrets only", () => {
    const body = eventOf("issuing_authorization.request", authorization);
    const isTrue = (signature: string, bytes = body, now = NOW) =>
      isSigned({ headers: { "stripe-signature": signature }, body: bytes }, SECRETS, now);
    const signature = signatureOf(body);
    expect(isTrue(signature)).to.equal(true);
    expect(isTrue(signatureOf(body, SECRETS[1]))).to.equal(true);
    const [time = "", value = ""] = signature.split(",");
    expect(isTrue(`${time},v1=${"0".repeat(64)},${value}`), "one of several").to.equal(true);
    const later = (seconds: number) => new Date(NOW.getTime() + seconds * 1_000);
    expect(isTrue(signature, body, later(300))).to.equal(true);
    const forged: readonly boolean[] = [
      isTrue(signature, body, later(302)),
      isTrue(signature, body, later(-302)),
      isTrue(signature, Buffer.concat([body, Buffer.from(" ")])),
      isTrue(signatureOf(body, "whsec_other")),
      isTrue(signature.replace(time, `t=${Number(time.slice(2)) + 1}`)),
      isTrue(signature.replace("v1=", "v0=")),
      isTrue(`${time},v1=`),
      isTrue(`${time},v1=zz`),
      isTrue(value),
      isTrue(""),
      isSigned({ headers: {}, body }, SECRETS, NOW),
      isSigned({ headers: { "stripe-signature": signature }, body }, [], NOW),
    ];
    expect(forged).to.deep.equal(forged.map(() => false));
    expect(read(body, "t=1,v1=00")).to.deep.equal({ kind: "forged" });
  });

  it("name the card, the amount on top and the request's number", () => {
    expect(read(eventOf("issuing_authorization.request", authorization))).to.deep.equal({
      kind: "request",
      cardRef: "ic_1",
      authorization: "iauth_1",
      position: 1,
      amountMc: 500_000,
      currency: "USD",
      merchant: { name: "Rocket Rides", category: "4121", networkId: "99", country: "US" },
    });
    const { request_history: _history, ...unnumbered } = authorization;
    expect(read(eventOf("issuing_authorization.request", unnumbered))).to.deep.include({ position: null });
    const sparse = { ...authorization, request_history: [], merchant_data: { name: null } };
    expect(read(eventOf("issuing_authorization.request", sparse))).to.deep.include({
      position: 0,
      merchant: { name: "", category: null, networkId: null, country: null },
    });
  });

  it("hint at cards and deposits; what is of another account or no interest is left", () => {
    const hint = { kind: "hint", eventId: "evt_1", cardRef: "ic_1" };
    expect(read(eventOf("issuing_authorization.updated", authorization))).to.deep.equal(hint);
    expect(read(eventOf("issuing_transaction.created", { id: "ipi_1", card: "ic_1" }))).to.deep.equal(hint);
    expect(read(eventOf("issuing_dispute.closed", { metadata: { card: "ic_1" } }))).to.deep.equal(hint);
    const topup = { id: "tu_1", amount: 5_000, currency: "usd" };
    const deposit = { kind: "deposit", eventId: "evt_1", depositId: "tu_1", amountCents: 5_000 };
    expect(read(eventOf("topup.succeeded", topup, { account: ACCOUNT }))).to.deep.equal(deposit);
    const others = [
      eventOf("topup.succeeded", topup, { account: "acct_2" }),
      eventOf("topup.succeeded", { ...topup, currency: "eur" }),
      eventOf("topup.succeeded", { ...topup, amount: -1 }),
      eventOf("issuing_authorization.request", { ...authorization, pending_request: null }),
      eventOf("issuing_dispute.closed", { metadata: {} }),
      eventOf("customer.created", {}),
      Buffer.from("null"),
      Buffer.from("{"),
    ];
    for (const body of others) expect(read(body), body.toString()).to.deep.equal({ kind: "other" });
  });

  it("are answered as Stripe reads it", () => {
    const request = read(eventOf("issuing_authorization.request", authorization));
    if (request.kind !== "request") throw new Error(request.kind);
    const { body, headers } = answerTo(request, null);
    expect(headers).to.deep.equal({
      "content-type": "application/json",
      "stripe-version": "2026-08-26.dahlia",
    });
    expect(JSON.parse(body)).to.deep.equal({ approved: true });
    const refused: unknown = JSON.parse(answerTo(request, "NOT_ACTIVE").body);
    expect(refused).to.deep.equal({ approved: false, metadata: { refusal: "NOT_ACTIVE" } });
  });
});
