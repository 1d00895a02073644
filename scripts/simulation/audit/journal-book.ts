import type { LifecycleEvent, LifecycleEventType } from "../../../src/domain/events.ts";
import { must, mustEqual } from "./violation.ts";

interface Change {
  readonly type: LifecycleEventType;
  readonly at: number;
}

/** What became of an agent itself, and what was told of it: each change once, under an id of its own, in its order. */
export class JournalBook {
  readonly #happened: Change[] = [];
  /** Which of the changes each event's id belongs to. */
  readonly #ids = new Map<string, number>();
  readonly #written = new Map<string, LifecycleEvent>();

  happened(type: LifecycleEventType, at: number): void {
    this.#happened.push({ type, at });
  }

  /** What is still to be told is the end of what happened, and all before it is in the journal. */
  expectOutbox(outbox: readonly LifecycleEvent[]): void {
    const first = this.#happened.length - outbox.length;
    must(first >= 0, "an event for a change that did not happen");
    must(first <= this.#written.size, "an event left the outbox and is not in the journal");
    for (const [index, { at, id, type }] of outbox.entries()) {
      const place = first + index;
      mustEqual({ at, type }, this.#happened[place], "an event against what happened");
      mustEqual(this.#ids.get(id) ?? place, place, "an event's id was given twice: its change");
      this.#ids.set(id, place);
    }
  }

  write(events: readonly LifecycleEvent[]): void {
    for (const event of events) {
      mustEqual(event, this.#written.get(event.id) ?? event, "an event was told as two things");
      this.#written.set(event.id, event);
    }
  }

  /** With nothing under way, all that happened is in the journal, and nothing else is. */
  expectComplete(outbox: readonly LifecycleEvent[]): void {
    mustEqual(outbox.length, 0, "events that stay in the outbox for ever");
    const written = [...this.#written.values()].map(({ at, type }) => `${type} ${at}`);
    const happened = this.#happened.map(({ at, type }) => `${type} ${at}`);
    mustEqual(written, happened, "the journal against what happened");
  }
}
