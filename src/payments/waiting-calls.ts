import { withTimeout } from "../lib/with-timeout.ts";
import { Gate, type Permit } from "../lib/gate.ts";
import type { TransactionDocument } from "../store/documents.ts";
import type { PaymentChanges } from "./payment-changes.ts";
import type { RecordedPayment } from "./payments.ts";

/** Maximum wait for the end of a payment that a person has decided. */
const FINALITY_TIMEOUT_MS = 5_000;
/** Timeout of reading the record; after it, the last known payment is returned. */
const READ_TIMEOUT_MS = 1_000;

/** Maximum waiting calls per agent: each holds a connection. */
const WAITING_OF_AGENT_MAX = 100;

/** Waiting calls of this process; further calls are answered at once with the payment as it is. */
export class WaitingCalls {
  readonly #gate: Gate;
  readonly #ofOrganizationMax: number;

  /** `max` applies to the process; an organization may use half of it. */
  constructor(max: number) {
    this.#gate = new Gate(max);
    this.#ofOrganizationMax = Math.ceil(max / 2);
  }

  get waiting(): number {
    return this.#gate.inside;
  }

  enter({ agentId, organizationId }: Pick<TransactionDocument, "agentId" | "organizationId">): Permit | null {
    return this.#gate.enter(
      { name: agentId, max: WAITING_OF_AGENT_MAX },
      { name: organizationId, max: this.#ofOrganizationMax },
    );
  }
}

export interface WaitDependencies {
  readonly calls: WaitingCalls;
  readonly changes: PaymentChanges;
  readonly read: () => Promise<RecordedPayment>;
  readonly onError: (error: unknown) => void;
}

/**
 * Returns the payment once there is nothing to wait for: it was decided and has ended, `withinMs` has passed, or the
 * process is about to end. Returns at once if the payment has ended or too many calls wait. Never throws: if a read
 * fails, the last known payment is returned.
 */
export async function awaitPayment(
  payment: RecordedPayment,
  withinMs: number,
  dependencies: WaitDependencies,
): Promise<RecordedPayment> {
  if (waitStageOf(payment) === "ended" || withinMs <= 0) return payment;
  const permit = dependencies.calls.enter(payment.transaction);
  if (permit === null) return payment;
  return await watchPayment(payment, withinMs, dependencies).finally(() => permit.release());
}

async function watchPayment(
  payment: RecordedPayment,
  withinMs: number,
  { changes, onError, read }: WaitDependencies,
): Promise<RecordedPayment> {
  let until = performance.now() + withinMs;
  let known = payment;
  let stage: WaitStage = waitStageOf(known);
  const watch = await changes.watch(payment.transaction._id);
  try {
    for (;;) {
      known = await withTimeout(READ_TIMEOUT_MS, read());
      const before: WaitStage = stage;
      stage = waitStageOf(known);
      const now = performance.now();
      if (stage !== before && stage === "decided") until = Math.min(until, now + FINALITY_TIMEOUT_MS);
      if (stage === "ended" || now >= until || changes.isOver) return known;
      await watch.changed(until - now);
    }
  } catch (error) {
    onError(error);
    return known;
  } finally {
    watch.end();
  }
}

type WaitStage = "open" | "decided" | "ended";

function waitStageOf({ approval, transaction }: RecordedPayment): WaitStage {
  if (transaction.status !== "pending") return "ended";
  return (approval?.resolution ?? null) === null ? "open" : "decided";
}
