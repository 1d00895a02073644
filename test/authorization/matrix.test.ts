import { expect } from "chai";
import { z } from "zod";
import { type OperationId, operationList, operations } from "../../src/contract/registry.ts";
import { toolsetOf } from "../../src/contract/tool-names.ts";
import { errorBody } from "../../src/contract/records.ts";
import type { ErrorCode } from "../../src/domain/errors.ts";
import { ERRORS } from "../../src/domain/errors.ts";
import { Random } from "../../lab/random.ts";
import { authorize, authorizeBody } from "../../src/identity/authorize.ts";
import type { SessionPrincipal } from "../../src/identity/session-principal.ts";
import type { AgentPrincipal, OrganizationKeyPrincipal, Principal } from "../../src/identity/principals.ts";
import { Api } from "../support/api.ts";
import { filled } from "../support/contract-api.ts";
import { sharedService, type TestService } from "../support/service.ts";
import { newWorld, type World } from "../support/world.ts";
import { ACCESS, type Row } from "./access-table.ts";
import { type Credential, refusalOf } from "./oracle.ts";
import {
  agentKeysOf,
  type Bearer,
  connectedClientOf,
  CREDENTIALS,
  organizationKeysOf,
  peopleOf,
  serviceWithClock,
  strangers,
} from "./scene.ts";
import { seed } from "../support/seed.ts";
import { isSoak, someOrAll } from "../support/soak.ts";

/**
 * Every operation × every kind of credential by what decides it, and some of them over both surfaces. Each request is wrong
 * in its shape alone (an unknown field), so one that is let through is answered with VALIDATION_FAILED, and nothing is ever
 * done by it.
 */
const UNKNOWN_FIELD = { no: "such" } as const;

/** Ids that are well-formed, so that a path is not what is refused. */
const ANY_ID: Readonly<Record<string, string>> = {
  agents: "018f0000-0000-7000-8000-000000000000",
  payments: "txn_01HZZZZZZZZZZZZZZZZZZZZZZZ",
  transactions: "txn_01HZZZZZZZZZZZZZZZZZZZZZZZ",
  approvals: "apr_01HZZZZZZZZZZZZZZZZZZZZZZZ",
  /** /v1/auth/passkeys/:id. */
  auth: "pky_01HZZZZZZZZZZZZZZZZZZZZZZZ",
  invites: "inv_01HZZZZZZZZZZZZZZZZZZZZZZZ",
  "organization-keys": "okey_01HZZZZZZZZZZZZZZZZZZZZZZZ",
  webhooks: "whe_01HZZZZZZZZZZZZZZZZZZZZZZZ",
};
const ANY_DELIVERY = "dlv_01HZZZZZZZZZZZZZZZZZZZZZZZ";
const anyIdFor = (path: string): string =>
  path.includes("/sessions/")
    ? (ANY_ID["agents"] ?? "")
    : (ANY_ID[path.split("/")[2] ?? ""] ?? ANY_ID["agents"] ?? "");

const rowOf = (id: OperationId): Row => ACCESS[id];

/** A body that says nothing, and each that needs more than the operation itself. */
const bodiesOf = (row: Row): readonly object[] => [
  {},
  ...(row.who === "anyone" ? [] : (row.variants ?? []).map((variant) => variant.body)),
];

const toolAnswer = z.object({
  result: z.object({ isError: z.literal(true), structuredContent: errorBody }).optional(),
  error: z.object({ code: z.int() }).optional(),
});

function expectScopeNamed(id: OperationId, code: ErrorCode, named: string | undefined, what: string): void {
  const row = rowOf(id);
  const scope = code === "INSUFFICIENT_SCOPE" && row.who === "management" ? row.scope : undefined;
  expect(named, what).to.equal(scope ?? undefined);
}

/** Callers of each answer in the soak; else one of those who are refused and one who is not. */
const ALIKE = 2;

/** Tools that are called over MCP in each run. */
const TOOLS = 10;

/** MCP writes of an organization that fit into a minute, whichever caller makes them. */
const WRITES_BEFORE_A_PAUSE = 15;

const NOW = new Date();

/** The caller of a credential, as far as its permissions depend on it; null: one that nobody has. */
function principalOf(credential: Credential): Principal | null {
  switch (credential.kind) {
    case "none":
    case "made up":
    case "connection":
      return null;
    case "paused agent":
    case "agent":
      return {
        type: "agent",
        agent: { scopes: "tools" in credential ? credential.tools : null },
      } as AgentPrincipal;
    case "organization key":
      return { type: "organization_key", scopes: credential.scopes } as OrganizationKeyPrincipal;
    case "session": {
      const { mustEnrol = false, role, steppedUp } = credential;
      const stepUpExpiresAt = steppedUp ? new Date(NOW.getTime() + 1) : null;
      return { type: "session", role, mustEnrol, stepUpExpiresAt } as SessionPrincipal;
    }
  }
}

describe("who may do what: the table of every operation by every credential", () => {
  it("names every operation, and no operation that is not there", () => {
    expect(Object.keys(ACCESS).toSorted()).to.deep.equal(operationList.map(([id]) => id).toSorted());
  });

  for (const [id, { access }] of operationList) {
    it(`${id} is allowed and refused as the table says`, () => {
      for (const body of bodiesOf(rowOf(id))) {
        for (const credential of CREDENTIALS) {
          const principal = principalOf(credential);
          const refused = authorize(access, principal, NOW) ?? authorizeBody(access, principal, body, NOW);
          const expected = refusalOf(rowOf(id), credential, body);
          const what = JSON.stringify([credential, body]);
          expect(refused?.code ?? null, what).to.equal(expected);
          if (expected !== null) expectScopeNamed(id, expected, refused?.requiredScope, what);
        }
      }
    });
  }
});

describe(`who may do what: the matrix, made of the registry (TEST_SEED=${String(seed)})`, () => {
  let service: TestService;
  let passAMinute: () => void;
  let world: World;
  let bearers: readonly Bearer[];
  let connected: Awaited<ReturnType<typeof connectedClientOf>>;
  let cases = 0;
  const random = new Random(seed);

  before(async () => {
    ({ service, passAMinute } = isSoak
      ? await serviceWithClock()
      : { service: await sharedService(), passAMinute: () => undefined });
    world = await newWorld(service);
    connected = await connectedClientOf(world);
    bearers = [
      ...strangers,
      ...(await agentKeysOf(world)),
      ...(await organizationKeysOf(world)),
      ...(await peopleOf(world)),
    ];
  });
  after(async () => {
    process.stdout.write(`    ${cases} cases of who may do what\n`);
    if (isSoak) await service.stop();
  });

  async function overRest(id: OperationId, bearer: Bearer, body: object): Promise<void> {
    const { http } = operations[id];
    if (http === null) return;
    const path = filled(http.path, {
      id: anyIdFor(http.path),
      deliveryId: ANY_DELIVERY,
      cardIssuer: "stripe",
    });
    const sent = http.method === "get" ? {} : { body: { ...body, ...UNKNOWN_FIELD, idempotencyKey: "k" } };
    const answer = await new Api(service.baseUrl).call(http.method.toUpperCase(), `${path}?no=such`, {
      token: bearer.token,
      ...sent,
    });
    const expected = refusalOf(rowOf(id), bearer.credential, body) ?? "VALIDATION_FAILED";
    const what = `${id} ${JSON.stringify(body)} by ${bearer.name}`;
    const { error, requiredScope } = errorBody.parse(answer.body);
    expect([answer.status, error], what).to.deep.equal([ERRORS[expected].status, expected]);
    expectScopeNamed(id, expected, requiredScope, what);
    cases += 1;
  }

  /** Of those whom the table gives the same answer some; in a short run one of the refused, whatever for, and one of the others. */
  function someOf(id: OperationId, body: object, among = bearers): readonly Bearer[] {
    const answerTo = ({ credential }: Bearer) => {
      const answer = refusalOf(rowOf(id), credential, body);
      return isSoak ? answer : answer === null;
    };
    const answers = new Set(among.map(answerTo));
    return [...answers].flatMap((answer) =>
      someOrAll(random.shuffled(among.filter((bearer) => answerTo(bearer) === answer)), isSoak ? ALIKE : 1),
    );
  }

  for (const [id] of operationList) {
    it(`REST: ${id} is answered as the table says`, async () => {
      for (const body of bodiesOf(rowOf(id))) {
        for (const bearer of [...someOf(id, body), connected.overRest]) await overRest(id, bearer, body);
      }
    });
  }

  const keys = () => bearers.filter(({ credential }) => /agent|organization key/.test(credential.kind));

  /** Calls a tool without the SDK's client, which would refuse wrong arguments itself. */
  async function overMcp(name: string, id: OperationId, bearer: Bearer): Promise<void> {
    const { tool } = operations[id];
    const idName = tool?.idName ?? null;
    const plural = idName === "transactionId" ? "payments" : "agents";
    const idArgument = idName === null ? {} : { [idName]: ANY_ID[plural] };
    const args = { ...idArgument, ...UNKNOWN_FIELD, idempotencyKey: "k" };
    const answer = await new Api(service.baseUrl).call("POST", "/mcp", {
      token: bearer.token,
      headers: { accept: "application/json, text/event-stream" },
      body: { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } },
    });
    const what = `${name} by ${bearer.name}`;
    cases += 1;
    if (bearer.credential.kind === "paused agent") {
      return void expect([answer.status, answer.body], what).to.deep.include.members([403]);
    }
    const { result } = toolAnswer.parse(answer.body);
    const expected = refusalOf(rowOf(id), bearer.credential, {}) ?? "VALIDATION_FAILED";
    expect(result?.structuredContent.error, what).to.equal(expected);
    expectScopeNamed(id, expected, result?.structuredContent.requiredScope, what);
  }

  it("MCP: a tool answers each key as the table says; the other toolset is WRONG_CREDENTIAL", async () => {
    let writes = 0;
    const tools = operationList.flatMap(([id, { tool }]) => (tool === null ? [] : [{ id, tool }]));
    for (const { id, tool } of someOrAll(tools, TOOLS)) {
      for (const bearer of [...someOf(id, {}, keys()), connected.overMcp]) {
        const writesIt = toolsetOf(tool.name) === "management" && !tool.hints.readOnly;
        if (writesIt && bearer.credential.kind === "organization key") writes += 1;
        if (writes === WRITES_BEFORE_A_PAUSE) {
          passAMinute();
          writes = 0;
        }
        await overMcp(tool.name, id, bearer);
      }
    }
  });

  it("MCP: a key is shown exactly the tools it may call; people and strangers are 401", async () => {
    for (const bearer of [...bearers, connected.overMcp]) {
      passAMinute();
      const answer = await new Api(service.baseUrl).call("POST", "/mcp", {
        token: bearer.token,
        headers: { accept: "application/json, text/event-stream" },
        body: { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} },
      });
      cases += 1;
      const { kind } = bearer.credential;
      if (kind !== "agent" && kind !== "organization key") {
        expect(answer.status, bearer.name).to.equal(kind === "paused agent" ? 403 : 401);
        continue;
      }
      const listed = z
        .object({ result: z.object({ tools: z.array(z.object({ name: z.string() })) }) })
        .parse(answer.body).result.tools;
      const allowed = operationList.flatMap(([id, { tool }]) =>
        tool !== null && refusalOf(rowOf(id), bearer.credential, {}) === null ? [tool.name] : [],
      );
      expect(
        listed.map(({ name }) => name),
        bearer.name,
      ).to.deep.equal(allowed);
    }
  });
});
