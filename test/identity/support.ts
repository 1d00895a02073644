import type { Document } from "mongodb";
import { generate } from "otplib";
import type { AccessKind } from "../../src/secrets/access-proofs.ts";
import { accessProofsOf, prove } from "../support/access-proofs.ts";
import { createOrganizationWithOwner } from "../../src/identity/create-organization.ts";
import { authCollections, type AuthCollections } from "../../src/store/identity-documents.ts";
import type { SessionPrincipal } from "../../src/identity/session-principal.ts";
import { withoutEntry } from "../../server/admin/record-command.ts";
import type { AuthDeps } from "../../src/identity/context.ts";
import { createAuthService, type AuthService, type AuthWrites } from "../../src/identity/service.ts";
import { transactionsOf } from "../../src/store/transactions.ts";
import type { SignedIn } from "../../src/identity/sessions.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import type { ErrorCode, Refusal } from "../../src/domain/errors.ts";
import type { Result } from "../../src/domain/result.ts";
import { atEnd } from "../support/at-end.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";
import { ensureAuthIndexes } from "../../src/store/identity-indexes.ts";

export const BASE_URL = "https://control.example.test";
export const EMAIL = "Ada@Example.test";
export const PASSWORD = "correct horse battery";
export const MINUTE = 60_000;
export const STEP = 30_000;

export const masterKeyTextOf = (letter: string): string => `${letter.repeat(33)}0123456789`;
export const masterKeyOf = (letter: string): MasterKey =>
  MasterKey.parse(masterKeyTextOf(letter), "MASTER_KEY");

/** The service without the requests that it is asked by, and so without entries in the audit log. */
export type TestAuth = AuthService & AuthWrites;

export async function authOn(deps: AuthDeps): Promise<TestAuth> {
  const auth = await createAuthService(deps);
  return { ...auth, ...auth.writing({ transaction: withoutEntry(transactionsOf(deps.db.client)) }) };
}

/** A clock that stands still until it is told to move. */
export interface TestClock {
  readonly read: () => Date;
  readonly advance: (milliseconds: number) => void;
}

export function testClock(): TestClock {
  // On the start of a step, so that a test knows which code is in reach.
  let now = Math.floor(Date.now() / STEP) * STEP;
  return {
    read: () => new Date(now),
    advance: (milliseconds) => {
      now += milliseconds;
    },
  };
}

export interface Fixture {
  readonly database: TestDatabase;
  readonly collections: AuthCollections;
  readonly masterKey: MasterKey;
  readonly clock: TestClock;
  readonly auth: TestAuth;
  readonly organizationId: string;
  readonly userId: string;
  /** Changes records as the service would; without a change, what a test has written counts as the service's own. */
  readonly prove: (kind: AccessKind, filter?: Document, change?: Document) => Promise<void>;
  /** Signs the owner in, without or with a code. */
  readonly signIn: (code?: string) => Promise<SignedIn>;
  /** Signs the owner in and authenticates the token. */
  readonly session: (code?: string) => Promise<SessionPrincipal>;
}

/** A database with indexes, and what it held when it had one organization with its owner and the service on it. */
interface Seeded {
  readonly database: TestDatabase;
  readonly organizationId: string;
  readonly userId: string;
  readonly documents: ReadonlyMap<string, readonly Document[]>;
}

/** Databases that no test uses now: a new one takes several times as long as emptying one. */
const free: Seeded[] = [];

atEnd(async () => {
  await Promise.all(free.splice(0).map(({ database }) => database.close()));
});

/** A database with nothing but one organization and its owner, and the service on it. */
export async function fixture(): Promise<Fixture> {
  const clock = testClock();
  const masterKey = masterKeyOf("k");
  const seeded = free.pop() ?? (await seededDatabase(masterKey, clock));
  const { organizationId, userId } = seeded;
  const { client, db } = seeded.database;
  const database = { client, db, close: () => restore(seeded) };
  const auth = await authOn({ db, masterKey, baseUrl: BASE_URL, clock: clock.read });
  const signIn = async (code?: string): Promise<SignedIn> =>
    valueOf(await auth.signIn({ email: EMAIL, password: PASSWORD, code }));
  const session = async (code?: string): Promise<SessionPrincipal> =>
    valueOf(await auth.authenticateSession((await signIn(code)).token));
  return {
    database,
    collections: authCollections(db),
    masterKey,
    clock,
    auth,
    organizationId,
    userId,
    prove: (kind, filter, change) => prove(db, kind, filter, change, accessProofsOf(masterKey)),
    signIn,
    session,
  };
}

async function seededDatabase(masterKey: MasterKey, clock: TestClock): Promise<Seeded> {
  const database = await testDatabase();
  const { db } = database;
  try {
    await ensureAuthIndexes(db);
    const owner = { ownerEmail: EMAIL, ownerPassword: PASSWORD };
    const input = { name: "Analytical Engines", ...owner, plan: "pro" };
    const { organizationId, userId } = valueOf(
      await createOrganizationWithOwner(db, accessProofsOf(masterKey), input, clock.read),
    );
    await authOn({ db, masterKey, baseUrl: BASE_URL, clock: clock.read });
    const documents = new Map<string, readonly Document[]>();
    for (const { collectionName: name } of await db.collections()) {
      documents.set(name, await db.collection(name).find().toArray());
    }
    return { database, organizationId, userId, documents };
  } catch (error) {
    // An open connection would keep the failed run from ending.
    await database.close();
    throw error;
  }
}

async function restore(seeded: Seeded): Promise<void> {
  for (const collection of await seeded.database.db.collections()) {
    const documents = seeded.documents.get(collection.collectionName);
    // A collection that a test made may have validators of its own.
    if (documents === undefined) await collection.drop();
    else await collection.deleteMany({});
    if (documents !== undefined && documents.length > 0) await collection.insertMany([...documents]);
  }
  free.push(seeded);
}

/** Enrols and confirms TOTP for the owner; the current step's code is used up by that. */
export async function withTotp(the: Fixture): Promise<{ secret: string; principal: SessionPrincipal }> {
  const principal = await the.session();
  const { secret } = valueOf(await the.auth.enrollTotp(principal));
  valueOf(await the.auth.confirmTotp(principal, { code: await codeAt(secret, the.clock.read()) }));
  return { secret, principal };
}

/** The code that a generator shows at that time. */
export const codeAt = (secret: string, time: Date): Promise<string> =>
  generate({ secret, epoch: Math.floor(time.getTime() / 1000) });

/** Waits until a code is in reach that no earlier one has used up. */
export async function laterCode(the: Fixture, secret: string): Promise<string> {
  the.clock.advance(STEP);
  return await codeAt(secret, new Date(the.clock.read().getTime() + STEP));
}

/** A code that is none of those in reach. */
export async function wrongCode(secret: string, time: Date): Promise<string> {
  const near = await Promise.all(
    [-2, -1, 0, 1, 2].map((offset) => codeAt(secret, new Date(time.getTime() + offset * STEP))),
  );
  const wrong = ["000000", "111111", "222222", "333333", "444444", "555555"].find(
    (code) => !near.includes(code),
  );
  if (wrong === undefined) throw new Error("Six codes can't all be among five.");
  return wrong;
}

export function valueOf<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(`Refused with ${result.refusal.code}: ${result.refusal.message}`);
  return result.value;
}

export function refusalOf(result: Result<unknown>): Refusal {
  if (result.ok) throw new Error("It was not refused.");
  return result.refusal;
}

/** The refusal's code, or null for success: what a table or a count of outcomes compares. */
export const outcomeOf = (result: Result<unknown>): ErrorCode | null =>
  result.ok ? null : result.refusal.code;

export function countOutcomes(results: readonly Result<unknown>[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const result of results) {
    const outcome = outcomeOf(result) ?? "ok";
    counts[outcome] = (counts[outcome] ?? 0) + 1;
  }
  return counts;
}

/** The same thing so many times at once. */
export const atOnce = <T>(times: number, run: (index: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: times }, (_, index) => run(index)));
