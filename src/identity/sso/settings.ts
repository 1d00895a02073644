import type { ClientSession } from "mongodb";
import { changed, unchanged } from "../../audit/notes.ts";
import { type Refusal, refusal } from "../../domain/errors.ts";
import { ok, refused, type Result } from "../../domain/result.ts";
import { isDuplicateKey } from "../../lib/duplicate-key.ts";
import { type SsoDocument, ssoOf } from "../../store/sso-documents.ts";
import type { AuthContext, WritingContext } from "../context.ts";
import { invalid } from "../new-user.ts";
import { requireOfAll } from "../requirements.ts";
import type { SessionPrincipal } from "../session-principal.ts";

export const SSO_SECRET_PURPOSE = "sso-secret";

export interface SsoChoice {
  readonly issuer: string;
  readonly clientId: string;
  /** Defaults to the stored secret of the same client. */
  readonly clientSecret?: string | undefined;
  readonly domains: readonly string[];
  readonly required: boolean;
  readonly jit: { readonly role: "member" | "auditor" } | null;
}

/** Reads the organization's identity provider; null if there is none, or the record is forged. */
export const readSso = async ({ accessProofs, db }: AuthContext, organizationId: string) =>
  accessProofs.genuine("sso", await ssoOf(db).findOne({ _id: organizationId }));

/**
 * Returns what is wrong with a provider and domains named by an owner, or null. Calls other servers, so it runs before
 * anything is written.
 */
export async function judgeSso(
  { domainProofs, providers }: AuthContext,
  { organizationId }: SessionPrincipal,
  { clientId, domains, issuer }: SsoChoice,
): Promise<Refusal | null> {
  const unproved = (await domainProofs?.judge(organizationId, domains)) ?? null;
  if (unproved !== null) return invalid("domains", unproved);
  const wrong =
    providers === null
      ? "can't be reached"
      : await providers.judge({ clientId, issuer, clientSecret: "unused" });
  return wrong === null ? null : invalid("issuer", wrong);
}

/**
 * Replaces the organization's identity provider, and writes into each person's record whether it is their only way in.
 * Serialized with changes of members, so that nobody joins around it.
 */
export async function setSso(
  context: WritingContext,
  principal: SessionPrincipal,
  { clientSecret, jit, ...choice }: SsoChoice,
): Promise<Result<SsoDocument>> {
  const { accessProofs, clock, db, sealer } = context;
  const { organizationId: _id } = principal;
  const write = async (session: ClientSession) => {
    if (!(await isStillOwner(context, principal, session)))
      return unchanged(refused(refusal("ROLE_REQUIRED")));
    const before = accessProofs.genuine("sso", await ssoOf(db).findOne({ _id }, { session }));
    const isSameClient = before?.issuer === choice.issuer && before.clientId === choice.clientId;
    const sealedSecret =
      clientSecret === undefined ? null : sealer.seal(SSO_SECRET_PURPOSE, _id, clientSecret);
    const secret = sealedSecret ?? (isSameClient ? before.sealedSecret : null);
    if (secret === null) return unchanged(refused(invalid("clientSecret", "is required")));
    const { proof: _none, ...chosen } = accessProofs.proven("sso", {
      _id,
      ...choice,
      sealedSecret: secret,
      jitRole: jit?.role ?? null,
      updatedAt: clock(),
    });
    const after: SsoDocument = accessProofs.proven("sso", chosen);
    await ssoOf(db).replaceOne({ _id }, after, { upsert: true, session });
    await requireOfAll(context, _id, "ssoRequired", after.required, session);
    return changed(ok(after), { before: before && auditedFields(before), after: auditedFields(after) });
  };
  try {
    return await context.mutex.run(_id, () => context.transaction<Result<SsoDocument>>(write));
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    return refused(invalid("domains", "One of them, or the client, is another organization's."));
  }
}

/** Ends sign-ins by the provider. Existing sessions continue to their end. */
export async function removeSso(context: WritingContext, principal: SessionPrincipal): Promise<Result<null>> {
  const { db, mutex, transaction } = context;
  const { organizationId: _id } = principal;
  return await mutex.run(_id, () =>
    transaction<Result<null>>(async (session) => {
      if (!(await isStillOwner(context, principal, session)))
        return unchanged(refused(refusal("ROLE_REQUIRED")));
      const before = await ssoOf(db).findOneAndDelete({ _id }, { session });
      if (before === null) return unchanged(refused(refusal("NOT_FOUND")));
      await requireOfAll(context, _id, "ssoRequired", false, session);
      return changed(ok(null), { before: auditedFields(before) });
    }),
  );
}

/** Returns the audited fields: everything but the secret. */
const auditedFields = ({ clientId, domains, issuer, jitRole, required }: SsoDocument) => ({
  issuer,
  clientId,
  domains,
  required,
  jitRole,
});

/** Whether the caller is still an owner. Writes the revision too, so that changes of members conflict. */
async function isStillOwner(
  { accessProofs, collections: { organizations, users } }: WritingContext,
  { organizationId, userId }: SessionPrincipal,
  session: ClientSession,
): Promise<boolean> {
  await organizations.updateOne({ _id: organizationId }, { $inc: { membersRevision: 1 } }, { session });
  const caller = await users.findOne({ _id: userId, organizationId, role: "owner" }, { session });
  return accessProofs.genuine("user", caller) !== null;
}
