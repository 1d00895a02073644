import { randomBytes } from "node:crypto";
import type DataLoader from "dataloader";
import type { Db } from "mongodb";
import type { RandomBytes } from "../domain/api-key.ts";
import type { MasterKey } from "../secrets/master-key.ts";
import { AccessProofs } from "../secrets/access-proofs.ts";
import { Sealer } from "../secrets/sealer.ts";
import type { AuditedWrites } from "../audit/notes.ts";
import { documentLoader } from "../lib/batch-loader.ts";
import { KeyedMutex } from "../lib/keyed-mutex.ts";
import {
  authCollections,
  type AuthCollections,
  type OrganizationDocument,
  type Plan,
  type SessionDocument,
  type UserDocument,
} from "../store/identity-documents.ts";
import { InviteRequests } from "./invite-requests.ts";
import { Organizations } from "./organizations.ts";
import { type PasswordCost, Passwords } from "./passwords.ts";
import { DeviceTokens } from "./device-token.ts";
import { type RelyingParty, relyingPartyOf } from "./relying-party.ts";
import { RefreshTokens } from "./refresh-token.ts";
import { SessionTokens } from "./session-token.ts";
import type { DomainProofs } from "./sso/domain-proofs.ts";
import type { Providers } from "./sso/providers.ts";
import { loadSigningKey } from "./signing-key.ts";

/** Maximum wait for a lock: a longer wait would outlast the request's answer. */
const LOCK_WAIT_MS = 4_000;

export interface AuthDeps {
  readonly db: Db;
  readonly masterKey: MasterKey;
  /** Defaults to proofs that report forgeries to nobody. */
  readonly accessProofs?: AccessProofs;
  /** The service's own address: issuer and audience of session tokens. */
  readonly baseUrl: string;
  /** Relying party of passkeys. Defaults to one derived from `baseUrl`. */
  readonly relyingParty?: RelyingParty;
  /** Name that an authenticator app shows next to the account. */
  readonly productName?: string;
  readonly clock?: () => Date;
  readonly randomBytes?: RandomBytes;
  /** See `Passwords.on`. */
  readonly passwordCost?: PasswordCost;
  readonly provision?: Provision;
  /** Null or missing: invites are not mailed, and their tokens are returned instead. */
  readonly mailing?: Mailing | null;
  /** Null or missing: sign-in through an identity provider is off. */
  readonly providers?: Providers | null;
  /** Null or missing: an organization may name any domain not named by another. */
  readonly domainProofs?: DomainProofs | null;
  /** Called when a session is used, at most about once a minute per session. */
  readonly onSessionUsed?: (sessionId: string) => void;
  /** Plan of the organization created through the set-up link; "free" by default. */
  readonly defaultPlan?: Plan;
  /** Shared with the other readers of callers' organizations. */
  readonly organizations?: Organizations;
}

/**
 * Starts the provisioning of an organization unless it has begun. Resolves once provisioning is done or `waitMs` is
 * over. Idempotent. Never throws: an unreachable engine must not keep users from signing in.
 */
export type Provision = (organization: OrganizationDocument, waitMs: number) => Promise<void>;

export interface Mailing {
  linkOf(token: string): string;
  /** Starts mailing an invite that was just written. Never throws: a failed start is repeated later. */
  begin(invite: { readonly _id: string; readonly organizationId: string }): Promise<void>;
  /** Called for each invite refused by a limit. */
  readonly onLimited: () => void;
}

/** Dependencies shared by the operations of this folder. */
export interface AuthContext {
  readonly db: Db;
  readonly masterKey: MasterKey;
  readonly collections: AuthCollections;
  readonly accessProofs: AccessProofs;
  /** Batches the loads of concurrent requests; caches nothing for later ones. A forged record loads as null. */
  readonly loaders: {
    readonly sessions: DataLoader<string, SessionDocument | null>;
    readonly users: DataLoader<string, UserDocument | null>;
  };
  readonly organizations: Organizations;
  readonly sealer: Sealer;
  readonly passwords: Passwords;
  readonly sessionTokens: SessionTokens;
  readonly refreshTokens: RefreshTokens;
  readonly deviceTokens: DeviceTokens;
  readonly relyingParty: RelyingParty;
  readonly productName: string;
  readonly defaultPlan: Plan;
  readonly clock: () => Date;
  readonly randomBytes: RandomBytes;
  readonly provision: Provision;
  readonly mailing: Mailing | null;
  readonly providers: Providers | null;
  readonly domainProofs: DomainProofs | null;
  readonly baseUrl: string;
  readonly inviteRequests: InviteRequests;
  readonly onSessionUsed: (sessionId: string) => void;
  /**
   * Serializes changes of one organization's members, or of one person's factors, which would otherwise only conflict.
   */
  readonly mutex: KeyedMutex;
}

/** Context of one request that changes something: each write has its entry in the audit log. */
export type WritingContext = AuthContext & AuditedWrites;

/** Loads the signing key, created on the first start, and prepares the other dependencies. Requires `ensureIndexes`. */
export async function createAuthContext(deps: AuthDeps): Promise<AuthContext> {
  const clock = deps.clock ?? (() => new Date());
  const random = deps.randomBytes ?? randomBytes;
  const sealer = new Sealer(deps.masterKey, random);
  const signingKey = await loadSigningKey(deps.db, sealer, clock);
  const { db, masterKey } = deps;
  const collections = authCollections(db);
  const { accessProofs = new AccessProofs(masterKey.macs("access-proofs")) } = deps;
  return {
    db,
    masterKey,
    collections,
    accessProofs,
    loaders: {
      sessions: documentLoader(
        async (_id) => accessProofs.genuine("session", await collections.sessions.findOne({ _id })),
        async (ids) => {
          const found = await collections.sessions.find({ _id: { $in: [...ids] } }).toArray();
          return found.filter((session) => accessProofs.genuine("session", session) !== null);
        },
      ),
      users: documentLoader(
        async (_id) => accessProofs.genuine("user", await collections.users.findOne({ _id })),
        async (ids) => {
          const found = await collections.users.find({ _id: { $in: [...ids] } }).toArray();
          return found.filter((user) => accessProofs.genuine("user", user) !== null);
        },
      ),
    },
    organizations: deps.organizations ?? Organizations.in(collections.organizations, clock),
    sealer,
    passwords: await Passwords.on(db, clock(), deps.passwordCost),
    sessionTokens: new SessionTokens(signingKey, deps.baseUrl),
    refreshTokens: new RefreshTokens(deps.masterKey, random),
    deviceTokens: new DeviceTokens(deps.masterKey, random),
    relyingParty: deps.relyingParty ?? relyingPartyOf(deps.baseUrl),
    productName: deps.productName ?? "Agent Spending Control",
    defaultPlan: deps.defaultPlan ?? "free",
    clock,
    randomBytes: random,
    provision: deps.provision ?? (() => Promise.resolve()),
    mailing: deps.mailing ?? null,
    providers: deps.providers ?? null,
    domainProofs: deps.domainProofs ?? null,
    baseUrl: deps.baseUrl,
    inviteRequests: new InviteRequests(collections.inviteRequests, sealer),
    onSessionUsed: deps.onSessionUsed ?? (() => undefined),
    mutex: new KeyedMutex(LOCK_WAIT_MS),
  };
}
