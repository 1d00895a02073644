import { expect } from "chai";
import { McpCaller } from "../mcp/support.ts";
import { chromiumOrPending } from "../support/chromium.ts";
import { Dashboard } from "../support/dashboard.ts";
import { LOOPBACK, startIdentityProvider } from "../support/identity-provider.ts";
import { newPkce, OAuthCaller, tokensOf } from "../support/oauth.ts";
import { noteSecretsGiven } from "../support/secrets.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { TotpCodes } from "../support/totp.ts";
import { elevate, newWorld, type World } from "../support/world.ts";

describe("connecting a client, in a browser", function () {
  let service: TestService;
  let world: World;
  let page: Dashboard;
  let codes: TotpCodes;

  before(async function () {
    const browser = await chromiumOrPending(this);
    service = await startTestService({ evmRpcUrl: null, clientDocuments: LOOPBACK });
    world = await newWorld(service);
    const { secret } = await world.api.ok("enrollTotp", 201, { token: world.token });
    codes = new TotpCodes(secret);
    await world.api.ok("confirmTotp", 200, { token: world.token, body: { code: await codes.next() } });
    page = await Dashboard.open(browser, new URL(service.baseUrl).origin);
  });
  after(async () => {
    await page?.close();
    await service?.stop();
  });

  /** A client that is called back at the service's own address, so that the browser asks nobody else. */
  const callingBack = () =>
    OAuthCaller.register(service.baseUrl, {
      client_name: "Desk <b>helper</b>",
      redirect_uris: [`${service.baseUrl}/healthz`],
    });

  const callback = async (): Promise<URLSearchParams> => {
    await page.waitFor('location.pathname === "/healthz"');
    return new URL(page.page.url()).searchParams;
  };

  it("the person signs in, picks an agent, unticks a tool, confirms, and returns with a code", async () => {
    const agent = await world.agent({ name: "Buyer" });
    await world.agent({ name: "Traveller" });
    const client = await callingBack();
    const pkce = newPkce();
    const { pathname, search } = client.authorizationUrl(pkce);
    await page.go(`${pathname}${search}`);
    await page.signIn(world.organization);
    await page.code(await codes.next());
    const read = await page.sees("wants to act");
    expect(read).to.include("Desk <b>helper</b>").and.include(new URL(service.baseUrl).host);
    expect(read).to.include("A program on this computer");
    await page.sees("Traveller");
    await page.press("Buyer", "radio");
    await page.sees("This agent has a key in use");
    await page.press("Buy on the web (HTTP 402)", "checkbox");
    expect(await page.barriers()).to.deep.equal([]);
    await page.press("Revoke and connect");
    await page.sees("Confirm that it’s you");
    await page.code(await codes.next());
    const answered = await callback();
    expect(answered.get("state")).to.equal("state");
    expect(answered.get("iss")).to.equal(service.baseUrl);

    const response = await client.exchange(answered.get("code") ?? "", pkce);
    const tokens = tokensOf.parse(await response.json());
    noteSecretsGiven(tokens);
    const caller = await McpCaller.connect(service.baseUrl, tokens.access_token);
    const { tools } = await caller.client.listTools();
    expect(tools.map(({ name }) => name))
      .to.include("create_card_payment")
      .and.not.include("pay_x402_request");
    const refused = await caller.call("pay_x402_request", {
      url: "https://shop.invalid/",
      maxAmountCents: 1,
      purpose: "x",
      idempotencyKey: "1",
    });
    expect(refused.body["error"]).to.equal("TOOL_NOT_ALLOWED");
    await caller.close();
    await world.api.refused("listPayments", 401, "UNAUTHORIZED", { token: agent.key });
  });

  it("an agent that is made on the way is connected without a question about its first key", async () => {
    const { pathname, search } = (await callingBack()).authorizationUrl(newPkce());
    await page.go(`${pathname}${search}`);
    await page.sees("wants to act");
    await page.press("New agent");
    await page.fill("Name", "Made on the way");
    await page.fill("Budget", "100");
    await page.fill("Require approval above", "5");
    await page.press("Create");
    await page.sees("What the client may do");
    await page.press("Allow");
    expect((await callback()).get("code")).to.match(/./);
    const query = { name: "Made on the way" };
    const { agents } = await world.api.ok("listAgents", 200, { token: world.token, query });
    expect(agents.map(({ key }) => key?.kind)).to.deep.equal(["oauth"]);
  });

  it("a person who denies sends the client an error, and nothing is connected", async () => {
    const agent = await world.agent();
    const { pathname, search } = (await callingBack()).authorizationUrl(newPkce());
    await page.go(`${pathname}${search}`);
    await page.sees("wants to act");
    await page.press("Deny");
    const answered = await callback();
    expect(answered.get("error")).to.equal("access_denied");
    expect(answered.get("code")).to.equal(null);
    await world.api.ok("listPayments", 200, { token: agent.key });
  });

  it("a person signs in by the company's provider, and is back on the page that they came for", async () => {
    const { callbackUrl } = await world.api.ok("getSso", 200, { token: world.token });
    const provider = await startIdentityProvider(callbackUrl);
    try {
      const { clientId, clientSecret, issuer } = provider;
      const jit = { role: "auditor" } as const;
      const body = { issuer, clientId, clientSecret, domains: ["company.example.com"], required: false, jit };
      await elevate(world);
      await world.api.ok("setSso", 200, { token: world.token, body });
      const email = "ada@company.example.com";
      provider.expects({ sub: "ada", email, email_verified: true, name: "Ada of the company" });
      const visitor = await Dashboard.open(
        page.page.browser(),
        new URL(service.baseUrl).origin,
        "/transactions",
      );
      await visitor.fill("E-mail", email);
      await visitor.press("Sign in with your company");
      await visitor.waitFor('location.pathname === "/transactions"');
      await visitor.sees("Ada of the company");
      // What an auditor reads, and a member does not.
      await visitor.walk("/settings/audit");
      await visitor.sees("Audit log");
      await visitor.go(`${new URL(callbackUrl).pathname}?state=made-up&code=made-up`);
      await visitor.sees("did not let you in");
      // Not checked: it has been to the provider, which is another host.
      await visitor.page.close();
    } finally {
      await provider.close();
    }
  });
});
