import { z } from "zod";
import { reads } from "../access.ts";
import { define } from "../define.ts";
import { ADMINS_KINDS, CHANGE_KINDS } from "../stream.ts";

const KINDS = new RegExp(`^(?:${CHANGE_KINDS.join("|")})(?:,(?:${CHANGE_KINDS.join("|")}))*$`);

export const streamChanges = define({
  summary: "Follow changes",
  description:
    "Server-sent events about changes in the caller's organization, until the caller disconnects. The first event is `ready`. Then " +
    "there is an event for each kind that changed: `approvals`, `transactions` and `agents` with their records as they are now, the " +
    "others with `ids`. Frequent changes are combined, transactions at most once a second. `more` means that more changed than the event " +
    "names: read lists of that kind again. An event may come twice. `heartbeat` comes every 15 seconds. With Last-Event-ID (or " +
    "`lastEventId`) the stream continues after that event; if too much has happened since, `reset` means that everything must be " +
    "read again. `end` comes before the service closes a stream, with a reason: `credential` (the session or its 15-minute token has " +
    "expired: refresh it and reconnect), `role` (reconnect), `restart` (reconnect). A session may have 8 open streams on a server. " +
    `Only owners and admins receive ${[...ADMINS_KINDS].join(" and ")}; a member who is bound to projects or teams receives what lies there.`,
  tag: "Changes",
  access: reads("never", "none"),
  rate: "standard",
  http: { method: "get", path: "/v1/stream", successStatus: 200, contentType: "text/event-stream" },
  query: z.strictObject({
    kinds: z
      .string()
      .max(200)
      .regex(KINDS, `must be some of ${CHANGE_KINDS.join(", ")}, separated by commas`)
      .optional()
      .meta({
        description: "Only these kinds, separated by commas; by default all that the caller may read.",
      }),
    lastEventId: z
      .string()
      .max(100)
      .optional()
      .meta({ description: "Like the header Last-Event-ID, which takes precedence if both are sent." }),
  }),
  output: z.string().meta({ description: "Events, one after another." }),
  errors: ["TOO_MANY_STREAMS"],
});
