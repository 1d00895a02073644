import { ok } from "../../src/domain/result.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

type AuthHandlers = Pick<
  Handlers,
  "setUp" | "signIn" | "refreshSession" | "signOut" | "getMe" | "enrollTotp" | "confirmTotp" | "stepUp"
>;

/** People's sessions and second factors (decisions.md section 2). */
export function authHandlers({ auth }: HandlerDependencies): AuthHandlers {
  return {
    async signIn({ body: { code, ...credentials } }) {
      const result = await auth.signIn({ ...credentials, ...(code === undefined ? {} : { code }) });
      return result.ok ? ok({ body: result.value }) : result;
    },
    setUp: () => {
      throw new Error("not built yet");
    },
    async refreshSession({ body }) {
      const result = await auth.refresh(body);
      return result.ok ? ok({ body: result.value }) : result;
    },
    async signOut(_input, { principal }) {
      const result = await auth.signOut(principal);
      return result.ok ? ok({ body: undefined }) : result;
    },
    async getMe(_input, { principal }) {
      const result = await auth.me(principal);
      if (!result.ok) return result;
      const stepUpExpiresAt = principal.stepUpExpiresAt?.toISOString() ?? null;
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
