import type { Payment } from "../domain/ledger/payment.ts";
import type { AgentProfile } from "../domain/agent/state.ts";
import { paymentDecisions } from "../domain/audit/payment-decisions.ts";
import type { AuditAppender } from "../audit/chain/appender.ts";
import type { EventJournal } from "../store/journal.ts";
import type { Clock, PaymentPublishing } from "./ports.ts";

export interface PublisherDependencies {
  readonly journal: EventJournal;
  /** Null disables the audit log for payments (used by a benchmark). */
  readonly auditLog: AuditAppender | null;
  readonly clock: Clock;
}

/**
 * Publishes the outcomes of payments to the event journal and the audit log: after the response, in batches, and before
 * the ledger's confirmation. Both deduplicate by keys derived from the payment.
 */
export class PaymentPublisher implements PaymentPublishing {
  readonly #dependencies: PublisherDependencies;

  constructor(dependencies: PublisherDependencies) {
    this.#dependencies = dependencies;
  }

  async publish(profile: AgentProfile, payment: Payment, when: "now" | "soon"): Promise<void> {
    const { auditLog, clock, journal } = this.#dependencies;
    const { organizationId } = profile;
    await Promise.all([
      journal.publishPayment(profile, payment, clock(), when),
      auditLog?.appendAll(organizationId, () => paymentDecisions(profile, payment), when),
    ]);
  }

  flush(): void {
    this.#dependencies.journal.flush();
    void this.#dependencies.auditLog?.flush();
  }
}
