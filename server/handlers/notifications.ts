import { ok } from "../../src/domain/result.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

export function notificationHandlers({
  auth,
}: HandlerDependencies): Pick<Handlers, "getNotifications" | "updateNotifications"> {
  return {
    async getNotifications(_input, { principal }) {
      const own = await auth.notifications(principal);
      return own.ok ? ok({ body: { notifications: own.value } }) : own;
    },
    async updateNotifications({ body }, { audit, principal }) {
      const changed = await auth.writing(audit).changeNotifications(principal, body);
      return changed.ok ? ok({ body: { notifications: changed.value } }) : changed;
    },
  };
}
