import type { Payment } from "../src/domain/agent/payment.ts";
import type { AgentProfile } from "../src/domain/agent/state.ts";
import { paymentDecisions } from "../src/domain/audit/payment-decisions.ts";
import type { AuditAppender } from "./audit/appender.ts";
import type { EventJournal } from "./journal.ts";
import type { Clock, PaymentTelling } from "./ports.ts";

export interface TellingDependencies {
  readonly journal: EventJournal;
  /** Null: decisions on payments are not kept, as in the one half of a comparison. */
  readonly auditLog: AuditAppender | null;
  readonly clock: Clock;
}

/**
 * Tells the journal of events and the audit log what became of payments: after the answer, many together, and before the
 * actor hears that it is done with. Both know what they were told by keys that follow from the payment.
 */
export class PaymentTeller implements PaymentTelling {
  readonly #dependencies: TellingDependencies;

  constructor(dependencies: TellingDependencies) {
    this.#dependencies = dependencies;
  }

  async tell(profile: AgentProfile, payment: Payment, when: "now" | "soon"): Promise<void> {
    const { auditLog, clock, journal } = this.#dependencies;
    const { organizationId } = profile;
    await Promise.all([
      journal.tellPayment(profile, payment, clock(), when),
      auditLog?.appendAll(organizationId, () => paymentDecisions(profile, payment), when),
    ]);
  }

  hurry(): void {
    this.#dependencies.journal.hurry();
    void this.#dependencies.auditLog?.flush();
  }
}
