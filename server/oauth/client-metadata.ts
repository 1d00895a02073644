import { z } from "zod";
import { originsOf } from "../http/request-origins.ts";

/** Client metadata in the provider's form. */
export interface ClientMetadata {
  readonly client_name: string;
  readonly client_uri?: string;
  readonly redirect_uris: readonly string[];
  readonly grant_types: readonly ["authorization_code", "refresh_token"];
  readonly response_types: readonly ["code"];
  readonly application_type: "web" | "native";
  readonly token_endpoint_auth_method: AuthMethod;
}

/** Refusal in the terms of RFC 7591. */
export interface MetadataRefusal {
  readonly error: "invalid_client_metadata" | "invalid_redirect_uri";
  readonly error_description: string;
}

export const AUTH_METHODS = ["none", "client_secret_post", "client_secret_basic"] as const;
type AuthMethod = (typeof AUTH_METHODS)[number];

/**
 * Schemes that open applications on the user's machine. Others could run a script or reach an application that accepts
 * no codes.
 */
const APPLICATION_SCHEMES: ReadonlySet<string> = new Set(
  [
    "cursor",
    "vscode",
    "vscode-insiders",
    "vscodium",
    "code-oss",
    "windsurf",
    "trae",
    "kiro",
    "zed",
    "claude",
  ].map((name) => `${name}:`),
);

/**
 * Visible ASCII without a backslash. Browsers drop or change other characters, so the text would differ from the
 * address.
 */
const URI_CHARACTERS = /^[\x21-\x5b\x5d-\x7e]+$/;

const CHARACTERS_MAX = { name: 100, url: 2_000 } as const;
const REDIRECTS_MAX = 20;

const text = z.string().min(1).nullish();

/** Fields that are used. Others are dropped: clients register everything they have, not what this server offers. */
const metadata = z.looseObject({
  redirect_uris: z.array(z.string()).min(1).max(REDIRECTS_MAX),
  client_name: text,
  client_uri: z
    .url({ protocol: /^https?$/ })
    .max(CHARACTERS_MAX.url)
    .nullish()
    .catch(null),
  grant_types: z.array(z.string()).nullish(),
  response_types: z.array(z.string()).nullish(),
  token_endpoint_auth_method: text,
});

export const isRefusal = (checked: ClientMetadata | MetadataRefusal): checked is MetadataRefusal =>
  "error" in checked;

/**
 * Checks metadata as clients send it: without an application type despite loopback redirects, with grant types of other
 * servers, with redirects of several kinds.
 */
export function checkedMetadata(given: unknown): ClientMetadata | MetadataRefusal {
  const parsed = metadata.safeParse(given);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const path = issue?.path.join(".") ?? "";
    return invalid(path === "" ? "The metadata must be a JSON object." : `${path}: ${issue?.message ?? ""}`);
  }
  const { client_name, client_uri, grant_types, redirect_uris, response_types } = parsed.data;
  const method = authMethodOf(parsed.data.token_endpoint_auth_method);
  if (method === null)
    return invalid(`token_endpoint_auth_method must be one of: ${AUTH_METHODS.join(", ")}.`);
  if (grant_types?.includes("authorization_code") === false)
    return invalid("grant_types must contain authorization_code.");
  if (response_types?.includes("code") === false) return invalid("response_types must contain code.");
  const problem = redirect_uris.map(redirectProblem).find((found) => found !== null);
  if (problem !== undefined) return { error: "invalid_redirect_uri", error_description: problem };
  const [first = ""] = redirect_uris;
  return {
    client_name: shownName(client_name ?? "") || new URL(first).host || "MCP client",
    ...(client_uri === null || client_uri === undefined ? {} : { client_uri }),
    redirect_uris: [...new Set(redirect_uris)],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    application_type: redirect_uris.every((uri) => uri.startsWith("https:")) ? "web" : "native",
    token_endpoint_auth_method: method,
  };
}

const invalid = (error_description: string): MetadataRefusal => ({
  error: "invalid_client_metadata",
  error_description,
});

/** Clients that name no method have no secret. */
function authMethodOf(given: string | null | undefined): AuthMethod | null {
  return given === null || given === undefined
    ? "none"
    : (AUTH_METHODS.find((each) => each === given) ?? null);
}

/** Returns why a code may not be sent to an address; null if it may. */
function redirectProblem(uri: string): string | null {
  if (uri.length > CHARACTERS_MAX.url || !URI_CHARACTERS.test(uri) || !URL.canParse(uri))
    return "A redirect URI is not a URL.";
  const { hash, password, protocol, username } = new URL(uri);
  if (hash !== "" || uri.includes("#")) return "A redirect URI must have no fragment.";
  if (username !== "" || password !== "") return "A redirect URI must have no user or password.";
  if (protocol === "https:" || APPLICATION_SCHEMES.has(protocol)) return null;
  if (protocol === "http:")
    return isLoopback(uri)
      ? null
      : "A redirect URI must be https, unless it leads to this machine (loopback).";
  return `The scheme ${protocol} of a redirect URI is not allowed.`;
}

/** Whether an address is on the same machine as the browser. */
export const isLoopback = (uri: string): boolean => URL.canParse(uri) && originsOf(uri).length > 1;

/** Removes control and format characters, which could make names look alike. */
const shownName = (name: string): string =>
  name
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, "")
    .trim()
    .slice(0, CHARACTERS_MAX.name);
