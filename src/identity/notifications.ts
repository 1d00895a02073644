import { changed, unchanged } from "../audit/notes.ts";
import { MAILED_PEOPLE_MAX } from "../domain/approval-mails.ts";
import { refusal } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import type { AuthContext, WritingContext } from "./context.ts";
import type { SessionPrincipal } from "./session-principal.ts";

export interface Notifications {
  readonly approvalMails: boolean;
  /** Whether the service sends mail at all. */
  readonly mailAvailable: boolean;
}

export async function ownNotifications(
  { collections, mailing }: AuthContext,
  { userId }: SessionPrincipal,
): Promise<Result<Notifications>> {
  const user = await collections.users.findOne({ _id: userId });
  if (user === null) return refused(refusal("UNAUTHORIZED"));
  return ok({ approvalMails: user.approvalMails === true, mailAvailable: mailing !== null });
}

/** Changes the caller's notifications. `TOO_MANY_MAILED_PEOPLE` beyond the organization's maximum. */
export async function changeNotifications(
  { collections: { users }, mailing, transaction }: WritingContext,
  { organizationId, userId }: SessionPrincipal,
  { approvalMails }: Pick<Notifications, "approvalMails">,
): Promise<Result<Notifications>> {
  return await transaction<Result<Notifications>>(async (session) => {
    const others = { organizationId, approvalMails: true as const, _id: { $ne: userId } };
    if (approvalMails && (await users.countDocuments(others, { session })) >= MAILED_PEOPLE_MAX)
      return unchanged(refused(refusal("TOO_MANY_MAILED_PEOPLE")));
    const change = approvalMails
      ? { $set: { approvalMails: true } as const }
      : { $unset: { approvalMails: "" } as const };
    const before = await users.findOneAndUpdate({ _id: userId }, change, { session });
    if (before === null) return unchanged(refused(refusal("UNAUTHORIZED")));
    return changed(ok({ approvalMails, mailAvailable: mailing !== null }), {
      before: { approvalMails: before.approvalMails === true },
      after: { approvalMails },
    });
  });
}
