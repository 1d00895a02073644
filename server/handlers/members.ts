import { ok } from "../../src/domain/result.ts";
import type { InviteDocument } from "../auth/documents.ts";
import { openInvitesSince } from "../auth/invites.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import { sessionReply } from "./session-reply.ts";
import type { Handlers } from "./types.ts";

type MemberHandlers = Pick<
  Handlers,
  | "listMembers"
  | "updateMember"
  | "removeMember"
  | "createInvite"
  | "listInvites"
  | "revokeInvite"
  | "acceptInvite"
>;

/** Members and invites (decisions.md section 2). */
export function memberHandlers({ auth, clock, lists }: HandlerDependencies): MemberHandlers {
  const { invites, users } = auth.collections;
  return {
    async listMembers({ query }, { principal }) {
      const page = await lists.page({
        collection: users,
        list: "members",
        filter: { organizationId: principal.organizationId },
        ...query,
        cursor: query.cursor,
      });
      if (!page.ok) return page;
      const { items, nextCursor } = page.value;
      return ok({ body: { members: await auth.memberViews(items), nextCursor } });
    },
    async updateMember({ params, body }, { principal }) {
      const changed = await auth.changeRole(principal, params.id, body.role);
      return changed.ok ? ok({ body: { member: changed.value } }) : changed;
    },
    async removeMember({ params }, { principal }) {
      const removed = await auth.removeMember(principal, params.id);
      return removed.ok ? ok({ body: undefined }) : removed;
    },
    async createInvite({ body }, { principal }) {
      const created = await auth.createInvite(principal, body);
      if (!created.ok) return created;
      const { invite, token } = created.value;
      return ok({ body: { invite: inviteView(invite), token } });
    },
    async listInvites({ query }, { principal }) {
      const page = await lists.page({
        collection: invites,
        list: "invites",
        filter: { organizationId: principal.organizationId },
        since: openInvitesSince(clock()),
        ...query,
        cursor: query.cursor,
      });
      if (!page.ok) return page;
      const { items, nextCursor } = page.value;
      return ok({ body: { invites: items.map(inviteView), nextCursor } });
    },
    async revokeInvite({ params }, { principal }) {
      const revoked = await auth.revokeInvite(principal, params.id);
      return revoked.ok ? ok({ body: { invite: inviteView(revoked.value) } }) : revoked;
    },
    async acceptInvite({ body }) {
      return sessionReply(await auth.acceptInvite(body));
    },
  };
}

const inviteView = ({ _id, createdAt, createdBy, email, expiresAt, role }: InviteDocument) => ({
  id: _id,
  email,
  role,
  createdBy,
  createdAt: createdAt.toISOString(),
  expiresAt: expiresAt.toISOString(),
});
