import { z } from "zod";
import { EVENT_TYPES } from "../../src/domain/events.ts";
import { verifyWebhook } from "../../src/webhooks/verify-webhook.ts";
import type { Success } from "../support/contract-api.ts";
import { startTestService, type TestService, type TestServiceOptions } from "../support/service.ts";
import { type Handler, type Received, startTlsReceiver, type TlsReceiver } from "../support/tls-receiver.ts";
import { type Fields, newWorld, until, type World } from "../support/world.ts";

/** A service that may call receivers on this machine, and one receiver. */
export interface Scene {
  readonly service: TestService;
  readonly receiver: TlsReceiver;
  close(): Promise<void>;
}

export const settingsFor = ({ caFile }: TlsReceiver, more: Readonly<Record<string, string>> = {}) => ({
  WEBHOOK_CA_FILE: caFile,
  ...more,
});

export async function openScene(
  handler?: Handler,
  more: Readonly<Record<string, string>> = {},
  options: TestServiceOptions = {},
): Promise<Scene> {
  const receiver = await startTlsReceiver(handler);
  const service = await startTestService({ ...options, settings: settingsFor(receiver, more) });
  return {
    service,
    receiver,
    async close() {
      await service.stop();
      await receiver.close();
    },
  };
}

export type Endpoint = Success<"getWebhook">["endpoint"];

/** An endpoint with the secret that it was created with. */
export interface Created {
  readonly id: string;
  readonly secret: string;
  readonly endpoint: Endpoint;
}

/** An endpoint of the world's organization at that path of the receiver, for everything unless it says otherwise. */
export async function endpointAt(
  { api, token }: World,
  receiver: Pick<TlsReceiver, "url">,
  path: string,
  fields: Fields = {},
): Promise<Created> {
  const url = new URL(path, receiver.url).toString();
  const body = { name: path, url, eventTypes: ["*"], ...fields };
  const { endpoint, secret } = await api.ok("createWebhook", 201, { token, body });
  return { id: endpoint.id, secret, endpoint };
}

const received = z.object({
  id: z.string(),
  type: z.enum(EVENT_TYPES),
  created_at: z.iso.datetime(),
  org_id: z.string(),
  project_id: z.string().optional(),
  team_id: z.string().optional(),
  agent_id: z.string().optional(),
  agent_name: z.string().optional(),
  data: z.record(z.string(), z.unknown()),
});
export type Delivered = z.output<typeof received>;

/** What came to that path, each verified with one of the secrets as receivers do; in the order of its arrival. */
export function deliveredTo(
  { requests }: TlsReceiver,
  path: string,
  secret: string | readonly string[],
): Delivered[] {
  return requests.filter((request) => request.path === path).map((request) => verified(request, secret));
}

export function verified({ at, body, headers }: Received, secret: string | readonly string[]): Delivered {
  const found = verifyWebhook({ rawBody: body, headers, secret, now: at });
  if (!found.ok) throw new Error(`a delivery does not verify: ${found.reason}`);
  return received.parse(JSON.parse(body.toString("utf8")));
}

/** So many deliveries at that path. */
export const arrivals = (
  scene: Pick<Scene, "receiver">,
  path: string,
  secret: string | readonly string[],
  count: number,
): Promise<Delivered[]> =>
  until(`${count} deliveries at ${path}`, () => {
    const all = deliveredTo(scene.receiver, path, secret);
    return Promise.resolve(all.length >= count ? all : null);
  });

export type Delivery = Success<"listWebhookDeliveries">["deliveries"][number];

export async function deliveriesOf({ api, token }: World, id: string): Promise<readonly Delivery[]> {
  return (await api.ok("listWebhookDeliveries", 200, { token, id, query: { limit: "200" } })).deliveries;
}

/** The endpoint's deliveries once all of them have ended, and there are so many. */
export const endedDeliveries = (world: World, id: string, count: number): Promise<readonly Delivery[]> =>
  until(`${count} deliveries that have ended`, async () => {
    const all = await deliveriesOf(world, id);
    return all.length >= count && all.every(({ status }) => status !== "pending") ? all : null;
  });

export const worldIn = ({ service }: Scene): Promise<World> => newWorld(service);
