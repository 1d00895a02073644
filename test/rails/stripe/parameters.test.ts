import { type ChildProcess, spawn } from "node:child_process";
import { createServer } from "node:net";
import { homedir } from "node:os";
import path from "node:path";
import { expect } from "chai";
import { findOnPath } from "../../../src/engines/tools.ts";
import { GuardedFetch, type GuardedRequest } from "../../../src/lib/guarded-fetch/guarded-fetch.ts";
import { newId } from "../../../src/lib/ids.ts";
import { DISPUTE_REASONS } from "../../../src/domain/ledger/books.ts";
import { NAMED_CODES } from "../../../src/rails/stripe/categories.ts";
import { StripeClient } from "../../../src/rails/stripe/client.ts";
import { disputesOf } from "../../../src/rails/stripe/disputes.ts";
import { simulatedElements, stripeIssuer } from "../../../src/rails/stripe/issuer.ts";
import { eventually } from "../../chain/support.ts";

/** Returns the path of stripe-mock, which checks calls against Stripe's own OpenAPI document; null if there is none. */
async function stripeMock(): Promise<string | null> {
  const { GOPATH = path.join(homedir(), "go"), PATH = "", STRIPE_MOCK } = process.env;
  const folders = [PATH, path.join(GOPATH, "bin")].join(path.delimiter);
  return STRIPE_MOCK ?? (await findOnPath("stripe-mock", { PATH: folders }));
}

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });

describe("Stripe's own description of its API", function () {
  this.timeout(30_000);
  const guard = new GuardedFetch({ allowCidrs: ["127.0.0.0/8"], extraCa: null, allowsHttp: true });
  let mock: ChildProcess | null = null;
  let baseUrl = "";

  before(async function () {
    const file = await stripeMock();
    if (file === null) return this.skip();
    const port = await freePort();
    baseUrl = `http://127.0.0.1:${port}`;
    mock = spawn(file, ["-http-addr", `127.0.0.1:${port}`, "-https-addr", "127.0.0.1:0"], {
      stdio: "ignore",
    });
    const headers = { authorization: "Bearer rk_test_1" };
    await eventually("it answers", () =>
      fetch(`${baseUrl}/v1/balance`, { headers })
        .then(({ ok }) => ok)
        .catch(() => false),
    );
  });
  after(() => {
    mock?.kill();
    guard.close();
  });

  it("allows every call that the service makes, with its parameters", async () => {
    const calls: string[] = [];
    const refused: string[] = [];
    const fetch: Pick<GuardedFetch, "fetch"> = {
      async fetch(request: GuardedRequest, bounds) {
        const outcome = await guard.fetch(request, bounds);
        const { pathname, search } = new URL(request.url);
        const call = `${request.method} ${pathname.replaceAll(/\b[a-z]+_\w*[\dA-Z]\w*/g, ":id")}`;
        calls.push(call);
        const isAllowed = outcome.kind === "answered" && outcome.httpStatus === 200;
        if (!isAllowed) refused.push(`${call}${search} ${request.body ?? ""}: ${JSON.stringify(outcome)}`);
        return outcome;
      },
    };
    const made = {
      accountId: "acct_1",
      isTest: true,
      cardholderId: "ich_1234",
      eventEndpointId: "we_1234",
      eventSecret: "whsec_1",
    };
    const account = { apiKey: "rk_test_1", made, publishableKey: null, authorizationSecret: null };
    const issuer = stripeIssuer({
      name: "stripe",
      baseUrl,
      elements: simulatedElements(baseUrl),
      fetch,
    }).open(account);
    const order = { transactionId: newId("txn"), agentId: "a", amountCents: 100, isRepeated: true };
    const all = { only: null, never: [] };
    const lists = [
      { only: NAMED_CODES, never: [] },
      { only: null, never: ["7995"] },
    ];
    // stripe-mock has one object of each kind, whatever was asked for: answers mean nothing here.
    await issuer.setUp({
      connectionId: "con_1",
      organizationName: "Acme",
      eventsUrl: "https://example.com/events",
      authorizationUrl: "https://example.com/authorizations",
    });
    for (const categories of lists)
      await issuer.arm({ ...order, transactionId: newId("txn"), isRepeated: false, categories });
    const card = await issuer.arm({ ...order, categories: all });
    const cardRef = card.ok ? card.value.cardRef : "";
    await issuer.booksOf(cardRef);
    for await (const changed of issuer.changedSince(new Date())) expect(changed.cardRef).to.be.a("string");
    await issuer.cardView(cardRef, "nonce").catch(() => null);
    for (const reason of DISPUTE_REASONS)
      await issuer.dispute(cardRef, { reason, explanation: "x", amountCents: 50 });
    await issuer.balance();
    await issuer.tryAuthorization(cardRef, 100);
    const client = new StripeClient({ apiKey: account.apiKey, baseUrl, fetch });
    const disputed = {
      id: "ipi_1",
      amount: -100,
      authorization: null,
      card: cardRef,
      created: 0,
      type: "capture",
    };
    await disputesOf(client, [{ ...disputed, dispute: "idp_1234" }]);
    await issuer.disarm(cardRef);
    await issuer.tearDown();
    expect(refused).to.deep.equal([]);
    expect([...new Set(calls)].toSorted()).to.deep.equal([
      "DELETE /v1/webhook_endpoints/:id",
      "GET /v1/account",
      "GET /v1/balance",
      "GET /v1/events",
      "GET /v1/issuing/authorizations",
      "GET /v1/issuing/cardholders",
      "GET /v1/issuing/cards",
      "GET /v1/issuing/disputes/:id",
      "GET /v1/issuing/transactions",
      "GET /v1/webhook_endpoints",
      "POST /v1/ephemeral_keys",
      "POST /v1/issuing/cardholders",
      "POST /v1/issuing/cards",
      "POST /v1/issuing/cards/:id",
      "POST /v1/issuing/disputes",
      "POST /v1/issuing/disputes/:id/submit",
      "POST /v1/test_helpers/issuing/authorizations",
      "POST /v1/webhook_endpoints",
    ]);
  });
});
