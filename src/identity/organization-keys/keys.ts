import type DataLoader from "dataloader";
import { randomBytes } from "node:crypto";
import { formatApiKey, last4 } from "../../domain/api-key.ts";
import { refusal } from "../../domain/errors.ts";
import { ok, refused, type Result } from "../../domain/result.ts";
import { type AuditedWrites, changed, type Outcome, unchanged } from "../../audit/notes.ts";
import type { AuthCollections } from "../../store/identity-documents.ts";
import type { Organizations } from "../organizations.ts";
import type { SessionPrincipal } from "../session-principal.ts";
import type { Collections } from "../../store/collections.ts";
import { newId } from "../../lib/ids.ts";
import type { KeyUse } from "../../agents/key-use.ts";
import { bindingRefusal } from "../binding.ts";
import type { OrganizationKeyPrincipal } from "../principals.ts";
import type { AccessProofs } from "../../secrets/access-proofs.ts";
import type { ApiKeyHashes } from "../../secrets/api-key-hash.ts";
import { isSameText } from "../../lib/same-text.ts";
import type { ClientSession } from "mongodb";
import { batchLoader } from "../../lib/batch-loader.ts";
import type { KeyedMutex } from "../../lib/keyed-mutex.ts";
import type { OrganizationKeyDocument } from "../../store/organization-key-documents.ts";

export interface OrganizationKeysDependencies {
  readonly collections: Pick<Collections, "organizationKeys" | "projects" | "teams">;
  /** For checking at the commit that the creating member still exists and may still create keys. */
  readonly users: AuthCollections["users"];
  readonly organizations: Organizations;
  readonly accessProofs: AccessProofs;
  readonly hashes: ApiKeyHashes;
  readonly clock: () => Date;
  readonly keyUse: KeyUse<OrganizationKeyDocument>;
  readonly mutex: KeyedMutex;
}

/** Properties of a key fixed for its whole life. */
export type KeyChoice = Pick<OrganizationKeyDocument, "name" | "scopes" | "binding" | "dailyCreateLimit">;

/** A key with its value, which is shown only once. */
export interface MintedKey {
  readonly document: OrganizationKeyDocument;
  readonly value: string;
}

const unauthorized = () => refused(refusal("UNAUTHORIZED"));

/** Organization keys: created, rotated, revoked, and verified against the database on every request. */
export class OrganizationKeys {
  readonly #dependencies: OrganizationKeysDependencies;

  /** Batches the loads of concurrent requests; caches nothing for later ones. */
  readonly #byHashes: DataLoader<readonly string[], OrganizationKeyDocument | null>;

  constructor(dependencies: OrganizationKeysDependencies) {
    this.#dependencies = dependencies;
    const { organizationKeys } = dependencies.collections;
    this.#byHashes = batchLoader(async (presented) => {
      const alive = { hash: { $in: presented.flat() }, rotatedAt: null, revokedAt: null };
      const found = new Map((await organizationKeys.find(alive).toArray()).map((key) => [key.hash, key]));
      return presented.map(
        (hashes) => hashes.map((hash) => found.get(hash)).find((key) => key !== undefined) ?? null,
      );
    });
  }

  /** Returns the key's principal; the key is read from the database for every request. */
  async authenticate(value: string): Promise<Result<OrganizationKeyPrincipal>> {
    const { accessProofs, keyUse, organizations } = this.#dependencies;
    const hashes = this.#dependencies.hashes.all(value);
    const found = accessProofs.genuine("organizationKey", await this.#byHashes.load(hashes));
    if (found === null || !hashes.some((hash) => isSameText(found.hash, hash))) return unauthorized();
    const organization = await organizations.of(found.organizationId);
    if (organization === null) return unauthorized();
    keyUse.used(found._id, (lastUsedAt) => ({
      updateOne: { filter: { _id: found._id }, update: { $max: { lastUsedAt } } },
    }));
    const [hash = found.hash] = hashes;
    if (hash !== found.hash) {
      const change = accessProofs.changed("organizationKey", found, { hash });
      keyUse.used(`${found._id}/hash`, () => ({
        updateOne: { filter: { _id: found._id, hash: found.hash }, update: { $set: change } },
      }));
    }
    const { _id: keyId, lineageId, organizationId, scopes, binding, dailyCreateLimit } = found;
    return ok({
      type: "organization_key",
      keyId,
      lineageId,
      organizationId,
      organization,
      scopes,
      binding,
      dailyCreateLimit,
    });
  }

  /** Creates a key. Its container must exist and not be archived: a key that can do nothing is a mistake. */
  async mint(
    principal: SessionPrincipal,
    choice: KeyChoice,
    audit: AuditedWrites,
  ): Promise<Result<MintedKey>> {
    const { collections } = this.#dependencies;
    const denied = await bindingRefusal(collections, principal.organizationId, choice.binding);
    if (denied !== null) return refused(denied);
    const minted = this.#newKey(principal, choice, null);
    return await this.#asMinter(principal, audit, async (session) => {
      await collections.organizationKeys.insertOne(minted.document, { session });
      return changed(ok(minted), {
        on: keyNamed(minted.document._id),
        after: auditedFields(minted.document),
      });
    });
  }

  /** Replaces a key's value: both writes or, after a crash, neither. Of two concurrent rotations, one wins. */
  async rotate(principal: SessionPrincipal, id: string, audit: AuditedWrites): Promise<Result<MintedKey>> {
    const { accessProofs, clock, collections } = this.#dependencies;
    return await this.#asMinter(principal, audit, async (session) => {
      const alive = { _id: id, organizationId: principal.organizationId, rotatedAt: null, revokedAt: null };
      const change = { $set: { rotatedAt: clock() } };
      const found = await collections.organizationKeys.findOne(alive, { session });
      const old = accessProofs.genuine("organizationKey", found);
      if (old === null) return unchanged(refused(refusal("NOT_FOUND")));
      await collections.organizationKeys.updateOne(alive, change, { session });
      const { name, scopes, binding, dailyCreateLimit, lineageId } = old;
      const minted = this.#newKey(principal, { name, scopes, binding, dailyCreateLimit }, lineageId);
      await collections.organizationKeys.insertOne(minted.document, { session });
      return changed(ok(minted), { before: auditedFields(old), after: auditedFields(minted.document) });
    });
  }

  /**
   * Runs `work` as a member who may create keys. Writes the member's record, as their removal and each change of their
   * role do: of a concurrent creation and removal, the second sees the first one's result, so a removed user leaves no
   * key behind. One person's creations are serialized, since they would only conflict.
   */
  #asMinter(
    { organizationId, userId }: SessionPrincipal,
    { transaction }: AuditedWrites,
    work: (session: ClientSession) => Promise<Outcome<Result<MintedKey>>>,
  ): Promise<Result<MintedKey>> {
    const { mutex, users } = this.#dependencies;
    const minter = { _id: userId, organizationId, role: { $in: ["owner", "admin"] as const } };
    const next = { $inc: { keysRevision: 1 } };
    const write = async (session: ClientSession): Promise<Outcome<Result<MintedKey>>> => {
      const { matchedCount } = await users.updateOne(minter, next, { session });
      return matchedCount === 1 ? work(session) : unchanged(refused(refusal("ROLE_REQUIRED")));
    };
    return mutex.run(`minter/${userId}`, () => transaction(write));
  }

  /**
   * Revokes a key from its next request on. Idempotent. A rotated key is not found: it is dead already, and revoking it
   * must not report success while its successor is active.
   */
  async revoke(
    principal: SessionPrincipal,
    id: string,
    { transaction }: AuditedWrites,
  ): Promise<Result<OrganizationKeyDocument>> {
    const { clock, collections } = this.#dependencies;
    const own = { _id: id, organizationId: principal.organizationId, rotatedAt: null };
    const change = [{ $set: { revokedAt: { $ifNull: ["$revokedAt", clock()] } } }];
    return await transaction<Result<OrganizationKeyDocument>>(async (session) => {
      const revoked = await collections.organizationKeys.findOneAndUpdate(own, change, {
        session,
        returnDocument: "after",
      });
      if (revoked === null) return unchanged(refused(refusal("NOT_FOUND")));
      return changed(ok(revoked), { before: auditedFields(revoked) });
    });
  }

  #newKey(principal: SessionPrincipal, choice: KeyChoice, lineageId: string | null): MintedKey {
    const { accessProofs, clock, hashes } = this.#dependencies;
    const value = formatApiKey("organization", randomBytes);
    const _id = newId("okey");
    const document: OrganizationKeyDocument = accessProofs.proven("organizationKey", {
      _id,
      organizationId: principal.organizationId,
      ...choice,
      hash: hashes.make(value),
      last4: last4(value),
      lineageId: lineageId ?? _id,
      createdBy: { type: "user", id: principal.userId },
      createdAt: clock(),
      lastUsedAt: null,
      rotatedAt: null,
      revokedAt: null,
    });
    return { document, value };
  }
}

const keyNamed = (id: string) => ({ type: "organization_key", id });

const auditedFields = ({
  _id,
  binding,
  dailyCreateLimit,
  lineageId,
  name,
  scopes,
}: OrganizationKeyDocument) => ({
  keyId: _id,
  lineageId,
  name,
  scopes,
  binding,
  dailyCreateLimit,
});
