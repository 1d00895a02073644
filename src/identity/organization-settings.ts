import { refusal } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import { changed, unchanged } from "../audit/notes.ts";
import type { WritingContext } from "./context.ts";
import type { OrganizationDocument } from "../store/identity-documents.ts";
import { hasFactor } from "./factors.ts";
import { requireOfAll } from "./requirements.ts";
import type { SessionPrincipal } from "./session-principal.ts";

/** Settings to change; an omitted field stays. */
export interface OrganizationSettings {
  /** Null: no owner. */
  readonly walletOwner?: string | null;
  readonly name?: string;
  /** Null: none. */
  readonly timezone?: string | null;
  readonly requireSecondFactor?: boolean;
}

export interface SettingsChanged {
  readonly before: OrganizationDocument;
  readonly after: OrganizationDocument;
}

/**
 * Changes the settings of the caller's organization, all or none. A newly required second factor binds every person's
 * next request: each person's record carries the requirement, and a user who joins concurrently conflicts with the
 * change. A user without a second factor cannot require one of others: `SECOND_FACTOR_ENROLMENT_REQUIRED`.
 */
export async function changeOrganizationSettings(
  context: WritingContext,
  { organizationId, userId }: SessionPrincipal,
  { name, requireSecondFactor, timezone, walletOwner }: OrganizationSettings,
): Promise<Result<SettingsChanged>> {
  const { organizations, users } = context.collections;
  const write = () =>
    context.transaction<Result<SettingsChanged>>(async (session) => {
      // A caller that waited for the lock may have been removed or demoted meanwhile.
      const isForOwners = requireSecondFactor !== undefined || walletOwner !== undefined;
      const roles = isForOwners ? (["owner"] as const) : (["owner", "admin"] as const);
      const caller = { _id: userId, organizationId, role: { $in: roles } };
      const user = context.accessProofs.genuine("user", await users.findOne(caller, { session }));
      if (user === null) return unchanged(refused(refusal("ROLE_REQUIRED")));
      if (requireSecondFactor === true && !hasFactor(user))
        return unchanged(refused(refusal("SECOND_FACTOR_ENROLMENT_REQUIRED")));
      const _id = organizationId;
      const before = await organizations.findOneAndUpdate(
        { _id },
        { $inc: { membersRevision: 1 } },
        { session },
      );
      const set = {
        ...(name === undefined ? {} : { name }),
        ...(typeof timezone === "string" ? { timezone } : {}),
        ...(requireSecondFactor === true ? { requireSecondFactor } : {}),
        ...(typeof walletOwner === "string" ? ownerFields(context, _id, walletOwner) : {}),
      };
      const unset = {
        ...(requireSecondFactor === false ? { requireSecondFactor: "" as const } : {}),
        ...(walletOwner === null ? { walletOwner: "" as const, walletOwnerProof: "" as const } : {}),
        ...(timezone === null ? { timezone: "" as const } : {}),
      };
      await organizations.updateOne({ _id }, { $set: set, $unset: unset }, { session });
      if (requireSecondFactor !== undefined)
        await requireOfAll(context, organizationId, "secondFactorRequired", requireSecondFactor, session);
      const after = await organizations.findOne({ _id }, { session });
      if (before === null || after === null) throw new Error("a caller's organization has lost its record");
      // Only the requested fields are audited, including those whose value did not change.
      const requestedFields = (organization: OrganizationDocument) => ({
        ...(name === undefined ? {} : { name: organization.name }),
        ...(timezone === undefined ? {} : { timezone: organization.timezone ?? null }),
        ...(walletOwner === undefined ? {} : { walletOwner: organization.walletOwner ?? null }),
        ...(requireSecondFactor === undefined
          ? {}
          : { requireSecondFactor: organization.requireSecondFactor === true }),
      });
      return changed(ok({ before, after }), {
        before: requestedFields(before),
        after: requestedFields(after),
      });
    });
  const written = await context.mutex.run(organizationId, write);
  context.organizations.changed(organizationId);
  return written;
}

function ownerFields({ accessProofs }: WritingContext, _id: string, walletOwner: string) {
  const owned = { _id, walletOwner };
  return { walletOwner, walletOwnerProof: accessProofs.make("walletOwner", owned) };
}
