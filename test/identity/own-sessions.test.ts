import { prove } from "../support/access-proofs.ts";
import { expect } from "chai";
import { PASSWORD } from "../support/service.ts";
import { join } from "../support/people.ts";
import { newWorld, until, type World } from "../support/world.ts";
import { entriesOf } from "../audit/support.ts";

const BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

describe("one's own sessions", () => {
  let world: World;
  beforeEach(async () => {
    world = await newWorld();
  });

  const sessionsOf = async (token: string | undefined) =>
    (await world.api.ok("listSessions", 200, token === undefined ? {} : { token })).sessions;
  const signIn = (userAgent?: string) => {
    const { email, password } = world.organization;
    const headers = userAgent === undefined ? {} : { headers: { "user-agent": userAgent } };
    return world.api.ok("signIn", 200, { body: { email, password }, ...headers });
  };
  const records = () => world.service.db.collection<{ _id: string; lastSeenAt: Date }>("sessions");

  it("lists those that are alive, newest first, with the client's name and which one asks", async () => {
    const later = await signIn(BROWSER);
    const sessions = await sessionsOf(later.token);
    expect(sessions.map(({ current }) => current)).to.deep.equal([true, false]);
    expect(sessions[0]?.userAgent).to.equal(BROWSER);
    const [first] = (await sessionsOf(world.token)).filter(({ current }) => current);
    expect(first?.id).to.equal(sessions[1]?.id);
    expect(Date.now() - Date.parse(sessions[0]?.lastSeenAt ?? "")).to.be.within(0, 60_000);
  });

  it("keeps of what a client calls itself so much, and nothing that a page would run", async () => {
    const { token } = await signIn(`<script>alert("1")</script>\u00e9 ${"x".repeat(1_000)}`);
    const [session] = await sessionsOf(token);
    expect(session?.userAgent).to.match(/^scriptalert\(1\)\/script x+$/);
    expect(session?.userAgent).to.have.lengthOf(200);
  });

  it("a session that is ended is dead at once, with its refresh token, and listed no more", async () => {
    const stolen = await signIn();
    const id = (await sessionsOf(stolen.token)).find(({ current }) => current)?.id ?? "";
    await world.api.ok("endSession", 204, { token: world.token, id });
    await world.api.refused("getMe", 401, "UNAUTHORIZED", { token: stolen.token });
    await world.api.refused("refreshSession", 401, "UNAUTHORIZED", {
      body: { refreshToken: stolen.refreshToken },
    });
    expect((await sessionsOf(world.token)).map(({ current }) => current)).to.deep.equal([true]);
    await world.api.refused("endSession", 404, "NOT_FOUND", { token: world.token, id });
  });

  it("another person's session is neither listed nor ended, not even by an owner", async () => {
    const member = await join(world, "member");
    const [theirs] = await sessionsOf(member.token);
    await world.api.refused("endSession", 404, "NOT_FOUND", { token: world.token, id: theirs?.id ?? "" });
    expect((await sessionsOf(world.token)).map(({ id }) => id)).not.to.include(theirs?.id);
    await world.api.ok("endOtherSessions", 204, { token: world.token });
    await world.api.ok("getMe", 200, { token: member.token });
  });

  it("ending the others leaves this one alone", async () => {
    const others = [await signIn(), await signIn()];
    await world.api.ok("endOtherSessions", 204, { token: world.token });
    for (const { refreshToken, token } of others) {
      await world.api.refused("getMe", 401, "UNAUTHORIZED", { token });
      await world.api.refused("refreshSession", 401, "UNAUTHORIZED", { body: { refreshToken } });
    }
    expect((await sessionsOf(world.token)).map(({ current }) => current)).to.deep.equal([true]);
  });

  it("one that has run out is not listed, nor one that was begun before the password changed", async () => {
    const [over, outrun] = [await signIn(), await signIn()];
    const idOf = async (token?: string) => (await sessionsOf(token)).find(({ current }) => current)?.id ?? "";
    await prove(world.service.db, "session", { _id: await idOf(outrun.token) }, { epoch: -1 });
    await prove(world.service.db, "session", { _id: await idOf(over.token) }, { expiresAt: new Date() });
    expect((await sessionsOf(world.token)).map(({ current }) => current)).to.deep.equal([true]);
    for (const { token } of [over, outrun]) await world.api.refused("getMe", 401, "UNAUTHORIZED", { token });
  });

  it("says when a session was seen last, written again after a minute", async () => {
    const id = (await sessionsOf(world.token))[0]?.id ?? "";
    const earlier = new Date(Date.now() - 120_000);
    await records().updateOne({ _id: id }, { $set: { lastSeenAt: earlier } });
    await world.api.ok("getMe", 200, { token: world.token });
    const seen = await until("the session was seen", async () => {
      const [session] = await sessionsOf(world.token);
      const at = Date.parse(session?.lastSeenAt ?? "");
      return at > earlier.getTime() ? at : null;
    });
    expect(Date.now() - seen).to.be.below(60_000);
  });

  it("the audit log has which session was ended, and how many others were", async () => {
    const { token } = await signIn();
    const id = (await sessionsOf(token)).find(({ current }) => current)?.id ?? "";
    await world.api.ok("endSession", 204, { token: world.token, id });
    await signIn();
    await world.api.ok("endOtherSessions", 204, { token: world.token });
    const { organizationId, userId } = world.organization;
    const entries = await entriesOf(world.service.db, organizationId);
    const of = (action: string) => entries.find((entry) => entry.action === action);
    expect(of("endSession")).to.deep.include({ resource: { type: "session", id } });
    expect(of("endOtherSessions")).to.deep.include({
      resource: { type: "user", id: userId },
      after: { sessionsEnded: 1 },
    });
  });

  it("an invited person's first session has the client's name, too", async () => {
    const member = await join(world, "member");
    const body = { email: member.email, password: PASSWORD };
    await world.api.ok("signIn", 200, { body, headers: { "user-agent": "curl/8.0" } });
    expect((await sessionsOf(member.token)).map(({ userAgent }) => userAgent)).to.include("curl/8.0");
  });
});
