import { refusal } from "../../src/domain/errors.ts";
import { ok, refused } from "../../src/domain/result.ts";
import type { SessionDocument } from "../../src/store/identity-documents.ts";
import { isSteppedUp, type SessionPrincipal } from "../../src/identity/session-principal.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import { sessionReply } from "./session-reply.ts";
import type { Handlers } from "./types.ts";

type AuthHandlers = Pick<
  Handlers,
  | "checkSetUp"
  | "setUp"
  | "signIn"
  | "refreshSession"
  | "signOut"
  | "getMe"
  | "enrollTotp"
  | "confirmTotp"
  | "stepUp"
  | "changePassword"
  | "listSessions"
  | "endSession"
  | "endOtherSessions"
>;

export function authHandlers({ auth, clock }: HandlerDependencies): AuthHandlers {
  return {
    async signIn({ body: { deviceToken: _counted, ...credentials } }, { audit, onlyUserId, userAgent }) {
      const input = { ...credentials, onlyUserId, userAgent };
      return sessionReply(await auth.writing(audit).signIn(input, audit.noteAffected));
    },
    async checkSetUp({ body }) {
      return (await auth.isSetUpToken(body.token)) ? ok({ body: undefined }) : refused(refusal("NOT_FOUND"));
    },
    async setUp({ body }, { audit, userAgent }) {
      return sessionReply(await auth.writing(audit).setUp({ ...body, userAgent }));
    },
    async refreshSession({ body }, { audit }) {
      const refreshToken = body?.refreshToken;
      if (refreshToken === undefined) return refused(refusal("UNAUTHORIZED"));
      return sessionReply(await auth.writing(audit).refresh({ refreshToken }, audit.noteAffected));
    },
    async signOut(_input, { audit, principal }) {
      const result = await auth.writing(audit).signOut(principal);
      return result.ok ? ok({ body: undefined }) : result;
    },
    async changePassword({ body }, { audit, principal }) {
      const changed = await auth.writing(audit).changePassword(principal, body);
      return changed.ok ? ok({ body: undefined }) : changed;
    },
    async listSessions(_input, { principal }) {
      const sessions = await auth.sessions(principal);
      if (!sessions.ok) return sessions;
      return ok({ body: { sessions: sessions.value.map((each) => sessionView(each, principal)) } });
    },
    async endSession({ params }, { audit, principal }) {
      const ended = await auth.writing(audit).endSession(principal, params.id);
      return ended.ok ? ok({ body: undefined }) : ended;
    },
    async endOtherSessions(_input, { audit, principal }) {
      const ended = await auth.writing(audit).endOtherSessions(principal);
      return ended.ok ? ok({ body: undefined }) : ended;
    },
    async getMe(_input, { principal }) {
      const result = await auth.me(principal);
      if (!result.ok) return result;
      const steppedUp = isSteppedUp(principal, clock());
      const stepUpExpiresAt = steppedUp ? (principal.stepUpExpiresAt?.toISOString() ?? null) : null;
      return ok({ body: { ...result.value, stepUpExpiresAt } });
    },
    async enrollTotp(_input, { audit, principal }) {
      const result = await auth.writing(audit).enrollTotp(principal);
      return result.ok ? ok({ body: result.value }) : result;
    },
    async confirmTotp({ body }, { audit, principal }) {
      const result = await auth.writing(audit).confirmTotp(principal, body);
      return result.ok ? ok({ body: result.value }) : result;
    },
    async stepUp({ body }, { audit, principal }) {
      const result = await auth.writing(audit).stepUp(principal, body);
      return result.ok ? ok({ body: result.value }) : result;
    },
  };
}

const sessionView = (
  { _id, createdAt, lastSeenAt, userAgent }: SessionDocument,
  { sessionId }: SessionPrincipal,
) => ({
  id: _id,
  createdAt: createdAt.toISOString(),
  lastSeenAt: lastSeenAt.toISOString(),
  userAgent,
  current: _id === sessionId,
});
