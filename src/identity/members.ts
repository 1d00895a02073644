import type { ClientSession } from "mongodb";
import { refusal } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import { isAdministrative, outranks } from "../domain/roles.ts";
import { changed, type Outcome, unchanged } from "../audit/notes.ts";
import type { AuthContext, WritingContext } from "./context.ts";
import type { Role } from "../contract/types.ts";
import type { UserDocument } from "../store/identity-documents.ts";
import type { Binding, Bound } from "../domain/binding.ts";
import type { SessionPrincipal } from "./session-principal.ts";
import { userView, type UserView } from "./views.ts";

/** A key that was minted by a user who can't mint any more. */
export interface LostKey {
  readonly id: string;
  readonly name: string;
  readonly last4: string;
}

export interface RoleChanged {
  readonly member: UserView;
  readonly revokedOrganizationKeys: readonly LostKey[];
}

interface MemberChanged {
  readonly member: UserDocument;
  readonly lost: readonly LostKey[];
}

/** Rights of a member. A binding that is left out stays. */
export interface Rights {
  readonly role: Role;
  readonly binding?: Binding | undefined;
}

/** End of the organization keys of a user who can't mint any more. */
export interface KeysOnLeaving {
  readonly keepKeys: boolean;
}

const REVOKED: KeysOnLeaving = { keepKeys: false };

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

/**
 * Gives a member other rights, which bind their open sessions from the next request on. A member or auditor can't mint
 * keys any more: the organization keys whose values they have seen are revoked with it, unless they are to be kept.
 */
export async function changeRole(
  context: WritingContext,
  principal: SessionPrincipal,
  memberId: string,
  { binding: chosen, role }: Rights,
  keys: KeysOnLeaving = REVOKED,
): Promise<Result<RoleChanged>> {
  const done = await changeMember<MemberChanged>(context, principal, memberId, async (member, session) => {
    const binding = boundAs(role, chosen, member);
    if (member.role === role && isSame(binding, member.binding ?? null))
      return unchanged(ok({ member, lost: [] }));
    const reason = await changeRefusal(context, principal, member, session);
    if (reason !== null) return unchanged(refused(reason));
    const { accessProofs, collections } = context;
    // A new proof would make good whatever was changed besides.
    if (accessProofs.genuine("user", member) === null) return unchanged(refused(refusal("NOT_FOUND")));
    const change = accessProofs.changed("user", member, { role, binding });
    await collections.users.updateOne({ _id: member._id }, { $set: change }, { session });
    const lost = isAdministrative(role) ? [] : await loseKeys(context, member, keys, session);
    const isRebound = !isSame(binding, member.binding ?? null);
    const entry = {
      before: { role: member.role, ...(isRebound ? { binding: member.binding ?? null } : {}) },
      after: { role, ...(isRebound ? { binding } : {}), ...keysNamed(lost, keys) },
    };
    return changed(ok({ member: { ...member, role, binding }, lost }), entry);
  });
  if (!done.ok) return done;
  const { lost, member } = done.value;
  const [view] = await memberViews(context, [member]);
  if (view === undefined) return refused(refusal("NOT_FOUND"));
  return ok({ member: view, revokedOrganizationKeys: keys.keepKeys ? [] : lost });
}

/** Only members are bound. */
function boundAs(role: Role, chosen: Binding | undefined, { binding = null }: UserDocument): Bound | null {
  if (role !== "member") return null;
  if (chosen === undefined) return binding;
  return chosen.type === "organization" ? null : chosen;
}

const isSame = (one: Bound | null, other: Bound | null): boolean =>
  one?.type === other?.type && one?.ids.toSorted().join() === other?.ids.toSorted().join();

/**
 * Removes a member; their sessions, second factors and organization keys (unless they are to be kept) end with them, and
 * their e-mail may be invited again.
 */
export async function removeMember(
  context: WritingContext,
  principal: SessionPrincipal,
  memberId: string,
  keys: KeysOnLeaving = REVOKED,
): Promise<Result<null>> {
  const { factors, invites, sessions, users } = context.collections;
  return await changeMember<null>(context, principal, memberId, async (member, session) => {
    const reason = await changeRefusal(context, principal, member, session);
    if (reason !== null) return unchanged(refused(reason));
    await users.deleteOne({ _id: member._id }, { session });
    const ended = { revokedAt: context.clock(), revokedBecause: "member_removed" } as const;
    await sessions.updateMany({ userId: member._id, revokedAt: null }, { $set: ended }, { session });
    await factors.deleteMany({ userId: member._id }, { session });
    const made = { organizationId: principal.organizationId, "createdBy.id": member._id };
    await invites.deleteMany(made, { session });
    const lost = await loseKeys(context, member, keys, session);
    return changed(ok(null), {
      before: { role: member.role, email: member.email },
      after: lost.length === 0 ? null : keysNamed(lost, keys),
    });
  });
}

/**
 * The live organization keys of a user who can't mint any more, revoked unless they are to be kept. Theirs is a key
 * whose value they were shown, by minting or by rotating it: what another user has rotated since they don't know. A mint
 * on its way is in conflict with the change that this is part of (`keysRevision`).
 */
async function loseKeys(
  { clock, collections: { organizationKeys } }: AuthContext,
  { _id, organizationId }: UserDocument,
  { keepKeys }: KeysOnLeaving,
  session: ClientSession,
): Promise<readonly LostKey[]> {
  const alive = { organizationId, "createdBy.id": _id, rotatedAt: null, revokedAt: null };
  const keys = await organizationKeys.find(alive, { session }).toArray();
  if (!keepKeys && keys.length > 0) {
    await organizationKeys.updateMany(alive, { $set: { revokedAt: clock() } }, { session });
  }
  return keys.map(({ _id: id, last4, name }) => ({ id, name, last4 }));
}

/** Lists the keys for the audit log; empty if there were none. */
function keysNamed(lost: readonly LostKey[], { keepKeys }: KeysOnLeaving): object {
  if (lost.length === 0) return {};
  return { [keepKeys ? "keptOrganizationKeys" : "revokedOrganizationKeys"]: lost.map(({ id }) => id) };
}

/**
 * Changes one member, alone in its organization: each change writes the organization's revision first, so that of two
 * at once the second starts over and sees what the first has done. That makes "the last owner" exact.
 */
async function changeMember<T>(
  context: WritingContext,
  principal: SessionPrincipal,
  memberId: string,
  change: (member: UserDocument, session: ClientSession) => Promise<Outcome<Result<T>>>,
): Promise<Result<T>> {
  const { organizations, users } = context.collections;
  const { organizationId } = principal;
  const write = async (session: ClientSession): Promise<Outcome<Result<T>>> => {
    const next = { $inc: { membersRevision: 1 } };
    await organizations.updateOne({ _id: organizationId }, next, { session });
    const member = await users.findOne({ _id: memberId, organizationId }, { session });
    if (member === null) return unchanged(refused(refusal("NOT_FOUND")));
    return await change(member, session);
  };
  return await context.mutex.run(organizationId, () => context.transaction(write));
}

/**
 * Why the caller must not change this member, or null. Only an owner touches an owner; the last one stays; and the
 * caller must still be what they were when the request came in.
 */
async function changeRefusal(
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
