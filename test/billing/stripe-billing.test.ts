import { createHmac } from "node:crypto";
import { expect } from "chai";
import { StripeBilling } from "../../src/billing/stripe-billing.ts";
import { authCollections, type OrganizationDocument } from "../../src/store/identity-documents.ts";
import { transactionsOf } from "../../src/store/transactions.ts";
import { eventually } from "../chain/support.ts";
import { testDatabase } from "../support/mongo.ts";
import { noteSecret } from "../support/secrets.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { newWorld, type World } from "../support/world.ts";

const SECRET = "whsec_of_the_operators_billing";
const HOUR = 3_600;
const PRO = { data: [{ price: { metadata: { plan: "pro" } } }] };

const now = (): number => Math.floor(Date.now() / 1_000);

/** Events as Stripe sends them about the subscriptions of a service's customers. */
describe("billing by Stripe", function () {
  this.timeout(120_000);
  let service: TestService;
  let world: World;
  let events = 0;

  before(async () => {
    noteSecret(SECRET);
    service = await startTestService({ settings: { STRIPE_BILLING_SECRET: SECRET } });
    world = await newWorld(service);
  });
  after(() => service?.stop());

  async function send(type: string, object: object, { created = now(), secret = SECRET } = {}) {
    events += 1;
    const body = JSON.stringify({ id: `evt_${events}`, type, created, data: { object } });
    const signature = createHmac("sha256", secret).update(`${now()}.${body}`).digest("hex");
    const headers = { "stripe-signature": `t=${now()},v1=${signature}` };
    return (await fetch(`${service.baseUrl}/v1/billing/stripe/events`, { method: "POST", headers, body }))
      .status;
  }
  const metadata = () => ({ organization: world.organization.organizationId });
  const subscription = (plan: string, fields: object = {}) => ({
    id: "sub_1",
    status: "active",
    metadata: metadata(),
    items: { data: [{ price: { metadata: { plan } } }] },
    ...fields,
  });
  const planNow = async () =>
    (await world.api.ok("getOrganization", 200, { token: world.token })).organization.plan;
  const eventsOf = (type: string) =>
    service.db
      .collection("events")
      .find({ type, organizationId: world.organization.organizationId })
      .toArray();

  it("a subscription's price sets the plan, its end the free one, and each change is audited", async () => {
    expect(await send("customer.subscription.updated", subscription("pro"))).to.equal(200);
    expect(await planNow()).to.equal("pro");
    await send("customer.subscription.updated", subscription("enterprise", { status: "past_due" }));
    expect(await planNow()).to.equal("enterprise");
    await send("customer.subscription.deleted", subscription("enterprise", { status: "canceled" }));
    expect(await planNow()).to.equal("free");
    const { entries } = await world.api.ok("listAuditLog", 200, {
      token: world.token,
      query: { limit: "50" },
    });
    const changes = entries.filter(({ action }) => action === "setPlan");
    expect(changes.map(({ actor }) => actor.id)).to.deep.equal(["billing", "billing", "billing"]);
  });

  it("of two subscriptions the higher plan holds, in whatever order their events come", async () => {
    const ended = { status: "canceled" };
    const changed = now() - 2;
    const first = subscription("pro", { id: "sub_first" });
    const second = subscription("enterprise", { id: "sub_second" });
    await send("customer.subscription.updated", first, { created: changed });
    await send("customer.subscription.deleted", { ...first, ...ended }, { created: changed });
    // Of the same second, and late.
    await send("customer.subscription.updated", first, { created: changed });
    expect(await planNow()).to.equal("free");
    await send("customer.subscription.created", second);
    await send("customer.subscription.deleted", { ...first, ...ended });
    expect(await planNow()).to.equal("enterprise");
    await send("customer.subscription.deleted", { ...second, ...ended });
    expect(await planNow()).to.equal("free");
  });

  it("an older event that comes late changes nothing, nor does one of a stranger", async () => {
    await send("customer.subscription.updated", subscription("pro", { id: "sub_2" }));
    const late = subscription("free", { id: "sub_2" });
    await send("customer.subscription.updated", late, { created: now() - HOUR });
    expect(await planNow()).to.equal("pro");
    const other = { metadata: { organization: "of-another-product" } };
    expect(await send("customer.subscription.updated", subscription("free", other))).to.equal(200);
    const started = subscription("enterprise", { status: "incomplete" });
    expect(await send("customer.subscription.created", started)).to.equal(200);
    expect(await planNow()).to.equal("pro");
  });

  it("a failed payment fires billing.payment_failed once for each attempt", async () => {
    const parent = { subscription_details: { metadata: metadata() } };
    for (const attempt of [1, 1, 2])
      await send("invoice.payment_failed", { id: "in_1", attempt_count: attempt, parent });
    await eventually("both are told", async () => (await eventsOf("billing.payment_failed")).length === 2);
  });

  it("an event without a good signature is 401 and does nothing", async () => {
    const before = await planNow();
    const secret = "whsec_of_somebody_else";
    expect(await send("customer.subscription.updated", subscription("free"), { secret })).to.equal(401);
    expect(await planNow()).to.equal(before);
  });
});

describe("billing events at once", () => {
  it("one that another overtakes leaves no entry of a change that was not made", async () => {
    const { client, close, db } = await testDatabase();
    const { organizations } = authCollections(db);
    const entries: unknown[] = [];
    let overtake: (() => Promise<unknown>) | null = null;
    const billing = new StripeBilling({
      secret: SECRET,
      clock: () => new Date(),
      organizations: {
        findOne: async (...asked: Parameters<typeof organizations.findOne>) => {
          const found = await organizations.findOne(...asked);
          const other = overtake;
          overtake = null;
          await other?.();
          return found;
        },
        updateOne: organizations.updateOne.bind(organizations),
      } as unknown as typeof organizations,
      outbox: {
        put: async (_record, session) => void (await db.collection("put").insertOne({}, { session })),
        settle: ({ before, after }) => Promise.resolve(void entries.push([before, after])),
      },
      journal: { organizationEvent: () => Promise.reject(new Error("nothing failed")) },
      transaction: transactionsOf(client),
    });
    const subscribed = (id: string) => {
      const object = { id, status: "active", metadata: { organization: "org" }, items: PRO };
      const body = Buffer.from(
        JSON.stringify({
          id: `evt_${id}`,
          type: "customer.subscription.created",
          created: now(),
          data: { object },
        }),
      );
      const v1 = createHmac("sha256", SECRET).update(`${now()}.`).update(body).digest("hex");
      return billing.event({ headers: { "stripe-signature": `t=${now()},v1=${v1}` }, body });
    };
    try {
      await organizations.insertOne({ _id: "org", plan: "free" } as OrganizationDocument);
      overtake = () => subscribed("sub_other");
      await subscribed("sub_overtaken");
      const stored = await organizations.findOne({ _id: "org" });
      expect(Object.keys(stored?.subscriptions ?? {})).to.have.members(["sub_other", "sub_overtaken"]);
      expect(entries).to.have.lengthOf(1);
      expect(await db.collection("put").countDocuments()).to.equal(1);
    } finally {
      await close();
    }
  });
});
