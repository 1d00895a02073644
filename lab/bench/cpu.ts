import { readFile } from "node:fs/promises";
import { cpus } from "node:os";

/** USER_HZ is 100 on every Linux that Node runs on. */
const TICK_MS = 10;

/** Processor time in milliseconds, by the name of the process; null where the system does not tell (no /proc). */
export type CpuMs = Readonly<Record<string, number | null>>;

/** The whole machine's, under the name of a process. */
const MACHINE = "machine";

async function processMs(pid: number | null): Promise<number | null> {
  if (pid === null) return null;
  try {
    const stat = await readFile(`/proc/${String(pid)}/stat`, "utf8");
    // The name in parentheses may hold anything; utime and stime are the 12th and 13th field behind it.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  } catch {
    return null;
  }
}

async function machineMs(): Promise<number | null> {
  try {
    const [total = ""] = (await readFile("/proc/stat", "utf8")).split("\n", 1);
    const [user, nice, system, , , irq, softirq] = total.split(/\s+/).slice(1).map(Number);
    return [user, nice, system, irq, softirq].reduce<number>((sum, ticks) => sum + (ticks ?? 0), 0) * TICK_MS;
  } catch {
    return null;
  }
}

/** Processor time used so far by each process, and by the whole machine. */
export async function readCpu(pids: Readonly<Record<string, number | null>>): Promise<CpuMs> {
  const entries = Object.entries(pids).map(async ([name, pid]) => [name, await processMs(pid)] as const);
  return Object.fromEntries([...(await Promise.all(entries)), [MACHINE, await machineMs()]]);
}

export const cpuUsed = (before: CpuMs, after: CpuMs): CpuMs =>
  Object.fromEntries(
    Object.entries(after).map(([name, at]) => {
      const from = before[name] ?? null;
      return [name, at === null || from === null ? null : at - from];
    }),
  );

/** The part of the machine that went to processes other than those measured, 0 to 1; NaN where unknown. */
export function shareOfOthers(used: CpuMs, seconds: number): number {
  const { [MACHINE]: machine = null, ...processes } = used;
  if (machine === null) return Number.NaN;
  const ours = Object.values(processes).reduce<number>((sum, ms) => sum + (ms ?? 0), 0);
  return Math.max(0, machine - ours) / (seconds * 1_000 * cpus().length);
}
