import type { LifecycleEvent, LifecycleEventType } from "../../../src/domain/events.ts";
import { must, mustEqual } from "./violation.ts";

interface Change {
  readonly type: LifecycleEventType;
  readonly at: number;
}

/** Changes of an agent itself and their published events: each change once, under an id of its own, in its order. */
export class EventModel {
  readonly #happened: Change[] = [];
  /** The change of each event's id. */
  readonly #ids = new Map<string, number>();
  readonly #written = new Map<string, LifecycleEvent>();

  happened(type: LifecycleEventType, at: number): void {
    this.#happened.push({ type, at });
  }

  /** Checks the outbox: each change in it happened and is there once, and those that left it are in the journal. */
  expectOutbox(outbox: readonly LifecycleEvent[], of: readonly LifecycleEventType[]): void {
    const happened = this.#happened.filter(({ type }) => of.includes(type));
    const first = happened.length - outbox.length;
    must(first >= 0, "an event for a change that did not happen");
    for (const [index, { at, id, type }] of outbox.entries()) {
      mustEqual({ at, type }, happened[first + index], "an event against what happened");
      const place = this.#happened.indexOf(happened[first + index] ?? { type, at });
      mustEqual(this.#ids.get(id) ?? place, place, "an event's id was given twice: its change");
      this.#ids.set(id, place);
    }
    const published = [...this.#written.values()].filter(({ type }) => of.includes(type)).length;
    must(first <= published, "an event left the outbox and is not in the journal");
  }

  write(events: readonly LifecycleEvent[]): void {
    for (const event of events) {
      mustEqual(event, this.#written.get(event.id) ?? event, "an event was published as two things");
      this.#written.set(event.id, event);
    }
  }

  /** With nothing under way, all that happened is in the journal, and nothing else is. */
  expectComplete(): void {
    const written = [...this.#written.values()].map(({ at, type }) => `${type} ${at}`);
    const happened = this.#happened.map(({ at, type }) => `${type} ${at}`);
    mustEqual(written.toSorted(), happened.toSorted(), "the journal against what happened");
  }
}
