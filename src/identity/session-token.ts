import { createHash } from "node:crypto";
import { errors, jwtVerify, SignJWT } from "jose";
import { z } from "zod";
import type { Role } from "../contract/types.ts";
import type { AuthenticationMethod } from "../store/identity-documents.ts";
import type { SigningKey } from "./signing-key.ts";

export const SESSION_TOKEN_LIFETIME_SECONDS = 900;

/** The only accepted algorithm: the token's header has no say. */
const ALGORITHM = "EdDSA";
const TYPE = "JWT";

/** Longer tokens are refused unread; genuine ones have about 700 characters. */
const MAX_TOKEN_CHARACTERS = 4096;

const claimsSchema = z.object({
  sub: z.string(),
  sid: z.string(),
  org_id: z.string(),
  org_role: z.string(),
  iat: z.number(),
  exp: z.number(),
  auth_time: z.number(),
  amr: z.array(z.string()),
});

/** Subject of a token. Only a reference to the session's record, which is authoritative. */
export interface SessionTokenSubject {
  readonly sessionId: string;
  readonly userId: string;
  readonly organizationId: string;
}

interface Verified {
  readonly subject: SessionTokenSubject;
  readonly expiresAtMs: number;
}

/** Maximum tokens whose verified signature is cached. */
const VERIFIED_TOKENS_MAX = 10_000;

export interface SessionTokenInput extends SessionTokenSubject {
  readonly role: Role;
  readonly signedInAt: Date;
  readonly amr: readonly AuthenticationMethod[];
}

/** Signs and verifies session JWTs: claims `iss aud sub sid org_id org_role iat exp auth_time amr`. */
export class SessionTokens {
  /** Verified signatures by the token's hash, so that a session's many requests pay for one verification. */
  readonly #verified = new Map<string, Verified>();
  readonly #key: SigningKey;
  readonly #baseUrl: string;

  constructor(key: SigningKey, baseUrl: string) {
    this.#key = key;
    this.#baseUrl = baseUrl;
  }

  async sign(
    input: SessionTokenInput,
    now: Date,
  ): Promise<{ readonly token: string; readonly expiresAt: Date }> {
    const issuedAt = unixSeconds(now);
    const expiresAt = issuedAt + SESSION_TOKEN_LIFETIME_SECONDS;
    const token = await new SignJWT({
      sid: input.sessionId,
      org_id: input.organizationId,
      org_role: input.role,
      auth_time: unixSeconds(input.signedInAt),
      amr: [...input.amr],
    })
      .setProtectedHeader({ alg: ALGORITHM, typ: TYPE })
      .setIssuer(this.#baseUrl)
      .setAudience(this.#baseUrl)
      .setSubject(input.userId)
      .setIssuedAt(issuedAt)
      .setExpirationTime(expiresAt)
      .sign(this.#key.privateKey);
    return { token, expiresAt: new Date(expiresAt * 1000) };
  }

  /** Returns a valid token's subject; `expired` for a formerly valid one. Null otherwise, without a reason. */
  async verify(token: string, now: Date): Promise<SessionTokenSubject | "expired" | null> {
    if (token.length > MAX_TOKEN_CHARACTERS) return null;
    const hash = createHash("sha256").update(token).digest("base64url");
    const known = this.#verified.get(hash) ?? (await this.#verifySignature(token, hash, now));
    if (known === null || known === "expired") return known;
    return now.getTime() >= known.expiresAtMs ? "expired" : known.subject;
  }

  /** Verifies a signature. A valid one is cached, so only the expiry is checked each time; a bad one is not. */
  async #verifySignature(token: string, hash: string, now: Date): Promise<Verified | "expired" | null> {
    try {
      const { payload } = await jwtVerify(token, this.#key.publicKey, {
        algorithms: [ALGORITHM],
        typ: TYPE,
        issuer: this.#baseUrl,
        audience: this.#baseUrl,
        currentDate: now,
      });
      const claims = claimsSchema.parse(payload);
      const subject = { sessionId: claims.sid, userId: claims.sub, organizationId: claims.org_id };
      const verified = { subject, expiresAtMs: claims.exp * 1_000 };
      const [oldest] = this.#verified.keys();
      if (oldest !== undefined && this.#verified.size >= VERIFIED_TOKENS_MAX) this.#verified.delete(oldest);
      this.#verified.set(hash, verified);
      return verified;
    } catch (error) {
      // Reported only for well-signed tokens.
      return error instanceof errors.JWTExpired ? "expired" : null;
    }
  }
}

const unixSeconds = (date: Date): number => Math.floor(date.getTime() / 1000);
