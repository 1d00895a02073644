import type { HandlerDependencies } from "./dependencies.ts";
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

const notBuilt = (): never => {
  throw new Error("not built yet");
};

/** Members and invites (decisions.md section 2). */
export function memberHandlers(_dependencies: HandlerDependencies): MemberHandlers {
  return {
    listMembers: notBuilt,
    updateMember: notBuilt,
    removeMember: notBuilt,
    createInvite: notBuilt,
    listInvites: notBuilt,
    revokeInvite: notBuilt,
    acceptInvite: notBuilt,
  };
}
