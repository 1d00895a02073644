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

/** Members and invites. */
export function memberHandlers({ auth, clock, lists }: HandlerDependencies): MemberHandlers {
  const { invites, users } = auth.collections;
  return {
    async listMembers({ query }, { principal: { organizationId } }) {
      const page = await lists.page({
        collection: users,
        list: "members",
        asked: { organizationId },
        having: { organizationId },
        ...query,
        cursor: query.cursor,
      });
      if (!page.ok) return page;
      const { items, nextCursor } = page.value;
      return ok({ body: { members: await auth.memberViews(items), nextCursor } });
    },
    async updateMember({ params, query, body }, { audit, principal }) {
      const changed = await auth.changeRole(principal, params.id, body.role, audit, keysBy(query));
      return changed.ok ? ok({ body: changed.value }) : changed;
    },
    async removeMember({ params, query }, { audit, principal }) {
      const removed = await auth.removeMember(principal, params.id, audit, keysBy(query));
      return removed.ok ? ok({ body: undefined }) : removed;
    },
    async createInvite({ body }, { audit, principal }) {
      const created = await auth.createInvite(principal, body);
      if (!created.ok) return created;
      const { invite, token } = created.value;
      audit.change(null, { email: invite.email, role: invite.role });
      return ok({ body: { invite: inviteView(invite), token } });
    },
    async listInvites({ query }, { principal: { organizationId } }) {
      const page = await lists.page({
        collection: invites,
        list: "invites",
        asked: { organizationId },
        having: { organizationId },
        since: openInvitesSince(clock()),
        ...query,
        cursor: query.cursor,
      });
      if (!page.ok) return page;
      const { items, nextCursor } = page.value;
      return ok({ body: { invites: items.map(inviteView), nextCursor } });
    },
    async revokeInvite({ params }, { audit, principal }) {
      const revoked = await auth.revokeInvite(principal, params.id);
      if (!revoked.ok) return revoked;
      audit.change({ email: revoked.value.email, role: revoked.value.role }, null);
      return ok({ body: { invite: inviteView(revoked.value) } });
    },
    async acceptInvite({ body }, { audit, userAgent }) {
      return sessionReply(await auth.acceptInvite({ ...body, userAgent }, audit));
    },
  };
}

const keysBy = ({ keepKeys }: { readonly keepKeys?: "true" | "false" | undefined }) => ({
  keepKeys: keepKeys === "true",
});

const inviteView = ({ _id, createdAt, createdBy, email, expiresAt, role }: InviteDocument) => ({
  id: _id,
  email,
  role,
  createdBy,
  createdAt: createdAt.toISOString(),
  expiresAt: expiresAt.toISOString(),
});
