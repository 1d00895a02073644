import { z } from "zod";
import { WEEK_STARTS } from "../../domain/ledger/calendar.ts";
import { manages, reads } from "../access.ts";
import { define } from "../define.ts";
import { uuid, version } from "../primitives.ts";
import { timezone } from "../timezone.ts";

const params = z.strictObject({ id: uuid });

const calendar = z
  .strictObject({
    timezone,
    resetTime: z
      .string()
      .regex(/^([01][0-9]|2[0-3]):[0-5][0-9]$/, "must be HH:MM")
      .meta({ description: "The time of day at which every period begins, `HH:MM`." }),
    weekStartsOn: z.enum(WEEK_STARTS).meta({ description: "The first day of a week." }),
    monthStartsOn: z.int().min(1).max(28).meta({
      description: "The first day of a month; quarters and years begin on it, too.",
    }),
    yearStartsIn: z.int().min(1).max(12).meta({
      description: "The first month of a year, 1 to 12; a quarter begins every three months from it.",
    }),
    version,
  })
  .meta({ id: "Calendar" });

export const getProjectCalendar = define({
  summary: "Read a project's calendar",
  description:
    "When the periods of spend limits begin, for the project, its teams and its agents, with the `version` that a " +
    "change must name.",
  tag: "Projects",
  access: reads("projects:write", "project"),
  rate: "standard",
  http: { method: "get", path: "/v1/projects/:id/calendar", successStatus: 200 },
  params,
  output: calendar,
  errors: ["NOT_FOUND"],
});

export const setProjectCalendar = define({
  summary: "Set a project's calendar",
  description:
    "Replaces the calendar; an outdated `version` is 409 STALE_CALENDAR. What is counted stays counted until the new " +
    "calendar's next boundary, so a change frees no money. A time that the clocks skip is the first one after it; of a time " +
    "that they show twice the first counts.",
  tag: "Projects",
  access: manages("projects:write", "project", { role: "admin", stepUp: true }),
  rate: "standard",
  http: { method: "put", path: "/v1/projects/:id/calendar", successStatus: 200 },
  params,
  body: calendar,
  output: calendar,
  errors: ["NOT_FOUND", "CONTAINER_ARCHIVED", "STALE_CALENDAR"],
});
