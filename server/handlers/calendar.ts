import { calendarView } from "../../src/containers/calendar-view.ts";
import { ok } from "../../src/domain/result.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

export function calendarHandlers({
  containerBudgets,
}: HandlerDependencies): Pick<Handlers, "getProjectCalendar" | "setProjectCalendar"> {
  return {
    getProjectCalendar: async (_input, { target }) =>
      ok({ body: calendarView(await containerBudgets.calendar(target)) }),

    async setProjectCalendar({ body }, { audit, target }) {
      const before = calendarView(await containerBudgets.calendar(target));
      const after = { ...body, version: body.version + 1 };
      // Versions only grow: a stale one is refused, and its body is recorded nowhere.
      if (body.version >= before.version) await audit.begin({ before, after });
      const replaced = await containerBudgets.replaceCalendar(target, body);
      if (!replaced.ok) return replaced;
      audit.change(calendarView(replaced.value.before), after);
      return ok({ body: calendarView(replaced.value.calendar) });
    },
  };
}
