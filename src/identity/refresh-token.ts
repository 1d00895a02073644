import type { RandomBytes } from "../domain/api-key.ts";
import { KeyedMacs, MAC_PATTERN } from "../secrets/keyed-macs.ts";
import type { MasterKey } from "../secrets/master-key.ts";

const SECRET_SIZE_BYTES = 32;
const SECRET_CHARACTERS = 43;
/** `<session id>.<secret>.<signature>`: a UUID, 32 bytes in base64url, and a MAC with its key's id. */
const FORMAT = new RegExp(`^([0-9a-f-]{36})\\.([A-Za-z0-9_-]{${SECRET_CHARACTERS}})\\.(${MAC_PATTERN})$`);

export interface IssuedRefreshToken {
  readonly token: string;
  readonly hash: string;
}

export interface PresentedRefreshToken extends IssuedRefreshToken {
  readonly sessionId: string;
}

/**
 * Refresh tokens. Each is signed, so that a token other than the session's current one is known to be an old one and
 * its use can end the session; a made-up token can't.
 */
export class RefreshTokens {
  /** MACs under each master key in use, newest first. A token is signed and hashed under the same key. */
  readonly #macs: readonly [KeyedMacs, ...KeyedMacs[]];
  readonly #randomBytes: RandomBytes;

  constructor(masterKey: MasterKey, randomBytes: RandomBytes) {
    const [newest, ...older] = masterKey.deriveKeys("refresh-token").map((key) => new KeyedMacs([key]));
    if (newest === undefined) throw new Error("there is no master key");
    this.#macs = [newest, ...older];
    this.#randomBytes = randomBytes;
  }

  issue(sessionId: string): IssuedRefreshToken {
    const secret = Buffer.from(this.#randomBytes(SECRET_SIZE_BYTES)).toString("base64url");
    return issued(this.#macs[0], sessionId, secret);
  }

  /**
   * Returns the successors of a token. A successor is deterministic, so it can be returned again and need not be
   * stored. The first is under the newest master key; the others are those of servers with another newest key, while a
   * rotation is rolled out.
   */
  successors({
    sessionId,
    token,
  }: PresentedRefreshToken): readonly [IssuedRefreshToken, ...IssuedRefreshToken[]] {
    const [newest, ...older] = this.#macs;
    const under = (macs: KeyedMacs) =>
      issued(macs, sessionId, macs.make(`next:${token}`).slice(-SECRET_CHARACTERS));
    return [under(newest), ...older.map(under)];
  }

  /** Returns the session and hash of a token issued by the service, or null. */
  read(token: string): PresentedRefreshToken | null {
    const [, sessionId, secret, signature] = FORMAT.exec(token) ?? [];
    if (sessionId === undefined || secret === undefined || signature === undefined) return null;
    const signed = `sign:${sessionId}.${secret}`;
    const macs = this.#macs.find((each) => each.isMac(signed, signature));
    return macs === undefined ? null : { sessionId, token, hash: hashOf(macs, token) };
  }
}

function issued(macs: KeyedMacs, sessionId: string, secret: string): IssuedRefreshToken {
  const payload = `${sessionId}.${secret}`;
  const token = `${payload}.${macs.make(`sign:${payload}`)}`;
  return { token, hash: hashOf(macs, token) };
}

const hashOf = (macs: KeyedMacs, token: string): string => macs.make(`hash:${token}`);
