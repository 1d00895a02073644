import { z } from "zod";
import type { AuditLog } from "../audit/chain/appender.ts";
import { auditValue } from "../domain/audit/canonical.ts";
import type { RawMessage } from "../payments/card-issuer.ts";
import type { Clock } from "../payments/ports.ts";
import { isSigned } from "../rails/stripe/messages.ts";
import { eventObject, jsonOf } from "../rails/stripe/objects.ts";
import { type OrganizationDocument, type Plan, PLANS } from "../store/identity-documents.ts";
import type { EventJournal } from "../store/journal.ts";
import type { Collection } from "mongodb";

/** Key of a subscription's metadata that names the organization by its id. */
const ORGANIZATION = "organization";
/** Key of a price's metadata that names the plan. */
const PLAN = "plan";

const metadata = z.record(z.string(), z.string()).nullish();
const subscriptionObject = z.object({
  id: z.string(),
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
  readonly auditLog: Pick<AuditLog, "append">;
  readonly clock: Clock;
}

/** Events of the operator's own Stripe account, in which organizations pay for the service. */
export class StripeBilling {
  readonly #dependencies: StripeBillingDependencies;

  constructor(dependencies: StripeBillingDependencies) {
    this.#dependencies = dependencies;
  }

  /** Takes an event. Repeatable; of a subscription only the newest counts. */
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

  /** The audit entry comes first: no crash leaves a change without one, and the repeated event completes it. */
  async #subscribed(eventId: string, object: unknown, at: Date): Promise<void> {
    const { auditLog, organizations } = this.#dependencies;
    const { data: subscription } = subscriptionObject.safeParse(object);
    const organization = await this.#organizationOf(subscription?.metadata);
    const plan = subscription === undefined ? null : planOf(subscription);
    if (organization === null || plan === null) return;
    const { _id, billedAt = null, mcpPerMinute, plan: before, restPerMinute } = organization;
    if (billedAt !== null && billedAt > at) return;
    // Custom limits are an operator's, and end with the plan that they were made for.
    const after = plan === before ? { plan } : { plan, restPerMinute: null, mcpPerMinute: null };
    if (plan !== before)
      await auditLog.append({
        organizationId: _id,
        entryKey: `billing/${eventId}`,
        at: at.getTime(),
        action: "setPlan",
        actor: { type: "system", id: "billing" },
        resource: { type: "organization", id: _id },
        from: null,
        result: { status: null, code: null },
        before: auditValue({ plan: before, restPerMinute, mcpPerMinute }),
        after: auditValue(after),
        decision: null,
      });
    await organizations.updateOne(
      { _id, $or: [{ billedAt: { $exists: false } }, { billedAt: { $lte: at } }] },
      { $set: { ...after, billedAt: at } },
      { writeConcern: { w: "majority" } },
    );
  }

  async #organizationOf(named: z.output<typeof metadata>): Promise<OrganizationDocument | null> {
    const _id = named?.[ORGANIZATION];
    return _id === undefined ? null : this.#dependencies.organizations.findOne({ _id });
  }
}

/** The plan that a subscription stands for now; null: it says nothing of it. */
function planOf({ items, status }: Subscription): Plan | null {
  if (OVER.has(status)) return "free";
  if (!HOLDS.has(status)) return null;
  const named = items.data.map(({ price }) => price.metadata?.[PLAN]);
  return PLANS.findLast((plan) => named.includes(plan)) ?? null;
}
