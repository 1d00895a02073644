import { readdirSync, readFileSync } from "node:fs";

/** Milliseconds in a tick of Linux's accounting. */
const TICK_MS = 10;

export interface ProcessorTime {
  readonly ownMs: number;
  /** Of its children that have ended, and of theirs. */
  readonly childrenMs: number;
}

/** The processor time that a process has used since it began. Where the kernel doesn't tell, or it is gone: none. */
export function processorTime(pid: number | "self" = "self"): ProcessorTime {
  const { childrenMs, ownMs } = accountOf(pid);
  return { ownMs, childrenMs };
}

/** The same of a process and all below it, those that run and those that have ended. */
export function treeMs(pid: number): number {
  const running = pids().map((each) => ({ pid: each, ...accountOf(each) }));
  const of = (one: number): number => {
    const { childrenMs, ownMs } = accountOf(one);
    const children = running.filter(({ parent }) => parent === one);
    return children.reduce((sum, child) => sum + of(child.pid), ownMs + childrenMs);
  };
  return of(pid);
}

function pids(): number[] {
  try {
    return readdirSync("/proc").map(Number).filter(Number.isInteger);
  } catch {
    return [];
  }
}

function accountOf(pid: number | "self"): ProcessorTime & { readonly parent: number } {
  try {
    const stat = readFileSync(`/proc/${String(pid)}/stat`, "utf8");
    // The second field is the command's name in parentheses, which may hold spaces.
    const fields = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .map(Number);
    const [own, ownSystem, children, childrenSystem] = fields.slice(11, 15);
    return {
      parent: fields[1] ?? 0,
      ownMs: ((own ?? 0) + (ownSystem ?? 0)) * TICK_MS,
      childrenMs: ((children ?? 0) + (childrenSystem ?? 0)) * TICK_MS,
    };
  } catch {
    return { parent: 0, ownMs: 0, childrenMs: 0 };
  }
}
