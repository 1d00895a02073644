import { expect } from "chai";
import { codeOf } from "../support/contract-api.ts";
import { cookieHeader, cookiesOf } from "../support/cookies.ts";
import { newPassword } from "../support/people.ts";
import { newWorld, type World } from "../support/world.ts";
import { entriesOf } from "../audit/support.ts";

describe("changing one's password", () => {
  let world: World;
  beforeEach(async () => {
    world = await newWorld();
  });

  const email = () => world.organization.email;
  const signIn = (password: string) => world.api.call("signIn", { body: { email: email(), password } });
  const signedIn = async (password = world.organization.password) =>
    await world.api.ok("signIn", 200, { body: { email: email(), password } });
  const changed = (to: string, token: string | undefined = world.token) =>
    world.api.ok("changePassword", 204, {
      ...(token === undefined ? {} : { token }),
      body: { currentPassword: world.organization.password, newPassword: to },
    });

  it("ends every other session at once, with its refresh token, and leaves this one signed in", async () => {
    const [thief, mine] = [await signedIn(), await signedIn()];
    const newer = newPassword();
    await changed(newer, mine.token);
    await world.api.refused("getMe", 401, "UNAUTHORIZED", { token: thief.token });
    const stolen = { body: { refreshToken: thief.refreshToken } };
    await world.api.refused("refreshSession", 401, "UNAUTHORIZED", stolen);
    await world.api.refused("getMe", 401, "UNAUTHORIZED", { token: world.token });
    await world.api.ok("getMe", 200, { token: mine.token });
    await world.api.ok("refreshSession", 200, { body: { refreshToken: mine.refreshToken } });
    expect(codeOf(await signIn(world.organization.password))).to.equal("UNAUTHORIZED");
    expect((await signIn(newer)).status).to.equal(200);
  });

  it("a wrong current password is 403, changes nothing and ends no session", async () => {
    const other = await signedIn();
    await world.api.refused("changePassword", 403, "PASSWORD_INVALID", {
      token: world.token,
      body: { currentPassword: `${world.organization.password}x`, newPassword: newPassword() },
    });
    for (const { token } of [other, world]) await world.api.ok("getMe", 200, { token });
    expect((await signIn(world.organization.password)).status).to.equal(200);
  });

  it("a new one is held to the rules of a first one, and may not be made of who one is", async () => {
    for (const weak of ["short", "password1234", email()]) {
      const { issues } = await world.api.refused("changePassword", 400, "VALIDATION_FAILED", {
        token: world.token,
        body: { currentPassword: world.organization.password, newPassword: weak },
      });
      expect(
        issues?.map(({ path }) => path),
        weak,
      ).to.deep.equal(["newPassword"]);
    }
    expect((await signIn(world.organization.password)).status).to.equal(200);
  });

  it("a browser's cookie does it from the service's own pages alone", async () => {
    const same = { "sec-fetch-site": "same-origin", "svc-session": "cookie" };
    const answer = await world.api.call("signIn", {
      body: { email: email(), password: world.organization.password },
      headers: same,
    });
    const cookie = cookieHeader(cookiesOf(answer).slice(0, 1));
    const body = { currentPassword: world.organization.password, newPassword: newPassword() };
    const from = (site: string) => ({ body, headers: { cookie, "sec-fetch-site": site } });
    await world.api.refused("changePassword", 401, "UNAUTHORIZED", from("same-site"));
    await world.api.ok("changePassword", 204, from("same-origin"));
    await world.api.ok("getMe", 200, { headers: { cookie } });
  });

  it("leaves an entry with how many sessions it ended, and neither password", async () => {
    await signedIn();
    const newer = newPassword();
    await changed(newer);
    const entries = await entriesOf(world.service.db, world.organization.organizationId);
    const entry = entries.find(({ action }) => action === "changePassword");
    expect(entry).to.deep.include({
      resource: { type: "user", id: world.organization.userId },
      before: null,
      after: { sessionsEnded: 1 },
    });
    for (const secret of [newer, world.organization.password])
      expect(JSON.stringify(entry)).not.to.include(secret);
  });
});
