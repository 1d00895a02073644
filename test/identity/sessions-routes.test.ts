import { expect } from "chai";
import { newWorld, type World } from "../support/world.ts";

describe("sessions over HTTP", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
  });

  const credentials = (fields: object = {}) => {
    const { email, password } = world.organization;
    return { body: { email, password, ...fields } };
  };

  it("sign-in answers token, refresh token, user and organization; the e-mail may be in any case", async () => {
    const { email, organizationId, userId } = world.organization;
    const askedAt = Date.now();
    const session = await world.api.ok("signIn", 200, credentials({ email: email.toUpperCase() }));
    // A token's times are whole seconds.
    expect(Date.parse(session.expiresAt) - 900_000).to.be.within(askedAt - 1_000, Date.now());
    expect(session.user).to.deep.include({ id: userId, email, role: "owner", secondFactors: [] });
    expect(session.organization).to.deep.include({ id: organizationId, status: "ready" });
    const me = await world.api.ok("getMe", 200, { token: session.token });
    const { user, organization, secondFactorEnrolment } = session;
    expect(me).to.deep.equal({ user, organization, secondFactorEnrolment, stepUpExpiresAt: null });
  });

  it("an unknown e-mail and a wrong password are the same 401", async () => {
    const unknown = credentials({ email: "nobody@example.com" });
    const told = async (request: ReturnType<typeof credentials>) => {
      const { requestId: _requestId, ...error } = await world.api.refused(
        "signIn",
        401,
        "UNAUTHORIZED",
        request,
      );
      return error;
    };
    expect(await told(unknown)).to.deep.equal(await told(credentials({ password: "x" })));
  });

  it("sign-out is 204 without a body and ends this session's tokens at once, and no others", async () => {
    const { refreshToken, token } = await world.api.ok("signIn", 200, credentials());
    const answer = await world.api.call("signOut", { token });
    expect([answer.status, answer.body]).to.deep.equal([204, undefined]);
    await world.api.refused("getMe", 401, "UNAUTHORIZED", { token });
    await world.api.refused("signOut", 401, "UNAUTHORIZED", { token });
    await world.api.refused("refreshSession", 401, "UNAUTHORIZED", { body: { refreshToken } });
    await world.api.ok("getMe", 200, { token: world.token });
  });

  it("refresh rotates; a used refresh token ends the session for everyone", async () => {
    const first = await world.api.ok("signIn", 200, credentials());
    const body = { refreshToken: first.refreshToken };
    const { refreshToken, token } = await world.api.ok("refreshSession", 200, { body });
    await world.api.ok("getMe", 200, { token });
    await world.api.ok("refreshSession", 200, { body: { refreshToken } });
    await world.api.refused("refreshSession", 401, "UNAUTHORIZED", { body });
    await world.api.refused("getMe", 401, "UNAUTHORIZED", { token });
  });

  it("a wrong shape is 400: unknown fields, missing ones, other types", async () => {
    for (const body of [
      undefined,
      {},
      { email: "a@example.com" },
      { ...credentials().body, remember: true },
      { ...credentials().body, password: { $gt: "" } },
      { ...credentials().body, email: ["a@example.com"] },
      { ...credentials().body, code: "12345a" },
    ]) {
      const request = body === undefined ? {} : { body };
      await world.api.refused("signIn", 400, "VALIDATION_FAILED", request);
    }
  });
});
