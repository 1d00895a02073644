import { z } from "zod";
import { ownAccount } from "../access.ts";
import { define } from "../define.ts";
import { timestamp, uuid } from "../primitives.ts";

const ownSession = z
  .strictObject({
    id: uuid,
    createdAt: timestamp,
    lastSeenAt: timestamp,
    userAgent: z.string().nullable(),
    current: z.boolean(),
  })
  .meta({ id: "Session" });

export const listSessions = define({
  summary: "List your sessions",
  description: "Your active sessions, newest first, at most 200.",
  tag: "Authentication",
  access: ownAccount,
  rate: "standard",
  http: { method: "get", path: "/v1/auth/sessions", successStatus: 200 },
  output: z.strictObject({ sessions: z.array(ownSession) }),
  errors: [],
});

export const endSession = define({
  summary: "End one of your sessions",
  description:
    "Its token and its refresh token are refused from now on. Another person's session, or one that has ended, is " +
    "404.",
  tag: "Authentication",
  access: ownAccount,
  rate: "standard",
  http: { method: "delete", path: "/v1/auth/sessions/:id", successStatus: 204 },
  params: z.strictObject({ id: uuid }),
  output: z.undefined(),
  errors: ["NOT_FOUND"],
});

export const endOtherSessions = define({
  summary: "End your other sessions",
  description: "Ends all of your sessions except this one; their tokens are refused from now on.",
  tag: "Authentication",
  access: ownAccount,
  rate: "standard",
  http: { method: "post", path: "/v1/auth/sessions/end-others", successStatus: 204 },
  output: z.undefined(),
  errors: [],
});
