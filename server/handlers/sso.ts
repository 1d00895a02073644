import { ssoPageOf } from "../../src/contract/cookies.ts";
import { ok, refused } from "../../src/domain/result.ts";
import type { SsoDocument } from "../../src/store/sso-documents.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import { sessionReply } from "./session-reply.ts";
import type { Handlers } from "./types.ts";

type SsoHandlers = Pick<
  Handlers,
  "endSsoSessions" | "finishSso" | "getSso" | "removeSso" | "setSso" | "startSso"
>;

export function ssoHandlers({ auth, baseUrl }: HandlerDependencies): SsoHandlers {
  const shown = (organizationId: string, sso: SsoDocument | null) => ({
    body: {
      sso: sso && viewOf(sso),
      callbackUrl: `${baseUrl}${ssoPageOf(organizationId)}`,
      logoutUrl: `${baseUrl}/v1/auth/sso/logout`,
    },
  });
  return {
    async getSso(_input, { principal: { organizationId } }) {
      return ok(shown(organizationId, await auth.sso(organizationId)));
    },
    async setSso({ body }, { audit, principal }) {
      const wrong = await auth.judgeSso(principal, body);
      if (wrong !== null) return refused(wrong);
      const set = await auth.writing(audit).setSso(principal, body);
      return set.ok ? ok(shown(principal.organizationId, set.value)) : set;
    },
    async removeSso(_input, { audit, principal }) {
      const removed = await auth.writing(audit).removeSso(principal);
      return removed.ok ? ok({ body: undefined }) : removed;
    },
    async startSso({ body }) {
      const begun = await auth.beginSso(body);
      return begun.ok ? ok({ body: { url: begun.value.url }, ssoFlow: begun.value.flowToken }) : begun;
    },
    async finishSso({ body: { flow: flowToken, organizationId, ...answer } }, { audit, userAgent }) {
      const input = { answer, flowToken, organizationId, userAgent };
      const reply = sessionReply(await auth.writing(audit).finishSso(input, audit.noteAffected));
      return reply.ok ? ok({ ...reply.value, ssoFlow: null }) : reply;
    },
    async endSsoSessions({ body }, { audit }) {
      const ended = await auth.writing(audit).endBySso(body.logout_token);
      return ended.ok ? ok({ body: undefined }) : ended;
    },
  };
}

const viewOf = ({ clientId, domains, issuer, jitRole, required }: SsoDocument) => ({
  issuer,
  clientId,
  domains: [...domains],
  required,
  jit: jitRole === null ? null : { role: jitRole },
});
