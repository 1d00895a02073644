import { readFileSync } from "node:fs";

/** Milliseconds in a tick of Linux's accounting. */
const TICK_MS = 10;

export interface ProcessorTime {
  readonly ownMs: number;
  /** Of its children that have ended, and of theirs. */
  readonly childrenMs: number;
}

/** The processor time that a process has used since it began. Where the kernel doesn't tell, or it is gone: none. */
export function processorTime(pid: number | "self" = "self"): ProcessorTime {
  try {
    const stat = readFileSync(`/proc/${String(pid)}/stat`, "utf8");
    // The second field is the command's name in parentheses, which may hold spaces.
    const fields = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .map(Number);
    const [own, ownSystem, children, childrenSystem] = fields.slice(11, 15);
    return {
      ownMs: ((own ?? 0) + (ownSystem ?? 0)) * TICK_MS,
      childrenMs: ((children ?? 0) + (childrenSystem ?? 0)) * TICK_MS,
    };
  } catch {
    return { ownMs: 0, childrenMs: 0 };
  }
}
