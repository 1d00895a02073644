import type { ClientSession } from "mongodb";
import { refusal } from "../../src/domain/errors.ts";
import { ok, refused, type Result } from "../../src/domain/result.ts";
import { outranks } from "../authorize.ts";
import type { AuditNotes } from "../audit/notes.ts";
import type { AuthContext } from "./context.ts";
import type { Role, UserDocument } from "./documents.ts";
import type { SessionPrincipal } from "./principal.ts";
import { userView, type UserView } from "./views.ts";

/** Members as the API shows them, in the order given. */
export async function memberViews(
  { collections }: AuthContext,
  members: readonly UserDocument[],
): Promise<UserView[]> {
  const userIds = members.map(({ _id }) => _id);
  const factors = await collections.factors.find({ userId: { $in: userIds } }).toArray();
  return members.map((member) =>
    userView(
      member,
      factors.filter(({ userId }) => userId === member._id),
    ),
  );
}

/** Gives a member another role, which binds their open sessions from the next request on. */
export async function changeRole(
  context: AuthContext,
  principal: SessionPrincipal,
  memberId: string,
  role: Role,
  audit?: Pick<AuditNotes, "change">,
): Promise<Result<UserView>> {
  const changed = await changeMember(context, principal, memberId, async (member, session) => {
    if (member.role === role) return ok({ member, before: role });
    const reason = await whyUntouchable(context, principal, member, session);
    if (reason !== null) return refused(reason);
    await context.collections.users.updateOne({ _id: member._id }, { $set: { role } }, { session });
    return ok({ member: { ...member, role }, before: member.role });
  });
  if (!changed.ok) return changed;
  // Not sooner: what a transaction was about to do, it may be refused when it is run again.
  const { before, member } = changed.value;
  if (before !== role) audit?.change({ role: before }, { role });
  const [view] = await memberViews(context, [member]);
  return view === undefined ? refused(refusal("NOT_FOUND")) : ok(view);
}

/** Removes a member; their sessions and second factors end with them, and their e-mail is free again. */
export async function removeMember(
  context: AuthContext,
  principal: SessionPrincipal,
  memberId: string,
  audit?: Pick<AuditNotes, "change">,
): Promise<Result<null>> {
  const { factors, invites, sessions, users } = context.collections;
  const removed = await changeMember(context, principal, memberId, async (member, session) => {
    const reason = await whyUntouchable(context, principal, member, session);
    if (reason !== null) return refused(reason);
    await users.deleteOne({ _id: member._id }, { session });
    const ended = { revokedAt: context.clock(), revokedBecause: "member_removed" } as const;
    await sessions.updateMany({ userId: member._id, revokedAt: null }, { $set: ended }, { session });
    await factors.deleteMany({ userId: member._id }, { session });
    const made = { organizationId: principal.organizationId, "createdBy.id": member._id };
    await invites.deleteMany(made, { session });
    return ok({ role: member.role, email: member.email });
  });
  if (!removed.ok) return removed;
  audit?.change(removed.value, null);
  return ok(null);
}

/**
 * One change of one member, alone in its organization: each writes the organization's revision first, so that of two at
 * once the second starts over and sees what the first has done. That makes "the last owner" exact.
 */
async function changeMember<T>(
  context: AuthContext,
  principal: SessionPrincipal,
  memberId: string,
  change: (member: UserDocument, session: ClientSession) => Promise<Result<T>>,
): Promise<Result<T>> {
  const { organizations, users } = context.collections;
  const { organizationId } = principal;
  const write = async (session: ClientSession): Promise<Result<T>> => {
    const next = { $inc: { membersRevision: 1 } };
    await organizations.updateOne({ _id: organizationId }, next, { session });
    const member = await users.findOne({ _id: memberId, organizationId }, { session });
    if (member === null) return refused(refusal("NOT_FOUND"));
    return await change(member, session);
  };
  return await context.turns.take(organizationId, () => context.transaction(write));
}

/**
 * Why the caller must not change this member, or null. Only an owner touches an owner; the last one stays; and the
 * caller must still be what they were when the request came in.
 */
async function whyUntouchable(
  { collections }: AuthContext,
  principal: SessionPrincipal,
  member: UserDocument,
  session: ClientSession,
) {
  const { organizationId, userId } = principal;
  const isOwner = member.role === "owner";
  if (isOwner && principal.role !== "owner") return refusal("ROLE_REQUIRED");
  if (isOwner) {
    const owners = await collections.users.countDocuments({ organizationId, role: "owner" }, { session });
    if (owners <= 1) return refusal("LAST_OWNER");
  }
  const caller = await collections.users.findOne({ _id: userId, organizationId }, { session });
  const isStill = caller !== null && !outranks(principal.role, caller.role);
  return isStill ? null : refusal("ROLE_REQUIRED");
}
