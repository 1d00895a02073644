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

/** A key created by a user who may no longer create keys. */
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

/** A member's rights. An omitted binding stays. */
export interface Rights {
  readonly role: Role;
  readonly binding?: Binding | undefined;
}

/** Fate of the organization keys of a user who may no longer create keys. */
export interface KeysOnLeaving {
  readonly keepKeys: boolean;
}

const REVOKED: KeysOnLeaving = { keepKeys: false };

/** Returns members as the API shows them, in the given order. */
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
 * Changes a member's rights, effective for their open sessions from the next request on. A member or auditor may not
 * create keys, so the organization keys whose values the person has seen are revoked in the same write, unless kept.
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
    // A new proof would legitimize earlier changes by others.
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

/** Returns the binding under a role: only members are bound. */
function boundAs(role: Role, chosen: Binding | undefined, { binding = null }: UserDocument): Bound | null {
  if (role !== "member") return null;
  if (chosen === undefined) return binding;
  return chosen.type === "organization" ? null : chosen;
}

const isSame = (one: Bound | null, other: Bound | null): boolean =>
  one?.type === other?.type && one?.ids.toSorted().join() === other?.ids.toSorted().join();

/** Removes a member with their sessions, second factors and (unless kept) keys. They may be invited again. */
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
 * Returns the live organization keys of a user who may no longer create keys, revoked unless kept. These are the keys
 * whose value the user was shown, by creating or rotating them: they do not know a value that another user has rotated
 * since. A concurrent creation conflicts with this change through `keysRevision`.
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

/** Returns the lost keys for the audit log; empty if there are none. */
function keysNamed(lost: readonly LostKey[], { keepKeys }: KeysOnLeaving): object {
  if (lost.length === 0) return {};
  return { [keepKeys ? "keptOrganizationKeys" : "revokedOrganizationKeys"]: lost.map(({ id }) => id) };
}

/**
 * Changes one member exclusively in the organization. Each change first writes the organization's revision, so the
 * second of two concurrent changes starts over and sees the first one's result. That makes "the last owner" exact.
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
 * Returns why the caller must not change this member, or null. Only an owner may change an owner; the last owner stays;
 * and the caller must still have the role with which the request came in.
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
