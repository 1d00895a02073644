import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { startDnsServer, type DnsServer } from "../support/dns-server.ts";
import { LOOPBACK, startIdentityProvider } from "../support/identity-provider.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { elevate, newWorld } from "../support/world.ts";

describe("domains of an identity provider, where they need a proof", () => {
  let dns: DnsServer;
  let service: TestService;
  before(async () => {
    dns = await startDnsServer();
    const settings = { SSO_DOMAIN_DNS: dns.address };
    service = await startTestService({ worker: false, clientDocuments: LOOPBACK, settings });
  });
  after(async () => {
    await service?.stop();
    await dns?.close();
  });

  it("an organization names no domain whose DNS does not name it", async () => {
    const [world, other] = [await newWorld(service), await newWorld(service)];
    const { callbackUrl } = await world.api.ok("getSso", 200, { token: world.token });
    const provider = await startIdentityProvider(callbackUrl);
    try {
      const { clientId, clientSecret, issuer } = provider;
      const [own, foreign] = [`${randomUUID()}.example.com`, `${randomUUID()}.example.com`];
      const choice = { issuer, clientId, clientSecret, required: false, jit: null };
      await elevate(world);
      const named = (...domains: string[]) => ({ token: world.token, body: { ...choice, domains } });
      const refused = async (...domains: string[]) =>
        (await world.api.refused("setSso", 400, "VALIDATION_FAILED", named(...domains))).message;
      const { organizationId } = world.organization;
      const record = `_agent-spending-control.${own}`;
      expect(await refused(own))
        .to.include(record)
        .and.include(`organization=${organizationId}`);
      dns.texts.set(record, `organization=${other.organization.organizationId}`);
      await refused(own);
      dns.texts.set(record, `organization=${organizationId}`);
      expect(await refused(own, foreign)).to.include(foreign);
      await world.api.ok("setSso", 200, named(own));
    } finally {
      await provider.close();
    }
  });
});
