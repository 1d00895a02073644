import { timingSafeEqual, type KeyObject } from "node:crypto";
import type { RandomBytes } from "../domain/api-key.ts";
import { hmacSha256, type MasterKey } from "../secrets/master-key.ts";

const SECRET_SIZE_BYTES = 32;
/** `<session id>.<secret>.<signature>`: a UUID, and twice 32 bytes in base64url. */
const FORMAT = /^([0-9a-f-]{36})\.([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{43})$/;

export interface IssuedRefreshToken {
  readonly token: string;
  readonly hash: string;
}

export interface PresentedRefreshToken extends IssuedRefreshToken {
  readonly sessionId: string;
}

/**
 * Refresh tokens. Each is signed, so that one which is not the session's current one is known
 * to be an old one of ours, and its use can end the session; a made-up token can't.
 */
export class RefreshTokens {
  readonly #key: KeyObject;
  readonly #randomBytes: RandomBytes;

  constructor(masterKey: MasterKey, randomBytes: RandomBytes) {
    this.#key = masterKey.deriveKey("refresh-token");
    this.#randomBytes = randomBytes;
  }

  issue(sessionId: string): IssuedRefreshToken {
    return this.#issued(sessionId, Buffer.from(this.#randomBytes(SECRET_SIZE_BYTES)).toString("base64url"));
  }

  /** The token that follows one of ours: always the same, so that it can be answered again and need not be stored. */
  successor({ sessionId, token }: PresentedRefreshToken): IssuedRefreshToken {
    return this.#issued(sessionId, hmacSha256(this.#key, `next:${token}`));
  }

  #issued(sessionId: string, secret: string): IssuedRefreshToken {
    const payload = `${sessionId}.${secret}`;
    const token = `${payload}.${this.#sign(payload)}`;
    return { token, hash: this.#hash(token) };
  }

  /** The session that a token of ours belongs to and its hash, or null. */
  read(token: string): PresentedRefreshToken | null {
    const [, sessionId, secret, signature] = FORMAT.exec(token) ?? [];
    if (sessionId === undefined || secret === undefined || signature === undefined) return null;
    const expected = Buffer.from(this.#sign(`${sessionId}.${secret}`));
    if (!timingSafeEqual(expected, Buffer.from(signature))) return null;
    return { sessionId, token, hash: this.#hash(token) };
  }

  #sign(payload: string): string {
    return hmacSha256(this.#key, `sign:${payload}`);
  }

  #hash(token: string): string {
    return hmacSha256(this.#key, `hash:${token}`);
  }
}
