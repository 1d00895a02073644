import { expect } from "chai";
import { isAdministrative } from "../../src/domain/roles.ts";
import { type OperationId, operationList, operations } from "../../src/contract/registry.ts";
import type { ErrorCode } from "../../src/domain/errors.ts";
import { Api } from "../support/api.ts";
import { codeOf, expectError, filled } from "../support/contract-api.ts";
import { seed } from "../support/seed.ts";
import { someOrAll } from "../support/soak.ts";
import { demote, elevate, newEndpoint, newWorld, type TestAgent, type World } from "../support/world.ts";

/**
 * The order of checks: credential (a paused agent's included) → kind, scope or tool → role → step-up → shape of
 * path, query and body → existence → state and version. Each row breaks one check and every later one as well; the
 * rows are made of the registry, so a new operation is in the table.
 */
const routes = operationList.flatMap(([id, { http }]) => (http === null ? [] : [{ id, http }]));
const guarded = routes.filter(({ id }) => operations[id].access.kind !== "public");
const ofKind = (kind: "agent" | "management") =>
  guarded.filter(({ id }) => operations[id].access.kind === kind);

/** Operations of each row in each run; the matrix of who may do what has them all, with a body that is wrong. */
const SOME = 8;

describe(`the order of checks over REST (TEST_SEED=${String(seed)})`, () => {
  let world: World;
  let agent: TestAgent;
  let paused: TestAgent;
  let unscoped: TestAgent;
  before(async () => {
    world = await newWorld();
    agent = await world.agent();
    paused = await world.agent();
    unscoped = await world.agent({ scopes: ["get_wallet"] });
    await world.api.ok("pauseAgent", 200, { token: world.token, id: paused.id });
    await demote(world, "member");
  });

  /** Sends what nothing is right about but the credential: path, query and body are malformed. */
  async function send(id: OperationId, token: string | undefined) {
    const { http } = operations[id];
    const path = `${filled(http?.path ?? "", { id: "no-id", deliveryId: "no-id", cardIssuer: "1" })}?no=such`;
    const method = (http?.method ?? "").toUpperCase();
    const malformed = method === "GET" ? {} : { body: "{" };
    const answer = await new Api(world.service.baseUrl).call(method, path, { token, ...malformed });
    expectError(answer);
    return [answer.status, codeOf(answer)];
  }

  type Row = readonly [string, () => string | undefined, readonly { id: OperationId }[], number, ErrorCode];
  const needsAdmin = ofKind("management").filter(({ id }) => {
    const { access } = operations[id];
    return access.kind === "management" && isAdministrative(access.role);
  });
  const rows: readonly Row[] = [
    ["no credential", () => undefined, guarded, 401, "UNAUTHORIZED"],
    ["a made-up credential", () => "sk_svc_live_nobody", guarded, 401, "UNAUTHORIZED"],
    ["a paused agent's key, on any kind of route", () => paused.key, guarded, 403, "AGENT_PAUSED"],
    ["an agent's key on a management route", () => agent.key, ofKind("management"), 403, "WRONG_CREDENTIAL"],
    ["a session on an agent's route", () => world.token, ofKind("agent"), 403, "WRONG_CREDENTIAL"],
    ["a key that is not scoped to the tool", () => unscoped.key, ofKind("agent"), 403, "TOOL_NOT_ALLOWED"],
    ["a member where an admin is needed", () => world.token, needsAdmin, 403, "ROLE_REQUIRED"],
  ];
  for (const [what, token, operationsOf, status, code] of rows) {
    it(`${what} is refused before any input: ${status} ${code}`, async () => {
      expect(operationsOf).not.to.have.lengthOf(0);
      for (const { id } of someOrAll(operationsOf, SOME)) {
        expect(await send(id, token()), id).to.deep.equal([status, code]);
      }
    });
  }

  it("a role comes before step-up, step-up before the shape", async () => {
    const id = "updateAgentBudgetPolicy";
    await demote(world, "member");
    expect(await send(id, world.token)).to.deep.equal([403, "ROLE_REQUIRED"]);
    await demote(world, "admin");
    expect(await send(id, world.token)).to.deep.equal([403, "STEP_UP_REQUIRED"]);
    await elevate(world);
    expect(await send(id, world.token)).to.deep.equal([400, "VALIDATION_FAILED"]);
  });

  it("a malformed id in a path is 404, on every route that has one", async () => {
    const paths = guarded.filter(({ http }) => http.path.includes(":id"));
    const token = ({ id }: { id: OperationId }) =>
      operations[id].access.kind === "agent" ? agent.key : world.token;
    await demote(world, "owner");
    await elevate(world);
    const ids = [
      "1",
      "%20",
      "a".repeat(3_000),
      "txn_01",
      "..%2F..",
      "%24ne",
      "[object Object]",
      "%F0%9F%98%80",
    ];
    for (const route of paths) {
      const body = route.http.method === "get" ? {} : { body: { no: "such" } };
      for (const id of someOrAll(ids, 2)) {
        await world.api.refused(route.id, 404, "NOT_FOUND", { token: token(route), id, ...body });
      }
    }
    const endpoint = await newEndpoint(world);
    for (const route of paths.filter(({ http }) => http.path.includes(":deliveryId"))) {
      for (const deliveryId of ids) {
        const request = { token: world.token, id: endpoint.id, deliveryId };
        await world.api.refused(route.id, 404, "NOT_FOUND", request);
      }
    }
  });

  it("shape comes before existence, existence before a stale version, a stale version last", async () => {
    await demote(world, "owner");
    await elevate(world);
    const patch = (id: string, body: object) => ({ token: world.token, id, body });
    const stranger = await (await newWorld()).agent();
    const operation = "updateAgentBudgetPolicy";
    await world.api.refused(operation, 400, "VALIDATION_FAILED", patch(stranger.id, { budgetCents: -1 }));
    await world.api.refused(operation, 404, "NOT_FOUND", patch(stranger.id, { version: 99 }));
    await world.api.refused(operation, 409, "VERSION_CONFLICT", patch(agent.id, { version: 99 }));
  });

  it("no credential is asked for where none is needed", async () => {
    const open = routes.filter(({ id }) => operations[id].access.kind === "public");
    expect(open.map(({ id }) => id).toSorted()).to.deep.equal([
      "acceptInvite",
      "checkInvite",
      "checkSetUp",
      "endSsoSessions",
      "finishSso",
      "passkeySignInOptions",
      "refreshSession",
      "setUp",
      "signIn",
      "signInWithPasskey",
      "startSso",
    ]);
    for (const { id } of open) expect(await send(id, undefined)).to.deep.equal([400, "VALIDATION_FAILED"]);
  });
});
