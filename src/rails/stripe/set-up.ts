import { z } from "zod";
import type { IssuerObjects, IssuerResult, SetUp } from "../../payments/card-issuer.ts";
import { STRIPE_VERSION, type StripeClient } from "./client.ts";
import { EVENT_TYPES } from "./messages.ts";
import {
  type AccountObject,
  accountObject,
  type Address,
  balanceObject,
  cardholderObject,
  endpointObject,
} from "./objects.ts";

/** Metadata key that names the connection that made an object. */
const CONNECTION_KEY = "connection";
const CARDHOLDER_NAME_MAX = 24;
/** Address for test-mode accounts that name none; nobody is billed there. */
const TEST_ADDRESS: Address = {
  line1: "1 Test Street",
  city: "San Francisco",
  state: "CA",
  postal_code: "94111",
  country: "US",
};

const refused = (reason: string): IssuerResult<never> => ({
  ok: false,
  refusal: { code: "REFUSED", reason },
});

/** Creates a connection's cardholder and event endpoint unless the account has them. */
export async function setUpAccount(
  client: StripeClient,
  made: IssuerObjects | null,
  given: SetUp,
): Promise<IssuerResult<IssuerObjects>> {
  const account = await client.call({ method: "GET", path: "account" }, accountObject);
  if (!account.ok) return account;
  const currency = account.value.default_currency ?? "usd";
  if (currency !== "usd")
    return refused(`Payments are in US dollars, and this account issues cards in ${currency.toUpperCase()}.`);
  const balance = await client.call({ method: "GET", path: "balance" }, balanceObject);
  if (!balance.ok) return balance;
  const isTest = !balance.value.livemode;
  const cardholder = await cardholderOf(client, addressOf(account.value, isTest), given);
  if (!cardholder.ok) return cardholder;
  const endpoint = await endpointOf(client, made, given);
  if (!endpoint.ok) return endpoint;
  return {
    ok: true,
    value: {
      accountId: account.value.id,
      isTest,
      cardholderId: cardholder.value.id,
      ...endpoint.value,
    },
  };
}

function addressOf({ business_profile, company }: AccountObject, isTest: boolean): Address | null {
  const own = company?.address ?? business_profile?.support_address ?? null;
  return own ?? (isTest ? TEST_ADDRESS : null);
}

async function cardholderOf(
  client: StripeClient,
  address: Address | null,
  { connectionId, organizationName }: SetUp,
): Promise<IssuerResult<z.output<typeof cardholderObject>>> {
  const active = { type: "company", status: "active" };
  for await (const found of client.list("issuing/cardholders", active, cardholderObject))
    if (found.metadata[CONNECTION_KEY] === connectionId) return { ok: true, value: found };
  if (address === null)
    return refused(
      "The Stripe account has no business address. Enter one in Stripe under Settings, Business.",
    );
  const { city, country, line1, postal_code, state } = address;
  return client.call(
    {
      method: "POST",
      path: "issuing/cardholders",
      idempotencyKey: `cardholder/${connectionId}`,
      params: {
        type: "company",
        name: cardholderName(organizationName),
        status: "active",
        billing: { address: { line1, city, postal_code, country, state: state ?? undefined } },
        metadata: { [CONNECTION_KEY]: connectionId },
      },
    },
    cardholderObject,
  );
}

/** Returns the organization's name with only letters and spaces, as Stripe requires. */
function cardholderName(organizationName: string): string {
  const letters = organizationName
    .normalize("NFKD")
    .replaceAll(/[^A-Za-z ]/g, "")
    .replaceAll(/\s+/g, " ")
    .trim()
    .slice(0, CARDHOLDER_NAME_MAX)
    .trim();
  return letters === "" ? "Agents" : letters;
}

/** Returns the existing endpoint, or a new one replacing leftovers of earlier attempts: Stripe tells a secret once. */
async function endpointOf(
  client: StripeClient,
  made: IssuerObjects | null,
  { connectionId, eventsUrl }: SetUp,
): Promise<IssuerResult<Pick<IssuerObjects, "eventEndpointId" | "eventSecret">>> {
  for await (const found of client.list("webhook_endpoints", {}, endpointObject)) {
    if (found.metadata[CONNECTION_KEY] !== connectionId) continue;
    if (found.id === made?.eventEndpointId && found.url === eventsUrl && found.status === "enabled")
      return { ok: true, value: { eventEndpointId: made.eventEndpointId, eventSecret: made.eventSecret } };
    const removed = await removeEndpoint(client, found.id);
    if (!removed.ok) return removed;
  }
  const created = await client.call(
    {
      method: "POST",
      path: "webhook_endpoints",
      params: {
        url: eventsUrl,
        enabled_events: EVENT_TYPES,
        api_version: STRIPE_VERSION,
        description: "Agent Spending Control: card payments",
        metadata: { [CONNECTION_KEY]: connectionId },
      },
    },
    endpointObject,
  );
  if (!created.ok) return created;
  const { id, secret } = created.value;
  if (secret === undefined) return refused("Stripe named no signing secret for the event endpoint.");
  return { ok: true, value: { eventEndpointId: id, eventSecret: secret } };
}

/** Removes an endpoint. Repeatable: a missing endpoint is no refusal. */
export async function removeEndpoint(client: StripeClient, id: string): Promise<IssuerResult<null>> {
  const path = `webhook_endpoints/${id}`;
  const removed = await client.call({ method: "DELETE", path }, z.object({}));
  if (removed.ok || removed.refusal.code === "KEY_REFUSED")
    return removed.ok ? { ok: true, value: null } : removed;
  const found = await client.call({ method: "GET", path }, endpointObject);
  return found.ok ? removed : { ok: true, value: null };
}
