import { execFile } from "node:child_process";
import { createHmac } from "node:crypto";
import { promisify } from "node:util";
import { expect } from "chai";
import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import { createOrganizationWithOwner } from "../../src/identity/create-organization.ts";
import { createOrganization } from "../../server/admin/create-organization.ts";
import { PASSWORD, startTestService, type TestService } from "../support/service.ts";
import { onceReachable } from "../support/api.ts";
import { ContractApi } from "../support/contract-api.ts";
import { ForgetfulCounts } from "../support/forgetful-counts.ts";
import { startServiceOn } from "../support/own-service.ts";
import { builtFile, PACKAGE_ROOT } from "../../src/lib/package-root.ts";
import { cleanEnvironment } from "../support/process.ts";
import { tally, times, until } from "../support/world.ts";

const OWNER = { organizationName: "Analytical Engines", name: "Ada", email: "ada@example.com" } as const;

const request = (token: string, fields: object = {}) => ({
  body: { token, ...OWNER, password: PASSWORD, ...fields },
});

const FILLED = ["organizations", "users", "sessions", "projects", "teams", "audit_log"];

describe("the set-up link", () => {
  const counts = new ForgetfulCounts();
  let service: TestService;
  let api: ContractApi;
  before(async () => {
    service = await startTestService({ counts, evmRpcUrl: null, settings: { DEFAULT_PLAN: "pro" } });
    api = new ContractApi(service.baseUrl);
  });
  after(() => service.stop());
  /** As before anybody was there. */
  afterEach(async () => {
    // All set-ups of a service are counted together.
    counts.forget();
    const { db } = service;
    for (const name of FILLED) await db.collection(name).deleteMany({});
    await db.collection<{ _id: string }>("settings").deleteOne({ _id: "set-up-done" });
  });

  const tokenOf = async (of: TestService = service): Promise<string> => {
    const link = await of.setUpLink();
    const token = link === null ? undefined : /\/setup#token=([\w-]{43})$/.exec(link)?.[1];
    if (token === undefined) throw new Error(`no link: ${String(link)}`);
    return token;
  };
  const count = (name: string) => service.db.collection(name).countDocuments();

  it("makes the first organization, with its plan and ready, signs its owner in, then is 404", async () => {
    const token = await tokenOf();
    const session = await api.ok("setUp", 201, request(token));
    expect(session.organization).to.deep.include({ name: "Analytical Engines", plan: "pro" });
    // Ready by now, unless the machine is busy.
    await until("it is ready", async () => {
      const read = await api.ok("getOrganization", 200, { token: session.token });
      return read.organization.status === "ready" ? true : null;
    });
    expect(session.user).to.deep.include({ name: "Ada", email: "ada@example.com", role: "owner" });
    const { user, organization } = session;
    const me = await api.ok("getMe", 200, { token: session.token });
    expect(me).to.deep.include({ user, organization: { ...organization, status: "ready" } });
    await api.ok("signIn", 200, { body: { email: "ada@example.com", password: PASSWORD } });
    await api.refused("setUp", 404, "NOT_FOUND", request(token, { email: "eve@example.com" }));
    expect(await service.setUpLink()).to.equal(null);
    const { organizationId } = await service.db.collection("projects").findOne({}).then(one);
    expect(organizationId).to.equal(organization.id);
  });

  it("of eight at once exactly one is let through, and nothing is left of the others", async () => {
    const token = await tokenOf();
    const answers = await Promise.all(
      times(8, (index) =>
        onceReachable(() => api.call("setUp", request(token, { email: `owner${index}@example.com` }))),
      ),
    );
    // On a busy machine who was let through may have been told to come again, and then is too late.
    expect(tally(answers.map(({ status }) => status))).to.deep.oneOf([{ 201: 1, 404: 7 }, { 404: 8 }]);
    expect([await count("organizations"), await count("users")]).to.deep.equal([1, 1]);
  });

  it("an organization that the operator's command made closes it, also when both come at once", async () => {
    const token = await tokenOf();
    const byCommand = {
      name: "By command",
      ownerEmail: "op@example.com",
      ownerPassword: PASSWORD,
      plan: "pro",
    };
    const [answer] = await Promise.all([
      api.call("setUp", request(token)),
      createOrganization(service.env, byCommand),
    ]);
    expect(answer.status).to.be.oneOf([201, 404, 503]);
    const made = { 201: [2], 404: [1] }[answer.status] ?? [1, 2];
    expect(await count("organizations")).to.be.oneOf(made);
    await api.refused("setUp", 404, "NOT_FOUND", request(token, { email: "eve@example.com" }));
    expect(await service.setUpLink()).to.equal(null);
  });

  it("an organization that was made to try things out leaves it open, however often", async () => {
    const token = await tokenOf();
    const options = ["--name", "Demo", "--owner-email", "demo@example.com", "--leave-set-up-open"];
    const command = [builtFile("server/main.ts"), "admin", "create-organization", ...options];
    const env = { ...cleanEnvironment(), ...service.env };
    const running = promisify(execFile)(process.execPath, command, { cwd: PACKAGE_ROOT, env });
    running.child.stdin?.end(`${PASSWORD}\n`);
    expect(JSON.parse((await running).stdout)).to.include.keys("organizationId", "teamId");
    const again = { name: "Again", ownerEmail: "again@example.com", ownerPassword: PASSWORD, plan: "pro" };
    const made = await createOrganizationWithOwner(
      service.db,
      TEST_ACCESS_PROOFS,
      again,
      () => new Date(),
      "trial",
    );
    expect(made.ok).to.equal(true);
    expect(await tokenOf()).to.equal(token);
    await api.ok("setUp", 201, request(token));
    await api.refused("setUp", 404, "NOT_FOUND", request(token, { email: "eve@example.com" }));
  });

  it("an organization without the mark that it was set up closes it as well", async () => {
    const token = await tokenOf();
    await service.db.collection("organizations").insertOne({ name: "Restored" });
    await api.refused("setUp", 404, "NOT_FOUND", request(token));
    expect(await service.setUpLink()).to.equal(null);
  });

  it("a check says whether the token is good, uses nothing up, and is 404 like the set-up itself", async () => {
    const token = await tokenOf();
    for (const _again of times(3, (index) => index)) {
      await api.ok("checkSetUp", 204, { body: { token } });
      await api.refused("checkSetUp", 404, "NOT_FOUND", { body: { token: `${token}x` } });
    }
    expect([await count("organizations"), await count("audit_log")]).to.deep.equal([0, 0]);
    await api.ok("setUp", 201, request(token));
    await api.refused("checkSetUp", 404, "NOT_FOUND", { body: { token } });
  });

  it("a wrong token is 404 and writes nothing: cut, of another key, or the database's nonce", async () => {
    const token = await tokenOf();
    const nonce = await service.db
      .collection<{ _id: string; value: string }>("settings")
      .findOne({ _id: "set-up-nonce" })
      .then(one);
    const foreign = createHmac("sha256", "a guess").update(nonce.value).digest("base64url");
    for (const wrong of [token.slice(1), `${token}x`, token.toUpperCase(), foreign, nonce.value]) {
      await api.refused("setUp", 404, "NOT_FOUND", request(wrong));
    }
    expect([await count("organizations"), await count("users")]).to.deep.equal([0, 0]);
    const settings = JSON.stringify(await service.db.collection("settings").find().toArray());
    expect(settings).not.to.include(token);
  });

  it("what is wrong with the fields is said by their names, and the link stays good", async () => {
    const token = await tokenOf();
    for (const [path, fields] of [
      ["password", { password: "password1234" }],
      ["password", { password: "eleven char" }],
      ["password", { password: "analyticalengines" }],
      ["email", { email: "ada" }],
      ["name", { name: " " }],
      ["organizationName", { organizationName: "x".repeat(101) }],
      ["plan", { plan: "enterprise" }],
    ] as const) {
      const { issues } = await api.refused("setUp", 400, "VALIDATION_FAILED", request(token, fields));
      expect(issues?.map((issue) => issue.path)).to.deep.equal([path]);
    }
    await api.ok("setUp", 201, request(token));
  });

  it("a second server and a restart name the same token", async () => {
    const token = await tokenOf();
    const second = await startServiceOn({ env: service.env, worker: false });
    try {
      expect(await tokenOf(second)).to.equal(token);
      await api.ok("setUp", 201, request(token));
      expect(await second.setUpLink()).to.equal(null);
    } finally {
      await second.stop();
    }
  });

  it("an organization never provisioned is provisioned when its owner signs in or refreshes", async () => {
    for (const how of ["signIn", "refreshSession"] as const) {
      const { email, organizationId, password } = await service.organization();
      const { refreshToken } = await api.ok("signIn", 200, { body: { email, password } });
      // As a server leaves it that died between the organization and its workflow.
      const unfinished = { $set: { status: "provisioning", readyAt: null } };
      const organizations = service.db.collection<{ _id: string }>("organizations");
      await organizations.updateOne({ _id: organizationId }, unfinished);
      const session = await api.ok(how, 200, {
        body: how === "signIn" ? { email, password } : { refreshToken },
      });
      expect(session.organization.id).to.equal(organizationId);
      await until("it is ready", async () => {
        const me = await api.ok("getMe", 200, { token: session.token });
        return me.organization.status === "ready" ? true : null;
      });
    }
  });
});

function one<T>(found: T | null): T {
  if (found === null) throw new Error("nothing was found");
  return found;
}
