import { z } from "zod";
import type { AuditOutbox } from "../audit/audit-outbox.ts";
import { auditValue } from "../domain/audit/canonical.ts";
import type { AuditRecord } from "../domain/audit/entry.ts";
import type { RawMessage } from "../payments/card-issuer.ts";
import type { Clock } from "../payments/ports.ts";
import { isSigned } from "../rails/stripe/messages.ts";
import { eventObject, jsonOf } from "../rails/stripe/objects.ts";
import {
  type OrganizationDocument,
  type Plan,
  PLANS,
  type SubscriptionState,
} from "../store/identity-documents.ts";
import type { EventJournal } from "../store/journal.ts";
import type { Transaction } from "../store/transactions.ts";
import type { ClientSession, Collection } from "mongodb";

/** Key of a subscription's metadata that names the organization by its id. */
const ORGANIZATION = "organization";
/** Key of a price's metadata that names the plan. */
const PLAN = "plan";

const metadata = z.record(z.string(), z.string()).nullish();
const subscriptionObject = z.object({
  // It becomes the name of a field.
  id: z.string().regex(/^\w+$/),
  status: z.string(),
  metadata,
  items: z.object({ data: z.array(z.object({ price: z.object({ metadata }) })) }),
});
const invoiceObject = z.object({
  id: z.string(),
  attempt_count: z.int().default(0),
  parent: z.object({ subscription_details: z.object({ metadata }).nullish() }).nullish(),
});

type Subscription = z.output<typeof subscriptionObject>;

/** Statuses in which a subscription's plan holds; a payment that is late is tried again by Stripe. */
const HOLDS: ReadonlySet<string> = new Set(["active", "trialing", "past_due"]);
/** Statuses in which it is over. */
const OVER: ReadonlySet<string> = new Set(["canceled", "unpaid", "incomplete_expired"]);

export interface StripeBillingDependencies {
  /** Secret of the events' signature; null: billing is not set up. */
  readonly secret: string | null;
  readonly organizations: Collection<OrganizationDocument>;
  readonly journal: Pick<EventJournal, "organizationEvent">;
  readonly outbox: Pick<AuditOutbox, "put" | "settle">;
  readonly transaction: Transaction;
  readonly clock: Clock;
}

/** Events of the operator's own Stripe account, in which organizations pay for the service. */
export class StripeBilling {
  readonly #dependencies: StripeBillingDependencies;

  constructor(dependencies: StripeBillingDependencies) {
    this.#dependencies = dependencies;
  }

  /** Takes an event. Repeatable; of each subscription only the newest counts. */
  async event(raw: RawMessage): Promise<{ readonly kind: "unknown" | "forged" | "done" }> {
    const { clock, secret } = this.#dependencies;
    if (secret === null) return { kind: "unknown" };
    if (!isSigned(raw, [secret], clock())) return { kind: "forged" };
    const parsed = eventObject.safeParse(jsonOf(raw.body));
    if (!parsed.success) return { kind: "done" };
    const { created, data, id, type } = parsed.data;
    const at = new Date(created * 1_000);
    if (type === "invoice.payment_failed") await this.#paymentFailed(data.object, at);
    else if (type.startsWith("customer.subscription.")) await this.#subscribed(id, data.object, at);
    return { kind: "done" };
  }

  async #paymentFailed(object: unknown, failedAt: Date): Promise<void> {
    const { data: invoice } = invoiceObject.safeParse(object);
    const organization = await this.#organizationOf(invoice?.parent?.subscription_details?.metadata);
    if (invoice === undefined || organization === null) return;
    const { attempt_count: attempt, id: invoiceId } = invoice;
    const reason = `The payment of invoice ${invoiceId} failed.`;
    const payment = { id: `${invoiceId}_${attempt}`, plan: organization.plan, reason, failedAt };
    await this.#dependencies.journal.organizationEvent(organization._id, {
      _id: `evt_${payment.id}_billing.payment_failed`,
      type: "billing.payment_failed",
      createdAt: failedAt,
      data: { payment },
    });
  }

  /** Records a subscription's state and the plan that follows from it, with the audit entry of a change. */
  async #subscribed(eventId: string, object: unknown, at: Date): Promise<void> {
    const { organizations, outbox, transaction } = this.#dependencies;
    const { data: subscription } = subscriptionObject.safeParse(object);
    const state = subscription === undefined ? null : stateOf(subscription);
    if (subscription === undefined || state === null) return;
    const audited = await transaction(async (session): Promise<AuditRecord | null> => {
      const organization = await this.#organizationOf(subscription.metadata, session);
      if (organization === null) return null;
      const { _id, plan: before, subscriptions } = organization;
      const known = subscriptions?.[subscription.id];
      if (known !== undefined && !isNewer({ ...state, at }, known)) return null;
      const now = { ...subscriptions, [subscription.id]: { ...state, at } };
      const plan = highestOf(Object.values(now));
      // Custom limits are an operator's, and end with the plan that they were made for.
      const after = plan === before ? { plan } : { plan, restPerMinute: null, mcpPerMinute: null };
      await organizations.updateOne({ _id }, { $set: { ...after, subscriptions: now } }, { session });
      if (plan === before) return null;
      const record = entryOf(`billing/${eventId}`, at, organization, after);
      await outbox.put(record, session);
      return record;
    });
    if (audited !== null) await outbox.settle(audited);
  }

  async #organizationOf(
    named: z.output<typeof metadata>,
    session?: ClientSession,
  ): Promise<OrganizationDocument | null> {
    const _id = named?.[ORGANIZATION];
    const within = session === undefined ? {} : { session };
    return _id === undefined ? null : this.#dependencies.organizations.findOne({ _id }, within);
  }
}

const entryOf = (
  entryKey: string,
  at: Date,
  { _id, mcpPerMinute, plan, restPerMinute }: OrganizationDocument,
  after: object,
): AuditRecord => ({
  organizationId: _id,
  entryKey,
  at: at.getTime(),
  action: "setPlan",
  actor: { type: "system", id: "billing" },
  resource: { type: "organization", id: _id },
  from: null,
  result: { status: null, code: null },
  before: auditValue({ plan, restPerMinute, mcpPerMinute }),
  after: auditValue(after),
  decision: null,
});

/** State of a subscription that an event tells; null: it tells nothing of its plan. */
function stateOf({ items, status }: Subscription): Pick<SubscriptionState, "plan"> | null {
  if (OVER.has(status)) return { plan: "free" };
  if (!HOLDS.has(status)) return null;
  const named = items.data.map(({ price }) => price.metadata?.[PLAN]);
  const plan = PLANS.findLast((each) => named.includes(each));
  return plan === undefined ? null : { plan };
}

/** Events have whole seconds and come in any order: of one second, the one that ends a subscription is the last. */
const isNewer = (one: SubscriptionState, known: SubscriptionState): boolean =>
  one.at > known.at ||
  (one.at.getTime() === known.at.getTime() && (one.plan === "free" || known.plan !== "free"));

/** An organization that changes to another subscription keeps its plan when the first one ends. */
const highestOf = (states: readonly SubscriptionState[]): Plan =>
  PLANS.findLast((plan) => states.some((state) => state.plan === plan)) ?? "free";
