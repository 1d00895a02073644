/** From this load on deliveries give way to payments. */
const BUSY_LOAD = 0.8;
/** Fewer payments in a second are not what makes it busy. */
const PAYMENTS_MIN = 5;
/** Of the payments' rate, what deliveries get meanwhile; and what they get at the least, in a second. */
const SHARE = 0.25;
const DELIVERIES_MIN = 10;

/** Whether deliveries give way under such a load, given payments. */
export const isBusy = (load: number): boolean => load >= BUSY_LOAD;

export interface Demand {
  /** From 0 to 1. */
  readonly load: number;
  readonly paymentsPerSecond: number;
}

/**
 * How many deliveries are begun. An agent waits for its payment, and nobody waits for a delivery that would come a little
 * later: where both want the same processors, payments come first, and deliveries go on at a part of their rate.
 */
export class DeliveryPace {
  /** Null: as many as there are. */
  #allowed: number | null = null;
  #atMs: number;

  /** Times are of a monotonic clock. */
  constructor(nowMs: number) {
    this.#atMs = nowMs;
  }

  /** Deliveries that may be begun now: all there are, where nothing is in their way. */
  allowance({ load, paymentsPerSecond }: Demand, nowMs: number): number {
    const elapsedSeconds = (nowMs - this.#atMs) / 1_000;
    this.#atMs = nowMs;
    if (!isBusy(load) || paymentsPerSecond < PAYMENTS_MIN) {
      this.#allowed = null;
      return Infinity;
    }
    const perSecond = Math.max(DELIVERIES_MIN, paymentsPerSecond * SHARE);
    // What was not used in a second is not saved up.
    this.#allowed = Math.min(perSecond, (this.#allowed ?? 0) + perSecond * elapsedSeconds);
    return Math.max(0, Math.floor(this.#allowed));
  }

  /**
   * So many were begun. More than were allowed, where one event has many endpoints, are made up for; those of a time in which
   * nothing was in their way are not.
   */
  begun(deliveries: number): void {
    if (this.#allowed !== null) this.#allowed -= deliveries;
  }
}
