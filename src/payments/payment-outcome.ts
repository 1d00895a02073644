import { withTimeout } from "../lib/with-timeout.ts";
import { Gate, type Permit } from "../lib/gate.ts";
import type { TransactionDocument } from "../store/documents.ts";
import type { PaymentChanges } from "./payment-changes.ts";
import type { RecordedPayment } from "./payments.ts";

/** Maximum wait for the rail's outcome after a person's decision. */
const FINALITY_MS = 5_000;
/** A record that can't be read in so long is not waited for: the payment is answered as it was known. */
const READ_MS = 1_000;

/** Calls of one agent that wait at once: each holds a connection. */
const WAITING_OF_AGENT_MAX = 100;

/** The calls of a process that wait; further ones are answered at once with the payment as it is. */
export class WaitingCalls {
  readonly #gate: Gate;
  readonly #ofOrganizationMax: number;

  /** `max`: of the process; an organization has half of them. */
  constructor(max: number) {
    this.#gate = new Gate(max);
    this.#ofOrganizationMax = Math.ceil(max / 2);
  }

  /** Number of waiting calls. */
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

/** Dependencies of waiting for an outcome. */
export interface OutcomeDependencies {
  readonly calls: WaitingCalls;
  readonly changes: PaymentChanges;
  /** The payment's records as they are now. */
  readonly read: () => Promise<RecordedPayment>;
  readonly onError: (error: unknown) => void;
}

/**
 * The payment once nothing is to be waited for any more: it was decided and came to its end, so long has passed, or the
 * process is about to end. Answers at once where it is at its end already, or too many calls wait. Never throws: what can't be
 * read is answered as it was known.
 */
export async function outcomeOf(
  payment: RecordedPayment,
  withinMs: number,
  dependencies: OutcomeDependencies,
): Promise<RecordedPayment> {
  if (stageOf(payment) === "ended" || withinMs <= 0) return payment;
  const permit = dependencies.calls.enter(payment.transaction);
  if (permit === null) return payment;
  return await waitedFor(payment, withinMs, dependencies).finally(() => permit.release());
}

async function waitedFor(
  payment: RecordedPayment,
  withinMs: number,
  { changes, onError, read }: OutcomeDependencies,
): Promise<RecordedPayment> {
  let until = performance.now() + withinMs;
  let known = payment;
  let stage: WaitStage = stageOf(known);
  const watch = await changes.watch(payment.transaction._id);
  try {
    for (;;) {
      known = await withTimeout(READ_MS, read());
      const before: WaitStage = stage;
      stage = stageOf(known);
      const now = performance.now();
      if (stage !== before && stage === "decided") until = Math.min(until, now + FINALITY_MS);
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

/** The stage of a payment, as far as waiting for it is concerned. */
type WaitStage = "open" | "decided" | "ended";

function stageOf({ approval, transaction }: RecordedPayment): WaitStage {
  if (transaction.status !== "pending") return "ended";
  return (approval?.resolution ?? null) === null ? "open" : "decided";
}
