/** Maximum exchanges with receivers in flight in one process, per endpoint and per organization. */
const OF_ENDPOINT_MAX = 8;
const OF_ORGANIZATION_MAX = 32;
/** Lower limit for an endpoint that seems to hang, so that it cannot starve others. */
const SLOW_MS = 5_000;
const OF_SLOW_ENDPOINT_MAX = 4;
/** Limit over all slow endpoints of all organizations, well below the worker's slots. */
const SLOW_MAX = 100;
/** Maximum tests of one organization, which do not wait behind hanging receivers. */
const TESTS_MAX = 4;

/** Range of the delay between a refusal and the retry. */
const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 600_000;
/** Expected duration of an exchange before any has ended. */
const FIRST_GUESS_MS = 500;
/** Weight of the newest sample in the moving average. */
const WEIGHT = 0.2;
const TRACKED_MAX = 10_000;

/** A slot to send from, which its holder must release. */
export interface Slot {
  release(elapsedMs: number): void;
}

interface Usage {
  inFlight: number;
  /** Moving average of the duration of exchanges. */
  typicalMs: number;
  /** The latest time at which a refused request may retry. */
  reservedUntil: number;
}

interface Bound {
  readonly usage: Usage;
  readonly max: number;
}

export interface SlotRequest {
  readonly endpointId: string;
  readonly organizationId: string;
  readonly isTest: boolean;
}

/**
 * Limits the share of a process that one receiver, or one organization's receivers, can occupy, however slow they are.
 * No delivery waits for a slot: a refused request gets a retry delay, each one later than the previous by the duration
 * of exchanges.
 */
export class DeliverySlots {
  readonly #endpoints = new Map<string, Usage>();
  readonly #organizations = new Map<string, Usage>();
  readonly #tests = new Map<string, Usage>();
  readonly #slow = unused();
  readonly #now: () => number;

  /** `now` is a monotonic clock in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Returns a slot, or the retry delay in milliseconds. */
  take({ endpointId, isTest, organizationId }: SlotRequest): Slot | number {
    const bounds = isTest ? this.#boundsOfTest(organizationId) : this.#bounds(endpointId, organizationId);
    const full = bounds.find(({ usage, max }) => usage.inFlight >= max);
    if (full !== undefined) return this.#reserve(full);
    for (const { usage } of bounds) usage.inFlight += 1;
    return {
      release: (elapsedMs) => {
        for (const { usage } of bounds) this.#release(usage, elapsedMs);
      },
    };
  }

  #boundsOfTest(organizationId: string): Bound[] {
    return [{ usage: usageOf(this.#tests, organizationId), max: TESTS_MAX }];
  }

  #bounds(endpointId: string, organizationId: string): Bound[] {
    const endpoint = usageOf(this.#endpoints, endpointId);
    const organization = { usage: usageOf(this.#organizations, organizationId), max: OF_ORGANIZATION_MAX };
    if (endpoint.typicalMs < SLOW_MS) return [{ usage: endpoint, max: OF_ENDPOINT_MAX }, organization];
    return [
      { usage: endpoint, max: OF_SLOW_ENDPOINT_MAX },
      { usage: this.#slow, max: SLOW_MAX },
      organization,
    ];
  }

  #release(usage: Usage, elapsedMs: number): void {
    const [before, now] = [usage.typicalMs, this.#now()];
    usage.inFlight -= 1;
    usage.typicalMs += (elapsedMs - before) * WEIGHT;
    // After the receiver recovers, a new delivery does not wait for the delays assigned before.
    const ahead = usage.reservedUntil - now;
    if (usage.typicalMs < before && ahead > 0) usage.reservedUntil = now + (ahead * usage.typicalMs) / before;
  }

  #reserve({ usage, max }: Bound): number {
    const now = this.#now();
    const earliest = now + RETRY_MIN_MS;
    usage.reservedUntil = Math.max(earliest, usage.reservedUntil + usage.typicalMs / max);
    return Math.min(RETRY_MAX_MS, usage.reservedUntil - now);
  }
}

const unused = (): Usage => ({ inFlight: 0, typicalMs: FIRST_GUESS_MS, reservedUntil: 0 });

function usageOf(usages: Map<string, Usage>, id: string): Usage {
  const known = usages.get(id);
  if (known !== undefined) return known;
  if (usages.size >= TRACKED_MAX) evictIdle(usages);
  const fresh = unused();
  usages.set(id, fresh);
  return fresh;
}

function evictIdle(usages: Map<string, Usage>): void {
  for (const [id, { inFlight }] of usages) if (inFlight === 0) usages.delete(id);
}
