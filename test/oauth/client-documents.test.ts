import { expect } from "chai";
import { clientDocuments } from "../../server/oauth/client-documents.ts";
import { GuardedFetch } from "../../src/lib/guarded-fetch/guarded-fetch.ts";
import { Browser, newPkce, OAuthCaller } from "../support/oauth.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { type Handler, startTlsReceiver, type TlsReceiver } from "../support/tls-receiver.ts";

const REDIRECT = "http://127.0.0.1:4711/callback";

const json =
  (document: object): Handler =>
  (_request, response) =>
    void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(document));
const fine = (client_id: string) => ({ client_id, client_name: "Documented", redirect_uris: [REDIRECT] });
const asked = (client: OAuthCaller) => new Browser().get(client.authorizationUrl(newPkce()));

const status =
  (code: number): Handler =>
  (_request, response) =>
    void response.writeHead(code).end();

async function expectUnknown(client: OAuthCaller): Promise<void> {
  const response = await asked(client);
  expect(response.status).to.equal(400);
  expect(response.headers.get("location")).to.equal(null);
  expect(await response.text()).to.match(/invalid_client|invalid_redirect_uri/);
}

describe("clients that are known by a document of theirs", () => {
  let service: TestService;
  let host: TlsReceiver;
  let documents = 0;
  before(async () => {
    host = await startTlsReceiver();
    const reach = { allowCidrs: ["127.0.0.0/8"], extraCa: host.caPem };
    service = await startTestService({ worker: false, clientDocuments: reach });
  });
  after(async () => {
    await service?.stop();
    await host?.close();
  });

  /** A client whose document nobody has fetched yet. */
  function newClient(answer: (clientId: string) => Handler, redirect = REDIRECT): OAuthCaller {
    documents += 1;
    const clientId = `${host.url}/client-${documents}.json`;
    host.respondWith(answer(clientId));
    return new OAuthCaller(service.baseUrl, clientId, redirect);
  }
  it("one with a sound document asks a person, whatever else it says, at any loopback port", async () => {
    const client = newClient((id) =>
      json({ ...fine(id), grant_types: ["authorization_code", "urn:other"], scope: "x", jwks_uri: "x" }),
    );
    expect((await asked(client)).headers.get("location")).to.match(/^\/connect\//);
    const elsewhere = new OAuthCaller(service.baseUrl, client.clientId, REDIRECT.replace("4711", "4712"));
    expect((await asked(elsewhere)).status).to.equal(303);
    expect(host.requests.filter(({ path }) => client.clientId.endsWith(path))).to.have.length(1);
  });

  const REFUSED: Readonly<Record<string, (id: string) => Handler>> = {
    "is larger than 16 KiB": (id) => json({ ...fine(id), padding: "x".repeat(17 * 1_024) }),
    "is of another client": (id) => json(fine(`${id}?`)),
    "holds a secret": (id) => json({ ...fine(id), token_endpoint_auth_method: "client_secret_post" }),
    "redirects elsewhere over http": (id) => json({ ...fine(id), redirect_uris: ["http://a.example/"] }),
    "is no JSON": () => (_request, response) => void response.writeHead(200).end("<html>"),
    "is not there": () => (_request, response) => void response.writeHead(404).end(),
    "has moved": () => (_request, response) =>
      void response.writeHead(302, { location: `${host.url}/client-1.json` }).end(),
    "breaks off": () => (_request, response) => host.reset(response),
    "does not name the redirect": (id) => json({ ...fine(id), redirect_uris: ["https://a.example/cb"] }),
  };
  for (const [what, answer] of Object.entries(REFUSED)) {
    it(`one whose document ${what} is refused`, () => expectUnknown(newClient(answer)));
  }

  it("while a document's host is away, what it said last counts; a document that is gone is gone", async () => {
    const fetchDocument = clientDocuments(
      new GuardedFetch({ allowCidrs: ["127.0.0.0/8"], extraCa: host.caPem }),
    );
    const url = `${host.url}/away.json`;
    const read = async (): Promise<unknown> => (await fetchDocument(url, null)).json();
    host.respondWith(status(503));
    expect(await read().catch(String)).to.include("can't be had");
    host.respondWith(json(fine(url)));
    const sound = await read();
    host.respondWith(status(503));
    expect(await read()).to.deep.equal(sound);
    host.respondWith(status(404));
    expect(await read().catch(String)).to.include("HTTP 404");
  });

  it("slow documents of strangers keep no client out whose document was read before", async () => {
    const fetchDocument = clientDocuments(
      new GuardedFetch({ allowCidrs: ["127.0.0.0/8"], extraCa: host.caPem }),
    );
    const url = `${host.url}/known.json`;
    host.respondWith(json(fine(url)));
    const sound: unknown = await (await fetchDocument(url, "one")).json();
    host.respondWith(() => undefined);
    const slow = Array.from({ length: 16 }, (_, index) =>
      fetchDocument(`${host.url}/slow-${index}.json`, `network ${index % 4}`).catch(String),
    );
    expect(await (await fetchDocument(url, "one")).json()).to.deep.equal(sound);
    expect(await fetchDocument(`${host.url}/unknown.json`, "one").catch(String)).to.include("too many");
    await Promise.all(slow);
  });

  it("a network whose documents are slow has four fetches, and keeps no other network out", async () => {
    const client = newClient((id) => (request, response) => {
      if (id.endsWith(request.path)) json(fine(id))(request, response);
    });
    const browser = new Browser();
    const before = host.requests.length;
    const slow = Array.from({ length: 4 }, (_, index) => {
      const url = new OAuthCaller(service.baseUrl, `${host.url}/slow-${index}.json`, REDIRECT);
      return browser.get(url.authorizationUrl(newPkce()));
    });
    await host.received(before + 4);
    const own = await browser.get(client.authorizationUrl(newPkce()));
    expect(own.status).to.equal(400);
    expect((await asked(client)).headers.get("location")).to.match(/^\/connect\//);
    for (const response of slow) expect((await response).status).to.equal(400);
  });

  it("one whose document is slow is refused within seconds", async () => {
    const began = performance.now();
    await expectUnknown(newClient(() => () => undefined));
    expect(performance.now() - began).to.be.lessThan(10_000);
  });

  it("one at a private address is refused, and nothing is sent there", async () => {
    const closed = await startTestService({ worker: false });
    try {
      const before = host.connections;
      for (const url of [`${host.url}/private.json`, "https://localhost/x", "https://169.254.169.254/latest"])
        await expectUnknown(new OAuthCaller(closed.baseUrl, url, REDIRECT));
      expect(host.connections).to.equal(before);
    } finally {
      await closed.stop();
    }
  });
});
