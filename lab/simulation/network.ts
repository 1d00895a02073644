import type { Random } from "../random.ts";
import type { Timeline } from "./timeline.ts";

/** No answer came in time: what was asked may have been done, may still be done, or never. */
export class Unavailable extends Error {
  override readonly name = "Unavailable";
}

/** Deadline of a caller. */
export const CALL_DEADLINE_MS = 4_000;

/** The longest that a message is under way; an actor has received everything older long before its tombstones are cleared. */
const DELAY_MAX_MS = 120_000;

/** Probabilities of lost and late messages; 0 while the world is brought to rest. */
export interface Weather {
  readonly lost: number;
  readonly late: number;
  readonly twice: number;
}

export const CLEAR: Weather = { lost: 0, late: 0, twice: 0 };

/** A process that can be killed: nothing it waited for ever comes. */
export class Host {
  readonly name: string;
  readonly #ends = new Set<() => void>();
  isAlive = true;
  /** Until then the process is suspended: it is told nothing, and does nothing. */
  stalledUntil = 0;

  constructor(name: string) {
    this.name = name;
  }

  kill(): void {
    this.isAlive = false;
    for (const end of this.#ends) end();
    this.#ends.clear();
  }

  /** For a caller outside of this process: its work, or `Unavailable` when the process dies over it. */
  serve<T>(work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (!this.isAlive) return reject(new Unavailable(`${this.name} is down`));
      const end = (): void => reject(new Unavailable(`${this.name} died`));
      this.#ends.add(end);
      work()
        .then(resolve, reject)
        .finally(() => this.#ends.delete(end));
    });
  }
}

/** Between processes: messages take their time, overtake each other, get lost and come twice. */
export class Network {
  readonly #timeline: Timeline;
  readonly #random: Random;
  weather: Weather;
  messages = 0;

  constructor(timeline: Timeline, random: Random, weather: Weather) {
    this.#timeline = timeline;
    this.#random = random;
    this.weather = weather;
  }

  /** Has work done elsewhere; throws `Unavailable` when its answer does not come in time, done or not. */
  call<T>(host: Host, work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      if (!host.isAlive) return;
      const { late, lost, twice } = this.weather;
      const random = this.#random;
      const there = this.#delay(late);
      const back = this.#delay(late);
      const requestLost = random.chance(lost / 2);
      const answerLost = requestLost || random.chance(lost / 2) || there + back > CALL_DEADLINE_MS;
      const deliver = (): void => {
        this.messages += 1;
        const answer = attempt(work);
        if (answerLost) return;
        this.#reach(host, back, () => {
          if (answer.ok) resolve(answer.value);
          else reject(answer.error);
        });
      };
      const again = (): void => {
        this.messages += 1;
        attempt(work);
      };
      if (!requestLost) this.#timeline.after(there, deliver);
      if (!requestLost && random.chance(twice)) this.#timeline.after(there + this.#delay(0.5), again);
      if (answerLost) {
        this.#reach(host, CALL_DEADLINE_MS, () => reject(new Unavailable("no answer in time")));
      }
    });
  }

  /** A pause in a process; never ends in one that dies over it. */
  sleep(host: Host, ms: number): Promise<void> {
    return new Promise((resolve) => this.#reach(host, ms, resolve));
  }

  /** After so long, or once the process is not suspended any more; never where it is dead. */
  #reach(host: Host, ms: number, run: () => void): void {
    this.#timeline.after(ms, () => {
      if (!host.isAlive) return;
      const stalledMs = host.stalledUntil - this.#timeline.now;
      if (stalledMs > 0) this.#reach(host, stalledMs, run);
      else run();
    });
  }

  #delay(late: number): number {
    const random = this.#random;
    if (!random.chance(late)) return random.between(1, 4);
    return random.chance(0.1) ? random.between(1_000, DELAY_MAX_MS) : random.between(5, 2_000);
  }
}

type Attempt<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown };

function attempt<T>(work: () => T): Attempt<T> {
  try {
    return { ok: true, value: work() };
  } catch (error) {
    return { ok: false, error };
  }
}
