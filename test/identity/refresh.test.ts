import { expect } from "chai";
import { decodeJwt } from "jose";
import {
  atOnce,
  countOutcomes,
  fixture,
  MINUTE,
  outcomeOf,
  PASSWORD,
  valueOf,
  type Fixture,
} from "./support.ts";

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
    await the.collections.users.updateOne({ _id: the.userId }, { $set: { role: "admin" } });
    const second = valueOf(await refresh(first.refreshToken));
    await the.collections.users.updateOne({ _id: the.userId }, { $set: { role: "owner" } });
    const [old, fresh] = [decodeJwt(first.token), decodeJwt(second.token)];
    expect(fresh["sid"]).to.equal(old["sid"]);
    expect(fresh["auth_time"]).to.equal(old["auth_time"]);
    expect(fresh["org_role"]).to.equal("admin");
    expect(second.refreshToken).not.to.equal(first.refreshToken);
    expect(outcomeOf(await the.auth.authenticateSession(first.token))).to.equal("UNAUTHORIZED");
    expect(outcomeOf(await the.auth.authenticateSession(second.token))).to.equal(null);
    expect(outcomeOf(await refresh(second.refreshToken))).to.equal(null);
  });

  it("ends the session for both when a used refresh token comes again", async () => {
    const first = await the.signIn();
    const second = valueOf(await refresh(first.refreshToken));
    expect(outcomeOf(await refresh(first.refreshToken))).to.equal("UNAUTHORIZED");
    expect(outcomeOf(await refresh(second.refreshToken))).to.equal("UNAUTHORIZED");
    expect(outcomeOf(await the.auth.authenticateSession(second.token))).to.equal("UNAUTHORIZED");
  });

  it("serves exactly one of ten at once with the same token", async () => {
    const { refreshToken } = await the.signIn();
    const results = await atOnce(10, () => refresh(refreshToken));
    expect(countOutcomes(results)).to.deep.equal({ ok: 1, UNAUTHORIZED: 9 });
    // The other nine came with a used token, so the session is over for the one that was served too.
    for (const result of results) {
      if (result.ok) expect(outcomeOf(await refresh(result.value.refreshToken))).to.equal("UNAUTHORIZED");
    }
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
    const [, secret = "", signature = ""] = refreshToken.split(".");
    const stored = await Promise.all(
      (await the.database.db.collections()).map((collection) => collection.find().toArray()),
    );
    const text = JSON.stringify(stored);
    expect(text).to.include(the.userId);
    for (const raw of [token, secret, signature, PASSWORD]) expect(text).not.to.include(raw);
  });
});
