// Requests to the API. The session is in cookies that no script can read.

/** The service answers within some seconds, or says that it can't. */
const TIMEOUT_MS = 20_000;
/** Pages of one browser refresh their session in turn: a refresh token that comes twice ends it. */
const REFRESHING = "svc-session";

/**
 * What the API answers: status, JSON body or null, and its clock in milliseconds or null. The status is null if no answer came, or
 * none of the API's own; what was asked for may have been done all the same.
 */
export async function send(method, path, body) {
  try {
    const response = await fetch(path, {
      method,
      headers: {
        "svc-session": "cookie",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      cache: "no-store",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const text = await response.text();
    const now = Date.parse(response.headers.get("date") ?? "");
    return {
      status: response.status,
      body: text === "" ? null : JSON.parse(text),
      now: Number.isNaN(now) ? null : now,
    };
  } catch {
    return { status: null, body: null, now: null };
  }
}

/**
 * The same in the name of whoever is signed in, whose session is refreshed first where its token has expired. A 401 means that
 * nobody is signed in, and that nothing was done.
 */
export async function ask(method, path, body) {
  const answer = await send(method, path, body);
  if (answer.status !== 401) return answer;
  return await inTurn(async () => {
    // Another page may have refreshed it meanwhile.
    const second = await send(method, path, body);
    if (second.status !== 401) return second;
    const refreshed = await send("POST", "/v1/auth/refresh");
    return refreshed.status === 200 ? await send(method, path, body) : refreshed;
  });
}

/** Browsers have locks only over https and on the machine itself; elsewhere two pages may have to sign in anew. */
const inTurn = (run) =>
  navigator.locks === undefined ? run() : navigator.locks.request(REFRESHING, () => run());
