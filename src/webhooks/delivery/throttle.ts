/** From this load on deliveries give way to payments. */
const BUSY_LOAD = 0.8;
/** Fewer payments in a second are not what makes it busy. */
const PAYMENTS_MIN = 5;
/**
 * Of the payments' rate, what deliveries get meanwhile; and what they get at the least, in a second. A delivery is a workflow
 * of its own and takes about three times the processor time of a payment, so at this share they take a third of it.
 */
const SHARE = 0.15;
const DELIVERIES_MIN = 5;
/** Once the load has fallen their rate doubles in so long, up to one that is no bound any more. */
const DOUBLED_SECONDS = 1;
const DELIVERIES_MAX = 1_000;

export interface Demand {
  /** From 0 to 1. */
  readonly load: number;
  readonly paymentsPerSecond: number;
}

/**
 * How many deliveries are begun. An agent waits for its payment, and no caller waits for a delivery that would come a little later:
 * where both want the same processors, payments come first, and deliveries go on at a part of their rate. When the load falls
 * while payments go on, that is because deliveries gave way, so their rate grows back gradually.
 */
export class DeliveryThrottle {
  /** Null: as many as there are. */
  #bound: { perSecond: number; allowed: number } | null = null;
  #atMs: number;

  /** Times are of a monotonic clock. */
  constructor(nowMs: number) {
    this.#atMs = nowMs;
  }

  /** Whether the payments' rate bears on the pace, under such a load. */
  dependsOnPayments(load: number): boolean {
    return load >= BUSY_LOAD || this.#bound !== null;
  }

  /** Deliveries that may be begun now: all there are, where nothing is in their way. */
  allowance({ load, paymentsPerSecond }: Demand, nowMs: number): number {
    const elapsedSeconds = (nowMs - this.#atMs) / 1_000;
    this.#atMs = nowMs;
    const perSecond = this.#perSecond({ load, paymentsPerSecond }, elapsedSeconds);
    if (perSecond === null) {
      this.#bound = null;
      return Infinity;
    }
    // What was not used in a second is not saved up.
    const allowed = Math.min(perSecond, (this.#bound?.allowed ?? 0) + perSecond * elapsedSeconds);
    this.#bound = { perSecond, allowed };
    return Math.max(0, Math.floor(allowed));
  }

  /**
   * So many were begun. More than were allowed, where one event has many endpoints, are made up for; those of a time in which
   * nothing was in their way are not.
   */
  begun(deliveries: number): void {
    if (this.#bound !== null) this.#bound.allowed -= deliveries;
  }

  #perSecond({ load, paymentsPerSecond }: Demand, elapsedSeconds: number): number | null {
    if (paymentsPerSecond < PAYMENTS_MIN) return null;
    if (load >= BUSY_LOAD) return Math.max(DELIVERIES_MIN, paymentsPerSecond * SHARE);
    if (this.#bound === null) return null;
    const perSecond = this.#bound.perSecond * 2 ** (elapsedSeconds / DOUBLED_SECONDS);
    return perSecond < DELIVERIES_MAX ? perSecond : null;
  }
}
