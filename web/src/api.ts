import { type Client, createClient, RefusedError } from "../../src/client/client.ts";
import type { Refused } from "../../src/client/types.ts";

/** Client of all pages. The session is in cookies that scripts cannot read. */
export const api: Client = createClient({
  baseUrl: "",
  credential: { type: "cookies" },
  // The service responds within some seconds, if only to say that it cannot.
  timeoutMs: 20_000,
  // Short, since a person is waiting: a longer wait is shown on the page.
  patience: { triesMax: 3, pauseMsMax: 2_000 },
});

/** Client for long work, such as stopping hundreds of agents. It waits as long as a response says. */
export const patientApi: Client = createClient({
  baseUrl: "",
  credential: { type: "cookies" },
  timeoutMs: 20_000,
});

/** Returns the refusal that a query has thrown; null if it threw something else. */
export const refusedIn = (error: unknown): Refused | null =>
  error instanceof RefusedError ? error.refused : null;

const MESSAGES: Partial<Record<Refused["code"], string>> = {
  NO_ANSWER: "The service can’t be reached at the moment. Check your connection, then try again.",
  UNREADABLE: "The service can’t be reached at the moment. Try again shortly.",
  SERVICE_UNAVAILABLE: "The service can’t be reached at the moment. Try again shortly.",
  UNAUTHORIZED: "Your session has ended. Sign in again.",
  ROLE_REQUIRED: "Your role does not allow this. Ask an owner or admin.",
  SSO_REQUIRED: "Your organization signs in by its identity provider: use “Sign in with your company”.",
  SSO_FAILED: "Your company’s sign-in did not let you in. Start again.",
  SSO_NO_ACCOUNT: "You have no account here yet. Ask an admin of your organization for an invite.",
  PASSWORD_INVALID: "The current password is wrong.",
  LAST_FACTOR: "It is your last second factor. Enrol another one first.",
};

/** Returns a wait in words: in seconds below a minute, then in minutes. */
export const waitOf = (seconds: number | null): string => {
  const known = seconds ?? 60;
  if (known < 60) return `${known} seconds`;
  if (known < 120) return "a minute";
  return `${Math.ceil(known / 60)} minutes`;
};

/** Returns the text of a refusal. Issues of `fields` are omitted, because those fields show them. */
export function sentenceOf(refused: Refused, fields: readonly string[] = []): string {
  const elsewhere = refused.issues.filter(({ path }) => !fields.includes(path));
  if (refused.issues.length > 0) {
    return elsewhere
      .map(({ message, path }) => sentence(path === "" ? message : `${path}: ${message}`))
      .join(" ");
  }
  if (refused.code === "RATE_LIMITED")
    return `Too many tries. Try again in ${waitOf(refused.retryAfterSeconds)}.`;
  if (refused.code === "SECOND_FACTOR_LOCKED") {
    return `Too many wrong codes. Try again in ${waitOf(refused.retryAfterSeconds)}.`;
  }
  return MESSAGES[refused.code] ?? sentence(refused.message);
}

export const sentence = (text: string): string =>
  text.charAt(0).toUpperCase() + text.slice(1).replace(/\.?$/, ".");
