import { z } from "zod";
import { EVENT_TYPES } from "../../domain/events.ts";
import { ALL_EVENTS, WEBHOOK_SCOPES } from "../../domain/webhooks/subscription.ts";
import { person } from "../access.ts";
import { define } from "../define.ts";
import { description, name, paging, timestamp, uuid } from "../primitives.ts";
import { listOf } from "../records.ts";

const SCOPE_IDS_MAX = 200;
const URL_CHARACTERS_MAX = 2_048;

const endpointId = z
  .string()
  .regex(/^whe_[0-9A-HJKMNP-TV-Z]{26}$/, "must be a webhook endpoint's id: whe_ and 26 letters and digits");
const deliveryId = z
  .string()
  .regex(/^dlv_[0-9A-HJKMNP-TV-Z]{26}$/, "must be a delivery's id: dlv_ and 26 letters and digits");
const params = z.strictObject({ id: endpointId });
const deliveryParams = z.strictObject({ id: endpointId, deliveryId });

export const eventType = z.enum(EVENT_TYPES).meta({ title: "EventType" });
const subscribedType = z.enum([...EVENT_TYPES, ALL_EVENTS]).meta({ title: "SubscribedEventType" });

const eventTypes = z
  .array(subscribedType)
  .min(1)
  .max(EVENT_TYPES.length)
  .refine((types) => new Set(types).size === types.length, "must not name one twice")
  .refine((types) => !types.includes(ALL_EVENTS) || types.length === 1, "takes * alone, for all events")
  .meta({ description: "One or more types of events, or `*` alone for all.", uniqueItems: true });

const scopeIds = z
  .array(uuid)
  .max(SCOPE_IDS_MAX)
  .refine((ids) => new Set(ids).size === ids.length, "must not name one twice")
  .meta({
    description: "The projects, teams or agents that a scope other than `organization` is about.",
    uniqueItems: true,
  });

const url = z
  .string()
  .max(URL_CHARACTERS_MAX)
  .regex(/^https:\/\//i, "must begin with https://")
  .meta({
    description: "A public https address, on port 443 or 8443, whose name resolves.",
    format: "uri",
    pattern: "^[Hh][Tt][Tt][Pp][Ss]://",
  });

const scopeType = z.enum(WEBHOOK_SCOPES);

/**
 * Whether the ids fit the scope. A body with only one of the two is checked against the endpoint's stored other one.
 */
export const fitsScope = ({
  scopeIds: ids = [],
  scopeType: scope = "organization",
}: {
  readonly scopeType?: z.output<typeof scopeType> | undefined;
  readonly scopeIds?: readonly string[] | undefined;
}): boolean => (scope === "organization") === (ids.length === 0);
export const SCOPE_IDS_ISSUE = {
  path: ["scopeIds"],
  error:
    "names the projects, teams or agents of a scope other than organization, and nothing for the organization's",
};

const endpoint = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    url: z.string(),
    eventTypes: z.array(subscribedType),
    scopeType,
    scopeIds: z.array(uuid),
    description: z.string().nullable(),
    isActive: z.boolean(),
    disabledAt: timestamp.nullable(),
    disabledReason: z.enum(["consecutive_failures", "by_person"]).nullable().meta({
      description:
        "Why the endpoint is disabled: ten consecutive failed deliveries, or a person disabled it.",
    }),
    consecutiveFailures: z.int(),
    secretPreviousExpiresAt: timestamp.nullable().meta({
      description: "Until this time deliveries are also signed with the previous secret.",
    }),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: "WebhookEndpoint" });

const attempt = z.strictObject({
  number: z.int(),
  at: timestamp,
  httpStatus: z.int().nullable(),
  responseTimeMs: z.int(),
  failureReason: z.string().nullable(),
  responseExcerpt: z.string().nullable().meta({ description: "The beginning of the receiver's response." }),
});

export const delivery = z
  .strictObject({
    id: z.string(),
    eventType,
    status: z.enum(["pending", "succeeded", "failed", "dropped"]),
    test: z.boolean(),
    attempts: z.array(attempt).meta({ description: "The newest 25, oldest first." }),
    nextAttemptAt: timestamp.nullable(),
    createdAt: timestamp,
  })
  .meta({ id: "WebhookDelivery" });

const replay = z
  .strictObject({
    id: z.string(),
    since: timestamp,
    until: timestamp,
    state: z.enum(["running", "done", "limited", "stopped"]).meta({
      description:
        "`limited`: the maximum of deliveries per replay is queued; start another one with `reachedAt` as its `since`. `stopped`: the endpoint was disabled in the meantime.",
    }),
    examined: z.int().meta({ description: "Events that were examined." }),
    queued: z.int().meta({ description: "Deliveries that were queued." }),
    reachedAt: timestamp.nullable().meta({ description: "When the last examined event happened." }),
    endedAt: timestamp.nullable(),
  })
  .meta({ id: "WebhookReplay" });

const secret = z
  .string()
  .meta({ description: "Signs the deliveries and is shown only once. Keep it in a secret manager." });
const answer = z.strictObject({ endpoint });
const admin = person({ role: "admin" });
const common = { tag: "Webhooks", access: admin, rate: "standard" } as const;

const endpointFields = {
  name,
  url,
  eventTypes,
  description: description.nullable().optional(),
};

const newEndpoint = z
  .strictObject({
    ...endpointFields,
    scopeType: scopeType.optional().meta({ examples: ["project"] }),
    scopeIds: scopeIds.optional(),
  })
  .refine(fitsScope, SCOPE_IDS_ISSUE);

export const createWebhook = define({
  ...common,
  summary: "Create a webhook endpoint",
  description:
    "Events that match the endpoint's types and scope are delivered to it from now on, signed with the secret that " +
    "this answer shows once. The URL must be https and public; its name is resolved now and at each delivery. An " +
    "organization has at most 50 endpoints, including disabled ones.",
  http: { method: "post", path: "/v1/webhooks", successStatus: 201 },
  body: newEndpoint,
  output: z.strictObject({ endpoint, secret }),
  errors: ["NOT_FOUND", "TOO_MANY_WEBHOOKS"],
});

export const listWebhooks = define({
  ...common,
  summary: "List webhook endpoints",
  description: "The organization's endpoints, newest first, without their secrets.",
  http: { method: "get", path: "/v1/webhooks", successStatus: 200 },
  query: z.strictObject({ ...paging }),
  output: listOf("webhooks", endpoint),
  errors: ["BAD_CURSOR"],
});

export const getWebhook = define({
  ...common,
  summary: "Read a webhook endpoint",
  description: "Returns one endpoint without its secret, which was shown when it was created.",
  http: { method: "get", path: "/v1/webhooks/:id", successStatus: 200 },
  params,
  output: answer,
  errors: ["NOT_FOUND"],
});

export const updateWebhook = define({
  ...common,
  summary: "Change a webhook endpoint",
  description:
    "Fields that are left out stay unchanged. `isActive: false` drops queued deliveries; `isActive: true` enables " +
    "the endpoint again and resets its count of failures. Events that it missed in between can be sent by a replay.",
  http: { method: "put", path: "/v1/webhooks/:id", successStatus: 200 },
  params,
  body: z.strictObject({
    name: name.optional(),
    url: url.optional(),
    eventTypes: eventTypes.optional(),
    scopeType: scopeType.optional(),
    scopeIds: scopeIds.optional(),
    description: description.nullable().optional(),
    isActive: z.boolean().optional(),
  }),
  output: answer,
  errors: ["NOT_FOUND"],
});

export const deleteWebhook = define({
  ...common,
  summary: "Delete a webhook endpoint",
  description: "Erases its secrets and drops queued deliveries.",
  http: { method: "delete", path: "/v1/webhooks/:id", successStatus: 204 },
  params,
  output: z.undefined(),
  errors: ["NOT_FOUND"],
});

export const rotateWebhookSecret = define({
  ...common,
  summary: "Rotate a webhook endpoint's secret",
  description:
    "For 24 hours deliveries carry two signatures, one with the new secret and one with the previous one, so that " +
    "receivers can switch. After a second rotation within that time the two newest secrets sign.",
  http: { method: "post", path: "/v1/webhooks/:id/rotate-secret", successStatus: 201 },
  params,
  output: z.strictObject({ endpoint, secret, secretPreviousExpiresAt: timestamp }),
  errors: ["NOT_FOUND", "REQUEST_IN_PROGRESS"],
});

export const testWebhook = define({
  ...common,
  summary: "Send a test event",
  description:
    "Sends one signed delivery with `data.test` true, of the named type or else of the endpoint's first type, also " +
    "to a disabled endpoint. It is listed among the deliveries and never counts as a failure.",
  rate: "webhookTest",
  waitsFor: "receiver",
  http: { method: "post", path: "/v1/webhooks/:id/test", successStatus: 200 },
  params,
  body: z.strictObject({ eventType: eventType.optional() }).optional(),
  output: z.strictObject({
    httpStatus: z.int().nullable(),
    responseTimeMs: z.int().nullable(),
    deliveryId: z.string(),
    failureReason: z.string().nullable(),
  }),
  errors: ["NOT_FOUND"],
});

export const listWebhookDeliveries = define({
  ...common,
  summary: "List an endpoint's deliveries",
  description:
    "The endpoint's deliveries, newest first, with their attempts: the response, the time that it took, and why an " +
    "attempt failed.",
  http: { method: "get", path: "/v1/webhooks/:id/deliveries", successStatus: 200 },
  params,
  query: z.strictObject({
    ...paging,
    status: z.enum(["pending", "succeeded", "failed", "dropped"]).optional(),
  }),
  output: listOf("deliveries", delivery),
  errors: ["BAD_CURSOR", "NOT_FOUND"],
});

export const getWebhookDelivery = define({
  ...common,
  summary: "Read a delivery",
  description: "One delivery with the exact body that is sent and signed.",
  http: { method: "get", path: "/v1/webhooks/:id/deliveries/:deliveryId", successStatus: 200 },
  params: deliveryParams,
  output: z.strictObject({ delivery, body: z.string() }),
  errors: ["NOT_FOUND"],
});

export const redeliverWebhook = define({
  ...common,
  summary: "Send a delivery again",
  description:
    "Starts the attempts again, with the same id and the same body. A delivery that is still being attempted is " +
    "answered as it is.",
  http: { method: "post", path: "/v1/webhooks/:id/deliveries/:deliveryId/redeliver", successStatus: 200 },
  params: deliveryParams,
  output: z.strictObject({ delivery }),
  errors: ["NOT_FOUND", "WEBHOOK_DISABLED"],
});

export const replayWebhook = define({
  ...common,
  summary: "Send what an endpoint missed",
  description:
    "Queues each event since then that matches the endpoint and has not been delivered: failed and dropped " +
    "deliveries under their own ids, and events that happened while the endpoint was disabled. At most 10,000 " +
    "deliveries. While a replay is running, another one is 409.",
  http: { method: "post", path: "/v1/webhooks/:id/replay", successStatus: 201 },
  params,
  body: z.strictObject({ since: z.iso.datetime({ offset: true }) }),
  output: z.strictObject({ replay }),
  errors: ["NOT_FOUND", "WEBHOOK_DISABLED", "REPLAY_IN_PROGRESS"],
});

export const getWebhookReplay = define({
  ...common,
  summary: "Read the progress of a replay",
  description: "The last replay that was requested; null if there was none.",
  http: { method: "get", path: "/v1/webhooks/:id/replay", successStatus: 200 },
  params,
  output: z.strictObject({ replay: replay.nullable() }),
  errors: ["NOT_FOUND"],
});
