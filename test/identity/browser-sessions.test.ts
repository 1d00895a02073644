import { expect } from "chai";
import type { Answer } from "../support/api.ts";
import { type CookieNames, cookieNames } from "../../src/contract/cookies.ts";
import { ForgetfulCounts } from "../support/forgetful-counts.ts";
import { PASSWORD, startTestService, type TestService } from "../support/service.ts";
import { codeOf, successOf } from "../support/contract-api.ts";
import { cookieHeader, cookiesOf, type GivenCookie } from "../support/cookies.ts";
import { invite } from "../support/people.ts";
import { newWorld, type World } from "../support/world.ts";

type Headers = Readonly<Record<string, string>>;

const SAME: Headers = { "sec-fetch-site": "same-origin" };
const ASKING: Headers = { ...SAME, "svc-session": "cookie" };
const PUBLIC_URL = "https://control.example.test";

const outcomeOf = (answer: Answer) => codeOf(answer) ?? answer.status;

/** The value of the cookie that is named so. */
function named(cookies: readonly GivenCookie[], name: string): GivenCookie {
  const found = cookies.find((cookie) => cookie.name === name);
  if (found === undefined) throw new Error(`no cookie ${name}`);
  return found;
}

describe("a browser's session", () => {
  // The same person signs in more often than people may.
  const requests = new ForgetfulCounts();
  let service: TestService;
  let world: World;
  let names: CookieNames;
  before(async () => {
    service = await startTestService({ counts: requests });
    names = cookieNames(service.baseUrl);
    world = await newWorld(service);
  });
  beforeEach(() => requests.forget());
  after(() => service.stop());

  const credentials = () => {
    const { email, password } = world.organization;
    return { email, password };
  };
  const signIn = (headers: Headers = ASKING) => world.api.call("signIn", { body: credentials(), headers });
  const refresh = (cookie: string, headers: Headers = SAME, body?: object) =>
    world.api.call("refreshSession", { headers: { ...headers, cookie }, ...(body ? { body } : {}) });

  async function signedIn(): Promise<{ session: string; refresh: string; tokens: readonly string[] }> {
    const cookies = cookiesOf(await signIn());
    const [session, refreshing] = [named(cookies, names.session), named(cookies, names.refresh)];
    return {
      session: cookieHeader([session]),
      refresh: cookieHeader([refreshing]),
      tokens: [session.value, refreshing.value],
    };
  }

  it("asked for in cookies: no token in the body, HttpOnly cookies that live as long as tokens", async () => {
    const answer = await signIn();
    const body = successOf("signIn", answer.body);
    expect(Object.keys(body).toSorted()).to.deep.equal([
      "expiresAt",
      "organization",
      "secondFactorEnrolment",
      "user",
    ]);
    const cookies = cookiesOf(answer);
    expect(cookies.map(({ name }) => name)).to.deep.equal([names.session, names.refresh, names.device]);
    const [session, refreshing] = [named(cookies, names.session), named(cookies, names.refresh)];
    const strict = { httpOnly: true, sameSite: "strict" };
    expect(session.attributes).to.deep.equal({ ...strict, path: "/", expires: new Date(body.expiresAt) });
    const { expires, ...others } = refreshing.attributes;
    expect(others).to.deep.equal({ ...strict, path: "/v1/auth/refresh" });
    const days = (Number(expires) - Date.now()) / 86_400_000;
    expect(days).to.be.within(29.9, 30.1);
    const text = JSON.stringify(answer.body);
    for (const { value } of cookies) expect(text).not.to.include(value);
  });

  it("not asked for in cookies sets none: another value of the header, or none", async () => {
    for (const headers of [SAME, { ...SAME, "svc-session": "Cookie" }, { ...SAME, "svc-session": "" }]) {
      const answer = await signIn(headers);
      expect(cookiesOf(answer)).to.deep.equal([]);
      expect(successOf("signIn", answer.body).token).to.be.a("string");
    }
  });

  it("installations on one host have cookies of other names: one signs nobody out of the other", () => {
    for (const scheme of ["http", "https"]) {
      const ports = ["", ":18080", ":18081"].map((port) => cookieNames(`${scheme}://control.example${port}`));
      expect(new Set(ports.flatMap((each) => Object.values(each))).size).to.equal(12);
    }
  });

  it("refreshes and ends by cookies alone: rotation and reuse as ever, sign-out clears both", async () => {
    const first = await signedIn();
    const me = (cookie: string) => world.api.call("getMe", { headers: { cookie } });
    expect((await me(first.session)).status).to.equal(200);
    const rotated = await refresh(first.refresh);
    expect(rotated.status).to.equal(200);
    expect(successOf("refreshSession", rotated.body)).not.to.have.any.keys("token", "refreshToken");
    const [session, next] = cookiesOf(rotated);
    expect((await me(cookieHeader(session ? [session] : []))).status).to.equal(200);
    const out = await world.api.call("signOut", {
      headers: { ...SAME, cookie: cookieHeader(session ? [session] : []) },
    });
    expect(out.status).to.equal(204);
    const cleared = cookiesOf(out).map(({ attributes, name, value }) => [name, value, attributes["path"]]);
    expect(cleared).to.deep.equal([
      [names.session, "", "/"],
      [names.refresh, "", "/v1/auth/refresh"],
    ]);
    for (const { attributes } of cookiesOf(out)) expect(attributes["expires"]).to.deep.equal(new Date(0));
    expect(outcomeOf(await me(first.session))).to.equal("UNAUTHORIZED");
    expect(outcomeOf(await refresh(cookieHeader(next ? [next] : [])))).to.equal("UNAUTHORIZED");

    const second = await signedIn();
    const [, successor] = cookiesOf(await refresh(second.refresh));
    expect((await refresh(cookieHeader(successor ? [successor] : []))).status).to.equal(200);
    expect(outcomeOf(await refresh(second.refresh))).to.equal("UNAUTHORIZED");
    expect(outcomeOf(await me(second.session)), "a used refresh token ends the session").to.equal(
      "UNAUTHORIZED",
    );
  });

  it("a refresh by cookie never shows a token, and one by the body is answered as it asks", async () => {
    const { refresh: cookie } = await signedIn();
    for (const body of [undefined, {}]) {
      const { refresh: own } = await signedIn();
      const answer = await refresh(own, SAME, body);
      expect([answer.status, cookiesOf(answer).length]).to.deep.equal([200, 2]);
      expect(answer.body).not.to.have.any.keys("token", "refreshToken");
    }
    const { refreshToken } = await world.api.ok("signIn", 200, { body: credentials() });
    const answer = await refresh(cookie, SAME, { refreshToken });
    expect(cookiesOf(answer)).to.deep.equal([]);
    expect(successOf("refreshSession", answer.body).refreshToken).not.to.equal(refreshToken);
    const header = { headers: { ...SAME, cookie, authorization: "Bearer x" } };
    expect(outcomeOf(await world.api.call("refreshSession", header))).to.equal("UNAUTHORIZED");
    expect(outcomeOf(await world.api.call("refreshSession", {}))).to.equal("UNAUTHORIZED");
    expect((await refresh(cookie)).status, "it was not used up meanwhile").to.equal(200);
  });

  it("an invite can be accepted into cookies", async () => {
    const { token } = await invite(world, "member");
    const body = { token, name: "New", password: PASSWORD };
    const answer = await world.api.call("acceptInvite", { body, headers: ASKING });
    expect([answer.status, cookiesOf(answer).length]).to.deep.equal([201, 3]);
    expect(successOf("acceptInvite", answer.body)).not.to.have.any.keys("token", "refreshToken");
  });

  describe("and where a request comes from", () => {
    /** Headers of a request, and what it is refused with; null: it is one of our own pages'. */
    type Code = "UNAUTHORIZED" | "ORIGIN_NOT_ALLOWED" | null;
    const FROM: readonly (readonly [why: string, headers: (own: string) => Headers, code: Code])[] = [
      ["Sec-Fetch-Site: same-origin", () => SAME, null],
      [
        "same-origin, with another Origin",
        () => ({ ...SAME, origin: "https://evil.example" }),
        "ORIGIN_NOT_ALLOWED",
      ],
      ["same-site", () => ({ "sec-fetch-site": "same-site" }), "UNAUTHORIZED"],
      ["cross-site", () => ({ "sec-fetch-site": "cross-site" }), "UNAUTHORIZED"],
      ["none, typed into the address bar", () => ({ "sec-fetch-site": "none" }), "UNAUTHORIZED"],
      [
        "cross-site, with our Origin",
        (own) => ({ "sec-fetch-site": "cross-site", origin: own }),
        "UNAUTHORIZED",
      ],
      ["twice, and of two minds", () => ({ "sec-fetch-site": "same-origin, cross-site" }), "UNAUTHORIZED"],
      ["in capitals", () => ({ "sec-fetch-site": "SAME-ORIGIN" }), "UNAUTHORIZED"],
      ["an empty one, with our Origin", (own) => ({ "sec-fetch-site": "", origin: own }), "UNAUTHORIZED"],
      ["our Origin alone", (own) => ({ origin: own }), null],
      ["another Origin", () => ({ origin: "https://evil.example" }), "ORIGIN_NOT_ALLOWED"],
      ["our Origin as a prefix", (own) => ({ origin: `${own}.evil.example` }), "ORIGIN_NOT_ALLOWED"],
      ["our host on another port", () => ({ origin: "http://127.0.0.1:1" }), "ORIGIN_NOT_ALLOWED"],
      ["our Origin with a slash", (own) => ({ origin: `${own}/` }), "ORIGIN_NOT_ALLOWED"],
      ["Origin: null", () => ({ origin: "null" }), "ORIGIN_NOT_ALLOWED"],
      ["neither, but our Referer", (own) => ({ referer: `${own}/` }), "UNAUTHORIZED"],
      ["neither", () => ({}), "UNAUTHORIZED"],
    ];
    let unchanged: Awaited<ReturnType<typeof signedIn>> | null = null;
    for (const [why, from, code] of FROM) {
      const isOurs = code === null;
      it(`${isOurs ? "it counts" : "nothing counts that changes anything"}: ${why}`, async () => {
        // A refusal changes nothing of it.
        if (unchanged === null || isOurs) unchanged = await signedIn();
        const { refresh: refreshing, session } = unchanged;
        if (isOurs) unchanged = null;
        const sent = from(world.service.baseUrl);
        const headers = { ...sent, cookie: session };
        const expected = (status: number) => code ?? status;
        // A method that changes nothing may come from anywhere that does not say so: SameSite keeps other sites' out.
        const mayRead = code !== "ORIGIN_NOT_ALLOWED";
        expect((await world.api.call("getMe", { headers })).status).to.equal(mayRead ? 200 : 403);
        const missing = "01a1fe1f-266a-71a6-aba2-6fc9c6ac782f";
        const post = await world.api.call("pauseAgent", { headers, id: missing });
        const patch = await world.api.call("updateMember", {
          headers,
          id: missing,
          body: { role: "member" },
        });
        const del = await world.api.call("revokeInvite", { headers, id: missing });
        expect([post, patch, del].map(outcomeOf)).to.deep.equal(
          isOurs ? ["NOT_FOUND", "STEP_UP_REQUIRED", "NOT_FOUND"] : Array(3).fill(code),
        );
        expect(outcomeOf(await refresh(refreshing, sent))).to.equal(expected(200));
        // No user is signed in by another site, and a header of theirs is no way round.
        expect(outcomeOf(await signIn({ ...sent, "svc-session": "cookie" }))).to.equal(expected(200));
        expect(outcomeOf(await world.api.call("signOut", { headers }))).to.equal(expected(204));
      });
    }

    it("a cross-origin sign-in, set-up or invite that asks for cookies is refused without effect", async () => {
      const { token } = await invite(world, "member");
      const accept = { token, name: "New", password: PASSWORD };
      const elsewhere = { "svc-session": "cookie", "sec-fetch-site": "cross-site" };
      const wanted = { body: accept, headers: elsewhere };
      const refused = await world.api.refused("acceptInvite", 401, "UNAUTHORIZED", wanted);
      expect(refused.message).to.include("same-origin");
      const setUp = {
        token: "x",
        organizationName: "O",
        name: "N",
        email: "n@example.com",
        password: PASSWORD,
      };
      await world.api.refused("setUp", 401, "UNAUTHORIZED", { body: setUp, headers: elsewhere });
      const answer = await signIn(elsewhere);
      expect([outcomeOf(answer), cookiesOf(answer).length]).to.deep.equal(["UNAUTHORIZED", 0]);
      await world.api.ok("acceptInvite", 201, { body: accept });
    });
  });

  it("an Authorization header goes before a cookie, also a bad one", async () => {
    const { session } = await signedIn();
    for (const authorization of ["Bearer x", "Basic eDp5", "Bearer ", "x", `Bearer ${"x".repeat(4097)}`]) {
      const headers = { cookie: session, authorization };
      await world.api.refused("getMe", 401, "UNAUTHORIZED", { headers });
    }
    const other = await newWorld(service);
    const headers = { cookie: session, authorization: `Bearer ${other.token}` };
    const { organization } = await world.api.ok("getMe", 200, { headers });
    expect(organization.id).to.equal(other.organization.organizationId);
  });

  it("a credential in quotes, with its scheme twice or without: the refusal says how it is sent", async () => {
    const { token } = world;
    for (const authorization of [
      `Bearer "${token}"`,
      `Bearer 'x'`,
      `Bearer Bearer ${token}`,
      token,
      "Bearer",
    ]) {
      const { message } = await world.api.refused("getMe", 401, "UNAUTHORIZED", {
        headers: { authorization },
      });
      expect(message, authorization).to.include("`Authorization: Bearer <credential>`, without quotes");
    }
  });

  it("a cookie is a session's and nothing else: no key, no refresh token, and never on /mcp", async () => {
    const agent = await world.agent();
    const { refresh: refreshing, session } = await signedIn();
    const keyInCookie = { headers: { ...SAME, cookie: `${names.session}=${agent.key}` } };
    await world.api.refused("listPayments", 401, "UNAUTHORIZED", keyInCookie);
    const swapped = { headers: { cookie: refreshing.replace(names.refresh, names.session) } };
    await world.api.refused("getMe", 401, "UNAUTHORIZED", swapped);
    const asRefresh = session.replace(names.session, names.refresh);
    expect(outcomeOf(await refresh(asRefresh))).to.equal("UNAUTHORIZED");
    const body = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    for (const cookie of [session, `${names.session}=${agent.key}`]) {
      const headers = { ...SAME, cookie, accept: "application/json, text/event-stream" };
      const answer = await world.service.api.call("POST", "/mcp", { headers, body });
      expect(answer.status).to.equal(401);
    }
  });

  it("odd cookies are no credential: duplicate, quoted, cut, encoded, oversized, misnamed", async () => {
    const { session, tokens } = await signedIn();
    const [token = ""] = tokens;
    for (const cookie of [
      `${session}; ${session}`,
      `${session}; ${names.session}=x`,
      `${names.session}=x; ${session}`,
      `${session};${names.session}`,
      `${session}; ${names.session} =`,
      `${names.session}="${token}"`,
      `${names.session}=${token.slice(0, -2)}`,
      `${names.session}=${token}x`,
      `${names.session}=${token}%00`,
      `${names.session}=${encodeURIComponent(token).replaceAll(".", "%2E")}`,
      `${names.session}=${token}, ${token}`,
      `${names.session}=`,
      names.session,
      "=",
      ";;;",
      `${names.session}=${"x".repeat(5_000)}.${"y".repeat(1_000)}.z`,
      `${names.session}=${"..".repeat(2_000)}`,
      `${names.session.toUpperCase()}=${token}`,
      `__Host-${names.session}=${token}`,
      `svc_session=${token}`,
      `$Version=1; __proto__=${token}`,
      `x${names.session}=${token}`,
    ]) {
      const answer = await world.api.call("getMe", { headers: { cookie } });
      expect(outcomeOf(answer), cookie.slice(0, 60)).to.equal("UNAUTHORIZED");
    }
    for (const cookie of [`a=b; ${session}; c=d`, `  ${session}  `, `;;${session}`, `bad=%; ${session}`]) {
      const answer = await world.api.call("getMe", { headers: { cookie } });
      expect(answer.status, cookie.slice(0, 20)).to.equal(200);
    }
  });
});

describe("a browser's session behind https", () => {
  let service: TestService;
  let world: World;
  before(async () => {
    service = await startTestService({ publicUrl: PUBLIC_URL });
    world = await newWorld(service);
  });
  after(() => service.stop());

  it("has the prefixes and Secure, counts under no other name, and knows its public origin", async () => {
    const { email, password } = world.organization;
    const headers = { "svc-session": "cookie", origin: PUBLIC_URL };
    const answer = await world.api.call("signIn", { body: { email, password }, headers });
    const cookies = cookiesOf(answer);
    expect(cookies.map(({ name }) => name)).to.deep.equal([
      "__Host-svc_session",
      "__Secure-svc_refresh",
      "__Secure-svc_device",
    ]);
    for (const { attributes } of cookies) {
      expect(attributes).to.include({ secure: true, httpOnly: true, sameSite: "strict" });
      expect(attributes).not.to.have.any.keys("domain");
    }
    const [session] = cookies;
    await world.api.ok("getMe", 200, { headers: { cookie: `__Host-svc_session=${session?.value ?? ""}` } });
    const plain = { headers: { cookie: `svc_session=${session?.value ?? ""}` } };
    await world.api.refused("getMe", 401, "UNAUTHORIZED", plain);
    const here = { "svc-session": "cookie", origin: service.baseUrl };
    await world.api.refused("signIn", 401, "UNAUTHORIZED", {
      body: { email, password },
      headers: here,
    });
  });

  it("is documented by the name that it has, and the answers ask for https from now on", async () => {
    const answer = await service.api.call("GET", "/v1/openapi.json");
    expect(answer.body).to.have.nested.property(
      "components.securitySchemes.sessionCookie.name",
      "__Host-svc_session",
    );
    expect(answer.headers.get("strict-transport-security")).to.match(/^max-age=\d{8}/);
  });
});
