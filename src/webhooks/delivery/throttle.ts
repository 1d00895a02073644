/** Load from which deliveries give way to payments. */
const BUSY_LOAD = 0.8;
/** Fewer payments in a second are not what makes it busy. */
const PAYMENTS_MIN = 5;
/**
 * Share of the payments' rate that deliveries get meanwhile, and the minimum rate per second. A delivery takes about
 * three times the processor time of a payment, so this share takes a third of it.
 */
const SHARE = 0.15;
const DELIVERIES_MIN = 5;
/** Time in which the rate doubles once the load has fallen, until it limits nothing. */
const DOUBLED_SECONDS = 1;
const DELIVERIES_MAX = 1_000;

export interface Demand {
  /** Load from 0 to 1. */
  readonly load: number;
  readonly paymentsPerSecond: number;
}

/**
 * Limits how many deliveries begin. An agent waits for its payment, nobody for a delivery, so payments come first
 * while processors are scarce. A load that falls while payments go on fell because deliveries gave way, so their rate
 * grows back gradually.
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
    // Unused capacity is not saved up.
    const allowed = Math.min(perSecond, (this.#bound?.allowed ?? 0) + perSecond * elapsedSeconds);
    this.#bound = { perSecond, allowed };
    return Math.max(0, Math.floor(allowed));
  }

  /**
   * Counts begun deliveries. An excess, from one event with many endpoints, is made up for, unless nothing was
   * limited.
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
