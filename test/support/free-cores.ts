import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { treeMs } from "./processor-time.ts";

/** Milliseconds in a tick of Linux's accounting. */
const TICK_MS = 10;
/** Of which idle, and waiting for a disk. */
const IDLE_FIELDS = [3, 4];
/** User, nice, system, idle, waiting, interrupts twice, and what other machines on the same host took. */
const FIELDS = 8;

/** The processor time that was used on all cores since the machine started; null where the kernel doesn't tell. */
function machineMs(): number | null {
  try {
    const [line = ""] = readFileSync("/proc/stat", "utf8").split("\n");
    const ticks = line
      .split(/ +/)
      .slice(1, FIELDS + 1)
      .map(Number);
    const used = ticks.filter((_, index) => !IDLE_FIELDS.includes(index));
    return TICK_MS * used.reduce((sum, each) => sum + each, 0);
  } catch {
    return null;
  }
}

/** How many cores this process and all that it has started have to themselves. */
export class FreeCores {
  readonly #cores = availableParallelism();
  #last = this.#look();
  #free = this.#cores;

  #look(): { readonly at: number; readonly othersMs: number } | null {
    const used = machineMs();
    return used === null ? null : { at: performance.now(), othersMs: used - treeMs(process.pid) };
  }

  /** As a share of the cores, 0 to 1: measured since the last call, of which half is what it was before. */
  share(): number {
    const before = this.#last;
    this.#last = this.#look();
    if (before === null || this.#last === null) return 1;
    const others = (this.#last.othersMs - before.othersMs) / (this.#last.at - before.at);
    const free = Math.min(this.#cores, Math.max(0, this.#cores - others));
    this.#free = (this.#free + free) / 2;
    return this.#free / this.#cores;
  }
}
