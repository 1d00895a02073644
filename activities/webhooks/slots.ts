/** Exchanges with receivers that one process has under way. */
const OF_ENDPOINT_MAX = 8;
const OF_ORGANIZATION_MAX = 32;

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

/**
 * Bounds what one receiver, or one organization's receivers, can occupy of a process, however slow they are. Nobody waits
 * for a place: whoever gets none is told when to come again, each later than the one before, by what exchanges take.
 */
export class DeliverySlots {
  readonly #endpoints = new Map<string, Pace>();
  readonly #organizations = new Map<string, Pace>();
  readonly #now: () => number;

  /** `now`: a monotonic clock in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** A place, or the milliseconds after which to come again. */
  take(endpointId: string, organizationId: string): Slot | number {
    const endpoint = paceOf(this.#endpoints, endpointId);
    const organization = paceOf(this.#organizations, organizationId);
    if (endpoint.underWay >= OF_ENDPOINT_MAX) return this.#reserve(endpoint, OF_ENDPOINT_MAX);
    if (organization.underWay >= OF_ORGANIZATION_MAX) return this.#reserve(organization, OF_ORGANIZATION_MAX);
    endpoint.underWay += 1;
    organization.underWay += 1;
    return {
      release: (elapsedMs) => {
        for (const pace of [endpoint, organization]) {
          pace.underWay -= 1;
          pace.typicalMs += (elapsedMs - pace.typicalMs) * WEIGHT;
        }
      },
    };
  }

  #reserve(pace: Pace, places: number): number {
    const now = this.#now();
    const earliest = now + LOOK_AGAIN_MIN_MS;
    pace.reservedUntil = Math.max(earliest, pace.reservedUntil + pace.typicalMs / places);
    return Math.min(LOOK_AGAIN_MAX_MS, pace.reservedUntil - now);
  }
}

function paceOf(paces: Map<string, Pace>, id: string): Pace {
  const known = paces.get(id);
  if (known !== undefined) return known;
  if (paces.size >= REMEMBERED_MAX) forgetIdle(paces);
  const fresh = { underWay: 0, typicalMs: FIRST_GUESS_MS, reservedUntil: 0 };
  paces.set(id, fresh);
  return fresh;
}

function forgetIdle(paces: Map<string, Pace>): void {
  for (const [id, { underWay }] of paces) if (underWay === 0) paces.delete(id);
}
