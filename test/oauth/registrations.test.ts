import { expect } from "chai";
import { z } from "zod";
import { checkedMetadata } from "../../server/oauth/client-metadata.ts";
import { oauthRecordsOf } from "../../src/store/oauth-documents.ts";
import { freshAddress } from "../support/api.ts";
import { Browser, newPkce, OAuthCaller, oauthError, register } from "../support/oauth.ts";
import { startTestService, type TestService } from "../support/service.ts";

/** Registrations as clients send them. */
const REAL: Readonly<Record<string, object>> = {
  "Claude Code": {
    client_name: "Claude Code (books)",
    redirect_uris: ["http://localhost:51234/callback"],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  },
  "claude.ai": {
    client_name: "Claude",
    redirect_uris: ["https://claude.ai/api/mcp/auth_callback"],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    scope: "agent offline_access",
    token_endpoint_auth_method: "client_secret_post",
  },
  Cursor: {
    client_name: "Cursor",
    redirect_uris: [
      "cursor://anysphere.cursor-mcp/oauth/callback",
      "https://www.cursor.com/agents/mcp/oauth/callback",
      "http://localhost:8787/callback",
    ],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  },
  "VS Code": {
    client_name: "Visual Studio Code",
    client_uri: "https://code.visualstudio.com",
    redirect_uris: ["https://vscode.dev/redirect", "http://127.0.0.1/", "http://127.0.0.1:33418/"],
    grant_types: ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
    application_type: "native",
  },
  ChatGPT: {
    client_name: "ChatGPT",
    redirect_uris: ["https://chatgpt.com/connector_platform_oauth_redirect"],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
    contacts: "not a list",
    software_id: "x",
  },
  Inspector: {
    client_name: "MCP Inspector",
    client_uri: "https://github.com/modelcontextprotocol/inspector",
    redirect_uris: ["http://localhost:6274/oauth/callback"],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
    scope: "",
  },
  "a client that says nothing else": { redirect_uris: ["http://[::1]:3000/cb"] },
};

const REFUSED: readonly (readonly [why: string, metadata: unknown, error: string])[] = [
  ["http elsewhere", { redirect_uris: ["http://example.com/cb"] }, "invalid_redirect_uri"],
  [
    "a host that begins as loopback",
    { redirect_uris: ["http://localhost.example.com/"] },
    "invalid_redirect_uri",
  ],
  [
    "one bad URI among good ones",
    { redirect_uris: ["https://a.example/", "http://b.example/"] },
    "invalid_redirect_uri",
  ],
  ["a script", { redirect_uris: ["javascript:alert(1)"] }, "invalid_redirect_uri"],
  ["a document", { redirect_uris: ["data:text/html,x"] }, "invalid_redirect_uri"],
  ["an application that is not listed", { redirect_uris: ["mailto:a@example.com"] }, "invalid_redirect_uri"],
  ["a fragment", { redirect_uris: ["https://a.example/#x"] }, "invalid_redirect_uri"],
  ["a user", { redirect_uris: ["https://a@b.example/"] }, "invalid_redirect_uri"],
  [
    "a backslash, which browsers take for a slash",
    { redirect_uris: ["https://a.example\\@b.example"] },
    "invalid_redirect_uri",
  ],
  ["a line break", { redirect_uris: ["https://a.example/\r\nX: y"] }, "invalid_redirect_uri"],
  ["no URL", { redirect_uris: ["callback"] }, "invalid_redirect_uri"],
  ["no redirect", { client_name: "x", redirect_uris: [] }, "invalid_client_metadata"],
  ["redirects that are no list", { redirect_uris: "https://a.example/" }, "invalid_client_metadata"],
  [
    "a name that is no text",
    { client_name: 1, redirect_uris: ["https://a.example/"] },
    "invalid_client_metadata",
  ],
  [
    "no code",
    { grant_types: ["client_credentials"], redirect_uris: ["https://a.example/"] },
    "invalid_client_metadata",
  ],
  [
    "an unknown method",
    { token_endpoint_auth_method: "tls", redirect_uris: ["https://a.example/"] },
    "invalid_client_metadata",
  ],
  ["a list", [], "invalid_client_metadata"],
  ["broken JSON", "{", "invalid_client_metadata"],
];

describe("metadata of clients", () => {
  it("a name has no characters that make it look like another", () => {
    const named = checkedMetadata({
      client_name: "Cla\u202eude\u0000 ",
      redirect_uris: ["https://a.example/"],
    });
    expect(named).to.include({ client_name: "Claude" });
  });
});

describe("registering a client", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ worker: false });
  });
  after(() => service?.stop());

  for (const [name, metadata] of Object.entries(REAL)) {
    it(`${name} is registered, and asks at each of its redirects`, async () => {
      const response = await register(service.baseUrl, metadata);
      const registered = z
        .looseObject({ client_id: z.string(), redirect_uris: z.array(z.string()) })
        .parse(await response.json());
      expect(response.status).to.equal(201);
      for (const redirect of registered.redirect_uris) {
        const client = new OAuthCaller(service.baseUrl, registered.client_id, redirect);
        const asked = await new Browser().get(client.authorizationUrl(newPkce()));
        expect(asked.headers.get("location"), redirect).to.match(/^\/connect\//);
      }
    });
  }

  it("another port of loopback is the same redirect; another path, host or scheme is not", async () => {
    const client = await OAuthCaller.register(service.baseUrl, {
      redirect_uris: ["http://127.0.0.1:1000/cb"],
    });
    const asking = (redirect_uri: string) =>
      new Browser().get(client.authorizationUrl(newPkce(), { redirect_uri }));
    expect((await asking("http://127.0.0.1:60000/cb")).status).to.equal(303);
    for (const foreign of [
      "http://127.0.0.1:1000/",
      "http://localhost:1000/cb",
      "https://127.0.0.1:1000/cb",
    ]) {
      const response = await asking(foreign);
      expect(response.status, foreign).to.equal(400);
      expect(response.headers.get("location")).to.equal(null);
      expect(await response.text()).to.include("invalid_redirect_uri");
    }
  });

  for (const [why, metadata, error] of REFUSED) {
    it(`is refused for ${why}, and nothing is stored`, async () => {
      const response = await register(service.baseUrl, metadata);
      expect([response.status, oauthError.parse(await response.json()).error]).to.deep.equal([400, error]);
    });
  }

  it("an address registers 10 clients a minute, and each is gone after a day", async () => {
    const records = oauthRecordsOf(service.db);
    const address = freshAddress();
    await records.deleteMany({});
    const statuses: number[] = [];
    for (let turn = 0; turn < 12; turn += 1) {
      const response = await register(service.baseUrl, { redirect_uris: ["https://a.example/"] }, address);
      statuses.push(response.status);
      if (response.status === 429) expect(response.headers.get("retry-after")).to.match(/^\d+$/);
    }
    // A minute may end between two of them.
    expect(statuses.filter((status) => status === 201)).to.have.length.within(10, 12);
    expect(statuses.slice(0, 10).every((status) => status === 201)).to.equal(true);
    const dayMs = 86_400_000;
    for (const { expiresAt } of await records.find().toArray())
      expect(expiresAt.getTime() - Date.now()).to.be.within(dayMs - 60_000, dayMs);
  });
});
