import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { type Authority, type Identity, newAuthority } from "../support/certificates/authority.ts";
import { createOrganization } from "../../server/admin/create-organization.ts";
import { prepare } from "../../server/admin/prepare.ts";
import { readAddresses } from "../../server/config.ts";
import { checkNamespace } from "../../server/temporal-namespace.ts";
import { TemporalRenewal } from "../../server/temporal-renewal.ts";
import { failureOf } from "../../server/worker.ts";
import { connect } from "../../src/store/connections.ts";
import { connectTemporal } from "../../src/store/temporal-connection.ts";
import { dropAfterFile } from "../support/finished-databases.ts";
import { startServiceOn } from "../support/own-service.ts";
import { testLogger } from "../support/service.ts";
import { requiredSetting, sharedEngines } from "../support/shared-engines.ts";
import { startTemporalGateway, type TemporalGateway } from "../support/temporal-gateway.ts";
import { testPayloads } from "../support/payloads.ts";

const API_KEY = "a-key-of-temporal-cloud";
/** A name in the gateway's certificate, which is not where it listens. */
const SERVER_NAME = "temporal.test";

const ready = async (baseUrl: string): Promise<number> => (await fetch(`${baseUrl}/readyz`)).status;

let organizations = 0;
const organization = () => {
  organizations += 1;
  return {
    name: "Secured",
    ownerEmail: `owner-${String(organizations)}@example.com`,
    ownerPassword: "correct horse battery staple",
    plan: "free" as const,
  };
};

describe("a Temporal that demands TLS, client certificates and an API key", () => {
  let folder: string;
  let gateway: TemporalGateway;
  let servers: Authority;
  let clients: Authority;
  let env: NodeJS.ProcessEnv;

  const write = async (name: string, text: string): Promise<string> => {
    const file = join(folder, name);
    await writeFile(file, text);
    return file;
  };
  const writeClient = async ({ cert, key }: Identity) => ({
    TEMPORAL_TLS_CLIENT_CERT_PATH: await write("client.pem", cert),
    TEMPORAL_TLS_CLIENT_KEY_PATH: await write("client.key", key),
  });

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "spending-control-temporal-"));
    [servers, clients] = [newAuthority(), newAuthority()];
    gateway = await startTemporalGateway(requiredSetting("TEST_TEMPORAL_ADDRESS"), {
      identity: servers.issue([SERVER_NAME]),
      clientCa: clients.caPem,
      apiKey: API_KEY,
    });
    env = {
      ...sharedEngines(),
      AUDIT_ANCHOR_FILE: join(folder, "anchors.jsonl"),
      TEMPORAL_ADDRESS: `localhost:${String(gateway.port)}`,
      TEMPORAL_API_KEY: API_KEY,
      TEMPORAL_TLS_SERVER_CA_CERT_PATH: await write("ca.pem", servers.caPem),
      TEMPORAL_TLS_SERVER_NAME: SERVER_NAME,
      ...(await writeClient(clients.issue(["client"]))),
    };
  });
  after(async () => {
    await gateway.close();
    await rm(folder, { recursive: true, force: true });
  });

  const refusal = async (changes: NodeJS.ProcessEnv): Promise<string> => {
    const { readTemporalSecurity, temporalAddress } = readAddresses({ ...env, ...changes });
    const link = await connectTemporal(temporalAddress, readTemporalSecurity?.() ?? null).catch(
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    if (typeof link === "string") return link;
    await link.close();
    return "connected";
  };

  const saidOf = async (namespace: string): Promise<string> => {
    const connections = await connect(
      readAddresses({ ...env, TEMPORAL_NAMESPACE: namespace }),
      testPayloads(),
    );
    try {
      return await checkNamespace(connections).then(String, (error: unknown) =>
        error instanceof Error ? error.message : String(error),
      );
    } finally {
      await connections.close();
    }
  };

  it("all roles work on it, also after the clients' certificates were renewed", async () => {
    const service = await startServiceOn({ env });
    try {
      expect(await createOrganization(env, organization())).to.have.property("organizationId");
      expect(gateway.methods).to.include("PollWorkflowTaskQueue").and.include("CountWorkflowExecutions");
      const renewed = newAuthority();
      const { cert, key } = renewed.issue(["client"]);
      await write("client.pem", cert);
      // Half of the pair is no reason to give the connection up.
      await service.renewTemporal();
      expect(await ready(service.baseUrl)).to.equal(200);
      await write("client.key", key);
      gateway.demand({ clientCa: renewed.caPem });
      await service.renewTemporal();
      const before = gateway.methods.length;
      expect(await createOrganization(env, organization())).to.have.property("organizationId");
      expect(await ready(service.baseUrl)).to.equal(200);
      expect(gateway.methods.slice(before)).to.include("RespondWorkflowTaskCompleted");
      clients = renewed;
    } finally {
      await service.stop();
    }
  });

  it("what ends the connection is one line that names the settings in force", async () => {
    const stranger = newAuthority();
    const [ca, name, plain, key, certificate] = await Promise.all([
      refusal({ TEMPORAL_TLS_SERVER_CA_CERT_PATH: await write("other.pem", stranger.caPem) }),
      refusal({ TEMPORAL_TLS_SERVER_NAME: "elsewhere.test" }),
      refusal({
        TEMPORAL_TLS: "false",
        TEMPORAL_TLS_CLIENT_CERT_PATH: "",
        TEMPORAL_TLS_CLIENT_KEY_PATH: "",
      }),
      refusal({ TEMPORAL_API_KEY: "another-key" }),
      refusal({ TEMPORAL_TLS_CLIENT_CERT_PATH: "", TEMPORAL_TLS_CLIENT_KEY_PATH: "" }),
    ]);
    expect(ca).to.match(/TEMPORAL_TLS_SERVER_CA_CERT_PATH.*: .*certificate/);
    expect(name).to.match(/TEMPORAL_TLS_SERVER_NAME.*: .*elsewhere\.test/);
    expect(plain).to.match(/\(TEMPORAL_ADDRESS, TEMPORAL_API_KEY, TEMPORAL_TLS, /);
    expect(key).to.match(/TEMPORAL_API_KEY.*: Request unauthorized/);
    expect(certificate).to.match(/TEMPORAL_TLS_SERVER_CA_CERT_PATH, TEMPORAL_TLS_SERVER_NAME\): ./);
    for (const line of [ca, name, plain, key, certificate]) {
      expect(line).to.not.include("\n");
      expect(line).to.not.include(API_KEY).and.not.include("another-key");
    }
  });

  it("a worker that a revoked key has ended fails with the settings in force", async () => {
    const connections = await connect(readAddresses(env), testPayloads());
    const error = new Error("of the SDK");
    try {
      expect(await failureOf(connections, error)).to.equal(error);
      gateway.demand({ apiKey: "a-newer-key" });
      const failure = await failureOf(connections, error);
      expect(failure)
        .to.have.property("message")
        .that.matches(/^Temporal .*TEMPORAL_API_KEY.*: [^\n]+$/);
    } finally {
      gateway.demand({ apiKey: API_KEY });
      await connections.close();
    }
  });

  it("an API key that was renewed in a profile's file is used once the file is read again", async () => {
    const profile = (key: string) =>
      write(
        "temporal.toml",
        `[profile.cloud]\naddress = "${String(env["TEMPORAL_ADDRESS"])}"\napi_key = "${key}"\n`,
      );
    const addresses = readAddresses({
      ...env,
      TEMPORAL_ADDRESS: "",
      TEMPORAL_API_KEY: "",
      TEMPORAL_CONFIG_FILE: await profile(API_KEY),
      TEMPORAL_PROFILE: "cloud",
    });
    const connections = await connect(addresses, testPayloads());
    const { renewTemporal, temporalSecurity: current } = connections;
    const { readTemporalSecurity: read } = addresses;
    if (current === null || read === null) throw new Error("it is secured");
    const logger = testLogger("renewed-key");
    const renewal = new TemporalRenewal({ current, read, renewals: [renewTemporal], logger });
    try {
      gateway.demand({ apiKey: "a-renewed-key" });
      expect(await checkNamespace(connections).catch(String)).to.include("Request unauthorized");
      await profile("a-renewed-key");
      await renewal.look();
      await checkNamespace(connections);
    } finally {
      gateway.demand({ apiKey: API_KEY });
      await connections.close();
    }
  });

  it("a namespace that is missing or lacks search attributes is named with the remedy", async () => {
    expect(await saidOf("nowhere")).to.match(
      /^TEMPORAL_NAMESPACE: [^\n]*\bnowhere\b.*`npm run admin -- prepare`/,
    );
    // Every Temporal has this one, for itself.
    expect(await saidOf("temporal-system")).to.match(
      /^TEMPORAL_NAMESPACE: temporal-system .*\bAgentId\b.*`npm run admin -- prepare`/,
    );
  });

  it("credentials that may only read are refused, and a missing workflow's signal is not", async () => {
    const namespace = requiredSetting("TEST_TEMPORAL_NAMESPACE");
    expect(await saidOf(namespace)).to.equal("undefined");
    gateway.demand({ forbidden: ["SignalWorkflowExecution"] });
    try {
      expect(await saidOf(namespace)).to.match(
        /^TEMPORAL_NAMESPACE, .*TEMPORAL_API_KEY.*: Temporal refuses writes to [^\n]+: [^\n]*forbidden/,
      );
    } finally {
      gateway.demand({ forbidden: [] });
    }
  });

  it("prepare makes what a start needs, and nothing the second time", async () => {
    const namespace = `prepared-${randomUUID()}`;
    const uri = new URL(requiredSetting("TEST_MONGODB_URI"));
    uri.pathname = `/prepared_${randomUUID().slice(0, 8)}`;
    dropAfterFile(uri.toString());
    const own = { ...env, TEMPORAL_NAMESPACE: namespace, MONGODB_URI: uri.toString() };
    gateway.demand({ forbidden: ["RegisterNamespace", "AddSearchAttributes"] });
    try {
      const refused = await prepare(own).catch(String);
      expect(refused).to.match(
        /TEMPORAL_NAMESPACE: .*may not create it \([^\n]*forbidden[^\n]*namespace create/,
      );
      gateway.demand({ forbidden: ["AddSearchAttributes"] });
      expect(await prepare(own).catch(String)).to.match(
        /TEMPORAL_NAMESPACE: .*may not register .*search-attribute create .*--name AgentId --type Keyword/,
      );
    } finally {
      gateway.demand({ forbidden: [] });
    }
    const { indexesCreated, searchAttributesAdded } = await prepare(own);
    expect(searchAttributesAdded).to.include("AgentId");
    expect(indexesCreated).to.be.greaterThan(50);
    expect(await saidOf(namespace)).to.equal("undefined");
    expect(await prepare(own)).to.deep.equal({
      namespace,
      namespaceCreated: false,
      searchAttributesAdded: [],
      indexesCreated: 0,
    });
  });
});
