/** Load at which deliveries begin to give way to payments. */
const BUSY_LOAD = 0.8;
/** Payment rate per second below which payments are not the cause of the load. */
const PAYMENTS_MIN = 5;
/**
 * Deliveries' share of the payments' rate under load, and their minimum rate per second. A delivery takes about three
 * times the processor time of a payment, so this share takes a third of it.
 */
const SHARE = 0.15;
const DELIVERIES_MIN = 5;
/** Time in which the rate doubles once the load has fallen, until it no longer limits anything. */
const DOUBLED_SECONDS = 1;
const DELIVERIES_MAX = 1_000;

export interface Demand {
  /** Load from 0 to 1. */
  readonly load: number;
  readonly paymentsPerSecond: number;
}

/**
 * Limits how many deliveries begin. An agent waits for its payment, but nobody for a delivery, so payments come first
 * while processors are scarce. If the load falls while payments continue, it fell because deliveries gave way, so their
 * rate grows back gradually.
 */
export class DeliveryThrottle {
  /** Null if unlimited. */
  #bound: { perSecond: number; allowed: number } | null = null;
  #atMs: number;

  /** Times are of a monotonic clock. */
  constructor(nowMs: number) {
    this.#atMs = nowMs;
  }

  /** Whether the payments' rate affects the pace under this load. */
  dependsOnPayments(load: number): boolean {
    return load >= BUSY_LOAD || this.#bound !== null;
  }

  /** Returns the number of deliveries that may begin now; `Infinity` if unlimited. */
  allowance({ load, paymentsPerSecond }: Demand, nowMs: number): number {
    const elapsedSeconds = (nowMs - this.#atMs) / 1_000;
    this.#atMs = nowMs;
    const perSecond = this.#perSecond({ load, paymentsPerSecond }, elapsedSeconds);
    if (perSecond === null) {
      this.#bound = null;
      return Infinity;
    }
    // Unused capacity is not saved up.
    const allowed = Math.min(perSecond, (this.#bound?.allowed ?? 0) + perSecond * elapsedSeconds);
    this.#bound = { perSecond, allowed };
    return Math.max(0, Math.floor(allowed));
  }

  /**
   * Counts begun deliveries. An excess, from one event with many endpoints, is made up for, unless nothing was limited.
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
