import { accessProofsIn, prove } from "./access-proofs.ts";
import { randomUUID } from "node:crypto";
import { COLLECTIONS } from "../../src/store/documents.ts";
import { WEBHOOK_COLLECTIONS } from "../../src/store/webhook-documents.ts";
import { ORGANIZATION_SCOPES } from "../../src/contract/types.ts";
import { pauseBefore } from "./poll-pauses.ts";
import { sharedService, type TestOrganization, type TestService } from "./service.ts";
import { ContractApi, type Success } from "./contract-api.ts";

/** An organization of the test's own on a service, and what tests do with it again and again. */
export interface World {
  readonly service: TestService;
  readonly api: ContractApi;
  readonly organization: TestOrganization;
  /** The owner's session. */
  readonly token: string;
  agent(fields?: Fields): Promise<TestAgent>;
}

export type Fields = Readonly<Record<string, unknown>>;
export type Paid = Success<"createPayment">;

/** The parts of the answer to a payment that reads and replays repeat. */
export const paymentOf = ({ approval, approvalUrl, card, raise, transaction }: Success<"getPayment">) => ({
  transaction,
  approval,
  approvalUrl,
  card,
  raise,
});

export interface TestAgent {
  readonly id: string;
  readonly key: string;
  /** Pays by card with a fresh idempotency key; must be made. */
  pay(fields?: Fields): Promise<Paid>;
  /** The same where the first answer counts: it must be 201. */
  payAtOnce(fields?: Fields): Promise<Paid>;
  /** Pays, and must be held. */
  hold(fields?: Fields): Promise<{ readonly transactionId: string; readonly approvalId: string }>;
}

/** On a busy machine a create may be answered 503 and be made all the same: a person is not given its key again. */
const AGENTS_TRIED_MAX = 20;

export async function newWorld(on: Promise<TestService> | TestService = sharedService()): Promise<World> {
  const service = await on;
  const organization = await service.organization();
  return worldOf(service, organization);
}

export function worldOf(service: TestService, organization: TestOrganization): World {
  const api = new ContractApi(service.baseUrl);
  const { teamId, token } = organization;
  return {
    service,
    api,
    organization,
    token,
    async agent(fields = {}) {
      for (let tries = 0; tries < AGENTS_TRIED_MAX; tries += 1) {
        const own = { name: "Agent", teamId, budgetCents: 10_000, idempotencyKey: randomUUID() };
        const { agent, apiKey } = await api.made("createAgent", { token, body: { ...own, ...fields } });
        if (apiKey !== null) return testAgent(api, agent.id, apiKey);
      }
      throw new Error("a new agent comes with its key");
    },
  };
}

function testAgent(api: ContractApi, id: string, key: string): TestAgent {
  const pay = (fields: Fields = {}) =>
    api.ok("createPayment", 201, { token: key, body: cardPayment(fields) });
  return {
    id,
    key,
    pay,
    payAtOnce: (fields = {}) => api.okAtOnce("createPayment", 201, { token: key, body: cardPayment(fields) }),
    async hold(fields = {}) {
      const { approval, transaction } = await pay(fields);
      if (approval === null) throw new Error(`was not held: ${JSON.stringify(transaction)}`);
      return { transactionId: transaction.id, approvalId: approval.id };
    },
  };
}

/** A card payment of 1.00 that nothing is wrong with. */
export const cardPayment = (fields: Fields = {}): Fields => ({
  rail: "card",
  amountCents: 100,
  merchant: "shop",
  purpose: "a test",
  idempotencyKey: randomUUID(),
  ...fields,
});

/** A purchase from a shop that there is none of. */
export const x402Request = (fields: Fields = {}): Fields => ({
  url: "https://shop.invalid/report",
  maxAmountCents: 100,
  purpose: "a test",
  idempotencyKey: randomUUID(),
  ...fields,
});

/** Elevates the organization's sessions as a step-up does; what tests step-up itself goes through the API. */
export async function elevate({ organization, service }: World, now = new Date()): Promise<void> {
  const stepUpExpiresAt = new Date(now.getTime() + 300_000);
  const { organizationId } = organization;
  await prove(service.db, "session", { organizationId }, { stepUpExpiresAt }, accessProofsIn(service.env));
}

/** Where no server listens: what is sent there fails at once. */
export const NOBODYS_URL = "https://127.0.0.1:1/";

export interface TestEndpoint {
  readonly id: string;
  readonly secret: string;
}

/** An endpoint for what seldom happens, at which no server listens, unless it is made for something else. */
export async function newEndpoint({ api, token }: World, fields: Fields = {}): Promise<TestEndpoint> {
  const body = { name: "Endpoint", url: NOBODYS_URL, eventTypes: ["billing.payment_failed"], ...fields };
  const { endpoint, secret } = await api.ok("createWebhook", 201, { token, body });
  return { id: endpoint.id, secret };
}

/** A delivery of a test event, which has been made by now, or has failed. */
export async function testDelivery({ api, token }: World, { id }: { readonly id: string }): Promise<string> {
  return (await api.ok("testWebhook", 200, { token, id })).deliveryId;
}

export type Scope = (typeof ORGANIZATION_SCOPES)[number];

/** An organization's key, minted by the owner after a step-up. By default it may do everything, everywhere. */
export interface KeyChoice {
  readonly scopes?: readonly Scope[];
  readonly binding?:
    { readonly type: "organization" } | { readonly type: "project" | "team"; readonly id: string };
  readonly dailyCreateLimit?: number;
}

export interface TestOrganizationKey {
  readonly id: string;
  /** Its value. */
  readonly token: string;
  readonly lineageId: string;
}

export async function organizationKey(world: World, choice: KeyChoice = {}): Promise<TestOrganizationKey> {
  await elevate(world);
  const { binding = { type: "organization" }, scopes = ORGANIZATION_SCOPES, ...rest } = choice;
  const body = { name: "Key", scopes, binding, ...rest };
  const minted = await world.api.ok("mintOrganizationKey", 201, { token: world.token, body });
  return { id: minted.organizationKey.id, token: minted.key, lineageId: minted.organizationKey.lineageId };
}

/** Another value of the same lineage; the old one is dead. */
export async function rotated(world: World, { id }: TestOrganizationKey): Promise<TestOrganizationKey> {
  await elevate(world);
  const minted = await world.api.ok("rotateOrganizationKey", 201, { token: world.token, id });
  return { id: minted.organizationKey.id, token: minted.key, lineageId: minted.organizationKey.lineageId };
}

/** Gives the organization's owner another role; it binds the open session at once. */
export async function demote(world: World, role: "auditor" | "member" | "admin" | "owner"): Promise<void> {
  const { organizationId } = world.organization;
  const owner = await world.service.db.collection("users").findOne({ organizationId });
  await prove(world.service.db, "user", { _id: owner?._id }, { role }, accessProofsIn(world.service.env));
}

/** It is not promised: so long a busy machine may take for what else takes a moment. */
const WITHIN_MS = 120_000;

/** What the probe answers once it answers at all (not null); fails after a bound. */
export async function until<T>(what: string, probe: () => Promise<T | null>, ms = WITHIN_MS): Promise<T> {
  const end = Date.now() + ms;
  for (let look = 0; ; look += 1) {
    const found = await probe();
    if (found !== null) return found;
    if (Date.now() > end) throw new Error(`not within ${ms} ms: ${what}`);
    await pauseBefore(look);
  }
}

export const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));

/** How often each outcome came: `{ "201": 1, "409 VERSION_CONFLICT": 9 }`. */
export function tally(outcomes: readonly (string | number | null)[]): Record<string, number> {
  const seen: Record<string, number> = {};
  for (const outcome of outcomes) seen[String(outcome)] = (seen[String(outcome)] ?? 0) + 1;
  return seen;
}

/** How many records each collection has: what a refused request must not change. */
export async function counts({ service }: World): Promise<Readonly<Record<string, number>>> {
  // What earlier requests have begun goes on after their answers: events of payments, what wallets still lack. And
  // deposits are looked for all the time.
  const late: readonly string[] = [
    COLLECTIONS.events,
    COLLECTIONS.chainTransactions,
    COLLECTIONS.walletLimits,
    COLLECTIONS.chainCursors,
    // Who is refused by a ledger has received it, too.
    COLLECTIONS.ledgerRevisions,
  ];
  const kept = Object.values(COLLECTIONS).filter((name) => !late.includes(name));
  const names = [...kept, ...Object.values(WEBHOOK_COLLECTIONS), "organizations", "users", "factors"];
  const all = names.map(async (name) => [name, await service.db.collection(name).countDocuments()] as const);
  return Object.fromEntries(await Promise.all(all));
}
