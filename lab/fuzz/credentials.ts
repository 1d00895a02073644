import { setTimeout as sleep } from "node:timers/promises";
import { generateSync } from "otplib";
import { z } from "zod";
import { ORGANIZATION_SCOPES } from "../../src/contract/types.ts";

/** Callers whose requests a fuzzing run makes. */
export const CALLERS = ["anonymous", "session", "organization key", "agent key"] as const;
export type Caller = (typeof CALLERS)[number];

/** An organization that a run may do anything to. */
export interface Owner {
  readonly email: string;
  readonly password: string;
  readonly teamId: string;
}

/** Credentials of a run, and a person of its organization whose sessions it may end. */
export interface Credentials {
  readonly token: string | null;
  /** Owner of the session, which must not be removed. */
  readonly ownerId: string;
  readonly guest: { readonly email: string; readonly password: string };
}

const TOTP_STEP_SECONDS = 30;
const TRIES_MAX = 20;
const PAUSE_MS = 1_000;
const GUEST_EMAIL = "guest@example.com";

const session = z.object({ token: z.string(), user: z.object({ id: z.string() }) });
const enrolled = z.object({ secret: z.string() });
const invited = z.object({ token: z.string() });
const agent = z.object({ agent: z.object({ id: z.string() }), apiKey: z.string() });
const minted = z.object({ key: z.string() });

/**
 * Makes a caller's credential in the owner's organization over REST: the owner's session, stepped up for 5 minutes,
 * or a key with every right of its kind.
 */
export async function credentialsFor(
  baseUrl: string,
  { email, password, teamId }: Owner,
  caller: Caller,
): Promise<Credentials> {
  const rest = new Rest(baseUrl);
  const signedIn = session.parse(await rest.post("/v1/auth/sign-in", null, { email, password }));
  const owner = signedIn.token;
  await stepUp(rest, owner);
  const guest = { email: `${String(Date.now())}-${GUEST_EMAIL}`, password };
  const invite = invited.parse(await rest.post("/v1/invites", owner, { email: guest.email, role: "member" }));
  await rest.post("/v1/invites/accept", null, { token: invite.token, name: "Guest", password });
  return { token: await tokenOf(rest, owner, teamId, caller), ownerId: signedIn.user.id, guest };
}

async function tokenOf(rest: Rest, owner: string, teamId: string, caller: Caller): Promise<string | null> {
  if (caller === "anonymous") return null;
  if (caller === "session") return owner;
  if (caller === "organization key") {
    const body = {
      name: "Fuzzer",
      scopes: ORGANIZATION_SCOPES,
      binding: { type: "organization" },
      dailyCreateLimit: 1_000,
    };
    return minted.parse(await rest.post("/v1/organization-keys", owner, body)).key;
  }
  // Everything from a dollar on waits for a person, so that there is something to cancel.
  const body = { name: "Fuzzer", teamId, budgetCents: 1_000_000_000_000, autoApprovalThresholdCents: 100 };
  const created = agent.parse(await rest.post("/v1/agents", owner, body));
  await rest.post(`/v1/sandbox/agents/${created.agent.id}/fund`, owner, { amountCents: 100_000_000 });
  return created.apiKey;
}

/** Enrols an authenticator app and steps up with its next code: one step early is tolerated, and a code is good once. */
async function stepUp(rest: Rest, token: string): Promise<void> {
  const { secret } = enrolled.parse(await rest.post("/v1/auth/totp", token, {}));
  const now = Math.floor(Date.now() / 1_000);
  await rest.post("/v1/auth/totp/confirm", token, { code: generateSync({ secret, epoch: now }) });
  const code = generateSync({ secret, epoch: now + TOTP_STEP_SECONDS });
  await rest.post("/v1/auth/step-up", token, { method: "totp", code });
}

/** A client that must be answered with a success. */
class Rest {
  readonly #baseUrl: string;

  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl;
  }

  /** Once more where the answer says to retry, as on a busy machine. */
  async post(path: string, token: string | null, body: object): Promise<unknown> {
    for (let tries = 1; ; tries += 1) {
      const response = await this.#once(path, token, body);
      const answer: unknown = await response.json();
      if (response.ok) return answer;
      if (response.status !== 503 || tries === TRIES_MAX) {
        throw new Error(`POST ${path}: ${String(response.status)} ${JSON.stringify(answer)}`);
      }
      await sleep(PAUSE_MS);
    }
  }

  #once(path: string, token: string | null, body: object): Promise<Response> {
    return fetch(`${this.#baseUrl}${path}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(body),
    });
  }
}
