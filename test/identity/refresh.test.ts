import { expect } from "chai";
import { decodeJwt } from "jose";
import { atOnce, fixture, MINUTE, outcomeOf, PASSWORD, valueOf, type Fixture } from "./support.ts";

describe("Refreshing a session", () => {
  let the: Fixture;
  before(async () => {
    the = await fixture();
  });
  after(() => the.database.close());

  const refresh = (refreshToken: string) => the.auth.refresh({ refreshToken });

  it("gives new tokens of the same session, with the time of the sign-in and the role of now", async () => {
    const first = await the.signIn();
    the.clock.advance(20 * MINUTE);
    await the.prove("user", { _id: the.userId }, { role: "admin" });
    const second = valueOf(await refresh(first.refreshToken));
    await the.prove("user", { _id: the.userId }, { role: "owner" });
    const [old, fresh] = [decodeJwt(first.token), decodeJwt(second.token)];
    expect(fresh["sid"]).to.equal(old["sid"]);
    expect(fresh["auth_time"]).to.equal(old["auth_time"]);
    expect(fresh["org_role"]).to.equal("admin");
    expect(second.refreshToken).not.to.equal(first.refreshToken);
    expect(outcomeOf(await the.auth.authenticateSession(first.token))).to.equal("UNAUTHORIZED");
    expect(outcomeOf(await the.auth.authenticateSession(second.token))).to.equal(null);
    expect(outcomeOf(await refresh(second.refreshToken))).to.equal(null);
  });

  it("ends the session for both when a used refresh token comes again later than 30 seconds", async () => {
    const first = await the.signIn();
    const second = valueOf(await refresh(first.refreshToken));
    the.clock.advance(30_000);
    expect(outcomeOf(await refresh(first.refreshToken))).to.equal("UNAUTHORIZED");
    expect(outcomeOf(await refresh(second.refreshToken))).to.equal("UNAUTHORIZED");
    expect(outcomeOf(await the.auth.authenticateSession(second.token))).to.equal("UNAUTHORIZED");
  });

  it("answers ten at once, and a lost answer again, with the same successor", async () => {
    const { refreshToken } = await the.signIn();
    const results = await atOnce(10, () => refresh(refreshToken));
    the.clock.advance(29_999);
    const successors = [...results, await refresh(refreshToken)].map(
      (result) => valueOf(result).refreshToken,
    );
    expect(new Set(successors).size).to.equal(1);
    expect(outcomeOf(await refresh(successors[0] ?? ""))).to.equal(null);
  });

  it("ends the session when a token comes again whose successor was used, however soon", async () => {
    const first = await the.signIn();
    const second = valueOf(await refresh(first.refreshToken));
    const third = valueOf(await refresh(second.refreshToken));
    expect(outcomeOf(await refresh(first.refreshToken))).to.equal("UNAUTHORIZED");
    expect(outcomeOf(await the.auth.authenticateSession(third.token))).to.equal("UNAUTHORIZED");
  });

  it("answers nothing again in a session that has ended", async () => {
    const first = await the.signIn();
    const second = valueOf(await refresh(first.refreshToken));
    await the.collections.sessions.updateOne(
      { _id: decodeJwt(second.token)["sid"] ?? "" },
      { $set: { revokedAt: the.clock.read(), revokedBecause: "sign_out" } },
    );
    expect(outcomeOf(await refresh(first.refreshToken))).to.equal("UNAUTHORIZED");
  });

  it("is not ended by a token that was made up for it", async () => {
    const first = await the.signIn();
    const [sessionId = "", secret = "", signature = ""] = first.refreshToken.split(".");
    const made = [
      `${sessionId}.${"A".repeat(43)}.${signature}`,
      `${sessionId}.${secret}.${"A".repeat(43)}`,
      `${sessionId}.${secret}`,
      sessionId,
      first.token,
      "",
    ];
    for (const token of made) expect(outcomeOf(await refresh(token))).to.equal("UNAUTHORIZED");
    expect(outcomeOf(await refresh(first.refreshToken))).to.equal(null);
  });

  it("ends 30 days after the sign-in", async () => {
    let current = await the.signIn();
    the.clock.advance(29 * 24 * 60 * MINUTE);
    current = valueOf(await refresh(current.refreshToken));
    the.clock.advance(24 * 60 * MINUTE);
    expect(outcomeOf(await refresh(current.refreshToken))).to.equal("UNAUTHORIZED");
  });

  it("leaves no raw token or password in the database", async () => {
    const { token, refreshToken } = await the.signIn();
    const [, secret = "", , signature = ""] = refreshToken.split(".");
    expect(signature).to.have.lengthOf(43);
    const stored = await Promise.all(
      (await the.database.db.collections()).map((collection) => collection.find().toArray()),
    );
    const text = JSON.stringify(stored);
    expect(text).to.include(the.userId);
    for (const raw of [token, secret, signature, PASSWORD]) expect(text).not.to.include(raw);
  });
});
