import { z } from "zod";
import { person } from "../access.ts";
import { define } from "../define.ts";
import { ADMINS_KINDS, CHANGE_KINDS } from "../stream.ts";

const KINDS = new RegExp(`^(?:${CHANGE_KINDS.join("|")})(?:,(?:${CHANGE_KINDS.join("|")}))*$`);

export const streamChanges = define({
  summary: "Follow changes",
  description:
    "Server-sent events: what changes in the caller's organization, until the caller goes away. The first event is `ready`; then an " +
    "event for each kind of which something changed: `approvals`, `transactions` and `agents` with their records as they are now, the " +
    "others with `ids`. Frequent changes are coalesced, transactions at most once a second; `more` says that more changed than is " +
    "named, so that lists of the kind are to be read again. An event may be sent twice. `heartbeat` is sent every 15 seconds. Resumed " +
    "by Last-Event-ID (or `lastEventId`), it continues after that event; where too much has passed since, `reset` says that everything is " +
    "to be read again. `end` is sent before the service ends a stream: `credential` (the session is over, or its token's 15 " +
    "minutes are: refresh it, and come back), `role` (come back), `restart` (come back). A session may have 8 open streams at a server. " +
    `Of ${[...ADMINS_KINDS].join(" and ")} only owners and admins receive them.`,
  tag: "Changes",
  access: person(),
  rate: "standard",
  http: { method: "get", path: "/v1/stream", successStatus: 200, contentType: "text/event-stream" },
  query: z.strictObject({
    kinds: z
      .string()
      .max(200)
      .regex(KINDS, `must be some of ${CHANGE_KINDS.join(", ")}, separated by commas`)
      .optional()
      .meta({
        description: "Only of these kinds, separated by commas; by default of all that the caller may read.",
      }),
    lastEventId: z
      .string()
      .max(100)
      .optional()
      .meta({ description: "As the header Last-Event-ID, which counts where both are there." }),
  }),
  output: z.string().meta({ description: "Events, one after another." }),
  errors: ["TOO_MANY_STREAMS"],
});
