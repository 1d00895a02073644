import { refusal } from "../../src/domain/errors.ts";
import { ok, refused, type Result } from "../../src/domain/result.ts";
import type { AuthContext } from "./context.ts";
import type { OrganizationDocument } from "./documents.ts";
import { hasFactor } from "./factors.ts";
import type { SessionPrincipal } from "./principal.ts";

/** What is left out stays. */
export interface OrganizationSettings {
  /** Null: nobody. */
  readonly walletOwner?: string | null;
  readonly requireSecondFactor?: boolean;
}

export interface SettingsChanged {
  readonly before: OrganizationDocument;
  readonly after: OrganizationDocument;
}

/**
 * Changes the settings of the caller's organization, all or none. A second factor that is required binds every person's
 * next request: each of their records says it, and whoever joins meanwhile is in conflict with this. Whoever has none
 * can't require one of others: `SECOND_FACTOR_ENROLMENT_REQUIRED`.
 */
export async function changeOrganizationSettings(
  context: AuthContext,
  { organizationId, userId }: SessionPrincipal,
  { requireSecondFactor, walletOwner }: OrganizationSettings,
): Promise<Result<SettingsChanged>> {
  const { organizations, users } = context.collections;
  const write = () =>
    context.transaction<Result<SettingsChanged>>(async (session) => {
      if (requireSecondFactor === true && !(await hasFactor(context, userId, session)))
        return refused(refusal("SECOND_FACTOR_ENROLMENT_REQUIRED"));
      const _id = organizationId;
      const before = await organizations.findOneAndUpdate(
        { _id },
        { $inc: { membersRevision: 1 } },
        { session },
      );
      const set = {
        ...(requireSecondFactor === true ? { requireSecondFactor } : {}),
        ...(typeof walletOwner === "string" ? { walletOwner } : {}),
      };
      const unset = {
        ...(requireSecondFactor === false ? { requireSecondFactor: "" as const } : {}),
        ...(walletOwner === null ? { walletOwner: "" as const } : {}),
      };
      await organizations.updateOne({ _id }, { $set: set, $unset: unset }, { session });
      if (requireSecondFactor !== undefined) {
        const change = requireSecondFactor
          ? { $set: { secondFactorRequired: true } as const }
          : { $unset: { secondFactorRequired: "" } as const };
        await users.updateMany({ organizationId }, change, { session });
      }
      const after = await organizations.findOne({ _id }, { session });
      if (before === null || after === null) throw new Error("a caller's organization has lost its record");
      return ok({ before, after });
    });
  return await context.turns.take(organizationId, write);
}
