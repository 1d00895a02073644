/** Exchanges with receivers that one process has under way. */
const OF_ENDPOINT_MAX = 8;
const OF_ORGANIZATION_MAX = 32;
/** The same where exchanges take so long that the receiver seems to hang: what it occupies, others can't have. */
const SLOW_MS = 5_000;
const OF_SLOW_ENDPOINT_MAX = 4;
/** All slow endpoints together, whosoever. Well below what a worker has under way. */
const SLOW_MAX = 100;
/** Tests that people make, of one organization: they do not wait behind what hangs. */
const TESTS_MAX = 4;

/** Between the exchange that was just refused a place and the next look. */
const LOOK_AGAIN_MIN_MS = 500;
const LOOK_AGAIN_MAX_MS = 600_000;
/** What an exchange is expected to take before any has ended. */
const FIRST_GUESS_MS = 500;
/** How much a new duration counts. */
const WEIGHT = 0.2;
const REMEMBERED_MAX = 10_000;

/** A place to send from; whoever has one gives it back. */
export interface Slot {
  release(elapsedMs: number): void;
}

interface Pace {
  underWay: number;
  /** What exchanges take of late. */
  typicalMs: number;
  /** Until then those that were refused have been told to come. */
  reservedUntil: number;
}

/** How many at a time. */
interface Bound {
  readonly pace: Pace;
  readonly places: number;
}

export interface SlotRequest {
  readonly endpointId: string;
  readonly organizationId: string;
  readonly isTest: boolean;
}

/**
 * Bounds what one receiver, or one organization's receivers, can occupy of a process, however slow they are. Nobody waits
 * for a place: whoever gets none is told when to come again, each later than the one before, by what exchanges take.
 */
export class DeliverySlots {
  readonly #endpoints = new Map<string, Pace>();
  readonly #organizations = new Map<string, Pace>();
  readonly #tests = new Map<string, Pace>();
  readonly #slow = freshPace();
  readonly #now: () => number;

  /** `now`: a monotonic clock in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** A place, or the milliseconds after which to come again. */
  take({ endpointId, isTest, organizationId }: SlotRequest): Slot | number {
    const bounds = isTest ? this.#boundsOfTest(organizationId) : this.#bounds(endpointId, organizationId);
    const full = bounds.find(({ pace, places }) => pace.underWay >= places);
    if (full !== undefined) return this.#reserve(full);
    for (const { pace } of bounds) pace.underWay += 1;
    return {
      release: (elapsedMs) => {
        for (const { pace } of bounds) this.#release(pace, elapsedMs);
      },
    };
  }

  #boundsOfTest(organizationId: string): Bound[] {
    return [{ pace: paceOf(this.#tests, organizationId), places: TESTS_MAX }];
  }

  #bounds(endpointId: string, organizationId: string): Bound[] {
    const endpoint = paceOf(this.#endpoints, endpointId);
    const organization = { pace: paceOf(this.#organizations, organizationId), places: OF_ORGANIZATION_MAX };
    if (endpoint.typicalMs < SLOW_MS) return [{ pace: endpoint, places: OF_ENDPOINT_MAX }, organization];
    return [
      { pace: endpoint, places: OF_SLOW_ENDPOINT_MAX },
      { pace: this.#slow, places: SLOW_MAX },
      organization,
    ];
  }

  #release(pace: Pace, elapsedMs: number): void {
    const [before, now] = [pace.typicalMs, this.#now()];
    pace.underWay -= 1;
    pace.typicalMs += (elapsedMs - before) * WEIGHT;
    // Who comes when its receiver is well again does not wait for as long as those who came while it was not.
    const ahead = pace.reservedUntil - now;
    if (pace.typicalMs < before && ahead > 0) pace.reservedUntil = now + (ahead * pace.typicalMs) / before;
  }

  #reserve({ pace, places }: Bound): number {
    const now = this.#now();
    const earliest = now + LOOK_AGAIN_MIN_MS;
    pace.reservedUntil = Math.max(earliest, pace.reservedUntil + pace.typicalMs / places);
    return Math.min(LOOK_AGAIN_MAX_MS, pace.reservedUntil - now);
  }
}

const freshPace = (): Pace => ({ underWay: 0, typicalMs: FIRST_GUESS_MS, reservedUntil: 0 });

function paceOf(paces: Map<string, Pace>, id: string): Pace {
  const known = paces.get(id);
  if (known !== undefined) return known;
  if (paces.size >= REMEMBERED_MAX) forgetIdle(paces);
  const fresh = freshPace();
  paces.set(id, fresh);
  return fresh;
}

function forgetIdle(paces: Map<string, Pace>): void {
  for (const [id, { underWay }] of paces) if (underWay === 0) paces.delete(id);
}
