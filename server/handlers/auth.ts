import { refusal } from "../../src/domain/errors.ts";
import { ok, refused } from "../../src/domain/result.ts";
import type { SessionDocument } from "../auth/documents.ts";
import { isSteppedUp, type SessionPrincipal } from "../auth/principal.ts";
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

/** People's sessions and second factors. */
export function authHandlers({ auth, clock }: HandlerDependencies): AuthHandlers {
  return {
    async signIn({ body: { code, ...credentials } }, { audit, userAgent }) {
      const input = { ...credentials, userAgent, ...(code === undefined ? {} : { code }) };
      return sessionReply(await auth.signIn(input, audit.concerns));
    },
    async checkSetUp({ body }) {
      return (await auth.isSetUpToken(body.token)) ? ok({ body: undefined }) : refused(refusal("NOT_FOUND"));
    },
    async setUp({ body }, { userAgent }) {
      return sessionReply(await auth.setUp({ ...body, userAgent }));
    },
    async refreshSession({ body }, { audit }) {
      const refreshToken = body?.refreshToken;
      if (refreshToken === undefined) return refused(refusal("UNAUTHORIZED"));
      return sessionReply(await auth.refresh({ refreshToken }, audit.concerns));
    },
    async signOut(_input, { principal }) {
      const result = await auth.signOut(principal);
      return result.ok ? ok({ body: undefined }) : result;
    },
    async changePassword({ body }, { audit, principal }) {
      const changed = await auth.changePassword(principal, body);
      if (!changed.ok) return changed;
      audit.change(null, changed.value);
      return ok({ body: undefined });
    },
    async listSessions(_input, { principal }) {
      const sessions = await auth.sessions(principal);
      if (!sessions.ok) return sessions;
      return ok({ body: { sessions: sessions.value.map((each) => sessionView(each, principal)) } });
    },
    async endSession({ params }, { principal }) {
      const ended = await auth.endSession(principal, params.id);
      return ended.ok ? ok({ body: undefined }) : ended;
    },
    async endOtherSessions(_input, { audit, principal }) {
      const ended = await auth.endOtherSessions(principal);
      if (!ended.ok) return ended;
      audit.change(null, ended.value);
      return ok({ body: undefined });
    },
    async getMe(_input, { principal }) {
      const result = await auth.me(principal);
      if (!result.ok) return result;
      const steppedUp = isSteppedUp(principal, clock());
      const stepUpExpiresAt = steppedUp ? (principal.stepUpExpiresAt?.toISOString() ?? null) : null;
      return ok({ body: { ...result.value, stepUpExpiresAt } });
    },
    async enrollTotp(_input, { principal }) {
      const result = await auth.enrollTotp(principal);
      return result.ok ? ok({ body: result.value }) : result;
    },
    async confirmTotp({ body }, { principal }) {
      const result = await auth.confirmTotp(principal, body);
      return result.ok ? ok({ body: result.value }) : result;
    },
    async stepUp({ body }, { principal }) {
      const result = await auth.stepUp(principal, body);
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
