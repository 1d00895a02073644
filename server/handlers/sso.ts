import { SSO_PAGE } from "../../src/contract/cookies.ts";
import { ok, refused } from "../../src/domain/result.ts";
import { invalid } from "../../src/identity/new-user.ts";
import type { SsoDocument } from "../../src/store/sso-documents.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import { sessionReply } from "./session-reply.ts";
import type { Handlers } from "./types.ts";

type SsoHandlers = Pick<
  Handlers,
  "endSsoSessions" | "finishSso" | "getSso" | "removeSso" | "setSso" | "startSso"
>;

/** Sign-in by an organization's identity provider. */
export function ssoHandlers({ auth, baseUrl }: HandlerDependencies): SsoHandlers {
  const shown = (sso: SsoDocument | null) => ({
    body: {
      sso: sso && viewOf(sso),
      callbackUrl: `${baseUrl}${SSO_PAGE}`,
      logoutUrl: `${baseUrl}/v1/auth/sso/logout`,
    },
  });
  return {
    async getSso(_input, { principal: { organizationId } }) {
      return ok(shown(await auth.sso(organizationId)));
    },
    async setSso({ body }, { audit, principal }) {
      const wrong = await auth.judgeIssuer(body);
      if (wrong !== null) return refused(invalid("issuer", wrong));
      const set = await auth.writing(audit).setSso(principal, body);
      return set.ok ? ok(shown(set.value)) : set;
    },
    async removeSso(_input, { audit, principal }) {
      const removed = await auth.writing(audit).removeSso(principal);
      return removed.ok ? ok({ body: undefined }) : removed;
    },
    async startSso({ body }) {
      const begun = await auth.beginSso(body);
      return begun.ok ? ok({ body: { url: begun.value.url }, ssoFlow: begun.value.flowToken }) : begun;
    },
    async finishSso({ body: { flow: flowToken, ...answer } }, { audit, userAgent }) {
      const input = { answer, flowToken, userAgent };
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
