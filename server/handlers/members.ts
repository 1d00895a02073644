import { ok, refused } from "../../src/domain/result.ts";
import { bindingRefusal } from "../../src/identity/binding.ts";
import type { Binding } from "../../src/domain/binding.ts";
import type { SessionPrincipal } from "../../src/identity/session-principal.ts";
import { openInvitesSince } from "../../src/identity/invites.ts";
import { inviteView } from "../../src/identity/views.ts";
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
  | "checkInvite"
  | "acceptInvite"
>;

export function memberHandlers({ auth, clock, collections, lists }: HandlerDependencies): MemberHandlers {
  const { invites, users } = auth.collections;
  const unboundable = ({ organizationId }: SessionPrincipal, binding: Binding = { type: "organization" }) =>
    bindingRefusal(collections, organizationId, binding);
  return {
    async listMembers({ query }, { principal: { organizationId } }) {
      const page = await lists.page({
        collection: users,
        list: "members",
        filters: { organizationId },
        equals: { organizationId },
        ...query,
        cursor: query.cursor,
      });
      if (!page.ok) return page;
      const { items, nextCursor } = page.value;
      return ok({ body: { members: await auth.memberViews(items), nextCursor } });
    },
    async updateMember({ params, query, body }, { audit, principal }) {
      const denied = await unboundable(principal, body.binding);
      if (denied !== null) return refused(denied);
      const changed = await auth.writing(audit).changeRole(principal, params.id, body, keysBy(query));
      return changed.ok ? ok({ body: changed.value }) : changed;
    },
    async removeMember({ params, query }, { audit, principal }) {
      const removed = await auth.writing(audit).removeMember(principal, params.id, keysBy(query));
      return removed.ok ? ok({ body: undefined }) : removed;
    },
    async createInvite({ body }, { audit, principal }) {
      const denied = await unboundable(principal, body.binding);
      if (denied !== null) return refused(denied);
      const created = await auth.writing(audit).createInvite(principal, body);
      if (!created.ok) return created;
      const { isReplay, ...answer } = created.value;
      return ok(isReplay ? { status: 200, body: answer } : { body: answer });
    },
    async listInvites({ query }, { principal: { organizationId } }) {
      const page = await lists.page({
        collection: invites,
        list: "invites",
        filters: { organizationId },
        equals: { organizationId },
        since: openInvitesSince(clock()),
        ...query,
        cursor: query.cursor,
      });
      if (!page.ok) return page;
      const { items, nextCursor } = page.value;
      return ok({ body: { invites: items.map(inviteView), nextCursor } });
    },
    async revokeInvite({ params }, { audit, principal }) {
      const revoked = await auth.writing(audit).revokeInvite(principal, params.id);
      return revoked.ok ? ok({ body: { invite: inviteView(revoked.value) } }) : revoked;
    },
    async checkInvite({ body }) {
      const checked = await auth.checkInvite(body.token);
      return checked.ok ? ok({ body: checked.value }) : checked;
    },
    async acceptInvite({ body }, { audit, userAgent }) {
      return sessionReply(await auth.writing(audit).acceptInvite({ ...body, userAgent }));
    },
  };
}

const keysBy = ({ keepKeys }: { readonly keepKeys?: "true" | "false" | undefined }) => ({
  keepKeys: keepKeys === "true",
});
