import { z } from "zod";
import { manages, person } from "../access.ts";
import { define } from "../define.ts";
import { choices, timestamp, uuid } from "../primitives.ts";
import { keySummary } from "../records.ts";
import { AGENT_TOOLS } from "../tool-names.ts";

/** OAuth connections of MCP clients: a client asks, and a person decides on the page `/connect/:id`. */

const keyId = z.string().regex(/^akey_[0-9A-HJKMNP-TV-Z]{26}$/);
const connectionId = z
  .string()
  .regex(/^[\w-]{16,64}$/)
  .meta({
    description: "The id of the client's request, from the address of its page.",
    examples: ["mSnqHeFG8GTGIBXKcYU3TPwFyZ9Z_r5zQm2N8y0kVbW"],
  });
const browserToken = z
  .string()
  .regex(/^[\w.-]{1,200}$/)
  .optional()
  .meta({
    description:
      "Proof that the request was begun in the same browser. The browser's cookie says it, so leave it out there.",
    examples: ["0a1b2c3d.q8Zt2"],
  });

const redirectTo = z.string().meta({ description: "Where the browser goes on, once." });

export const getConnection = define({
  summary: "Read a client's request to be connected",
  description:
    "An MCP client that was given nothing but the address has sent its person to `/authorize`. Returns which client " +
    "asks and where it is told the outcome. Its name is its own word, unless `clientHost` names who vouches for it. " +
    "404 when the request is over. People only.",
  tag: "Agents",
  access: person({ role: "admin" }),
  rate: "standard",
  http: { method: "get", path: "/v1/connections/:id", successStatus: 200 },
  params: z.strictObject({ id: connectionId }),
  output: z.strictObject({
    connection: z
      .strictObject({
        id: connectionId,
        clientName: z.string().meta({ description: "What the client calls itself." }),
        clientHost: z.string().nullable().meta({
          description: "Host of the document that describes the client; null: the client registered itself.",
        }),
        returnsTo: z.string().meta({ description: "Host, or scheme and host, that the outcome is sent to." }),
        isLoopback: z.boolean().meta({
          description: "Whether that is the browser's own machine, where any program could be listening.",
        }),
        expiresAt: timestamp,
      })
      .meta({ description: "The client's request." }),
  }),
  errors: ["NOT_FOUND"],
});

export const connectClient = define({
  summary: "Connect a client to an agent",
  description:
    "Grants a client's request: it acts as this agent from then on, with the tools that are named. A connection is " +
    "the agent's one active key. While another key is active the answer is 409 KEY_ALREADY_EXISTS, unless " +
    "`revokeKeyId` names that key, which is then revoked first. 404 when the request is over, was decided, or was " +
    "begun in another browser. People only, with step-up.",
  tag: "Agents",
  access: manages("never", "agent", { role: "admin", stepUp: true }),
  rate: "keyMint",
  http: { method: "post", path: "/v1/agents/:id/connection", successStatus: 201 },
  params: z.strictObject({ id: uuid }),
  body: z.strictObject({
    connectionId,
    tools: choices(AGENT_TOOLS, "AgentTool")
      .optional()
      .meta({ description: "The tools that the client may use; if left out, all of the agent's." }),
    revokeKeyId: keyId.optional().meta({
      description: "The agent's active key, which is revoked first.",
      examples: ["akey_01HZZZZZZZZZZZZZZZZZZZZZZZ"],
    }),
    browserToken,
  }),
  output: z.strictObject({ key: keySummary, redirectTo }),
  errors: ["NOT_FOUND", "KEY_ALREADY_EXISTS", "AGENT_ARCHIVED"],
});

export const denyConnection = define({
  summary: "Deny a client's request to be connected",
  description:
    "The client is told that access was denied. 404 when the request is over, was decided, or was begun in another " +
    "browser. People only.",
  tag: "Agents",
  access: person({ role: "admin" }),
  rate: "standard",
  http: { method: "post", path: "/v1/connections/deny", successStatus: 200 },
  body: z.strictObject({ connectionId, browserToken }),
  output: z.strictObject({ redirectTo }),
  errors: ["NOT_FOUND"],
});
