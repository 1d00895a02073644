import type { EndpointDocument } from "../../src/store/webhook-documents.ts";
import { ok, type Result } from "../../src/domain/result.ts";
import { endpointView } from "../../src/webhooks/views.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

type WebhookHandlers = Pick<
  Handlers,
  "createWebhook" | "listWebhooks" | "getWebhook" | "updateWebhook" | "deleteWebhook" | "rotateWebhookSecret"
>;

export function webhookHandlers(dependencies: HandlerDependencies): WebhookHandlers {
  const { lists, webhooks } = dependencies;
  const { collections, endpoints } = webhooks;

  return {
    async createWebhook({ body }, { audit, principal }) {
      const choice = {
        ...body,
        scopeType: body.scopeType ?? "organization",
        scopeIds: body.scopeIds ?? [],
        description: body.description ?? null,
      };
      const created = await endpoints.create(principal, choice, audit);
      if (!created.ok) return created;
      const { endpoint, secret } = created.value;
      return ok({ body: { endpoint: endpointView(endpoint), secret } });
    },

    async listWebhooks({ query }, { principal: { organizationId } }) {
      const page = await lists.page({
        collection: collections.endpoints,
        list: "webhooks",
        filters: { organizationId },
        equals: { organizationId },
        ...query,
        cursor: query.cursor,
      });
      if (!page.ok) return page;
      const { items, nextCursor } = page.value;
      return ok({ body: { webhooks: items.map(endpointView), nextCursor } });
    },

    async getWebhook({ params }, { principal }) {
      return shown(await endpoints.find(principal.organizationId, params.id));
    },

    async updateWebhook({ params, body }, { audit, principal }) {
      return shown(await endpoints.update(principal.organizationId, params.id, body, audit));
    },

    async deleteWebhook({ params }, { audit, principal }) {
      const removed = await endpoints.remove(principal.organizationId, params.id, audit);
      return removed.ok ? ok({ body: undefined }) : removed;
    },

    async rotateWebhookSecret({ params }, { audit, principal }) {
      const rotated = await endpoints.rotate(principal.organizationId, params.id, audit);
      if (!rotated.ok) return rotated;
      const { secret } = rotated.value;
      const endpoint = endpointView(rotated.value.endpoint);
      const { secretPreviousExpiresAt } = endpoint;
      if (secretPreviousExpiresAt === null) throw new Error("a rotation left no previous secret");
      return ok({ body: { endpoint, secret, secretPreviousExpiresAt } });
    },
  };
}

const shown = (found: Result<EndpointDocument>) =>
  found.ok ? ok({ body: { endpoint: endpointView(found.value) } }) : found;
