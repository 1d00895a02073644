import { readFile } from "node:fs/promises";

/** Processor time of a process so far, in milliseconds; null where the system does not tell (no /proc). */
export async function cpuMsOf(pid: number | null | undefined): Promise<number | null> {
  if (pid === null || pid === undefined) return null;
  try {
    const stat = await readFile(`/proc/${String(pid)}/stat`, "utf8");
    // The name in parentheses may hold anything; utime and stime are the 12th and 13th field behind it.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  } catch {
    return null;
  }
}

/** USER_HZ is 100 on every Linux that Node runs on. */
const TICK_MS = 10;

/** Who used how much, by name; the difference of two readings. */
export type CpuMs = Readonly<Record<string, number | null>>;

export async function cpuMs(pids: Readonly<Record<string, number | null>>): Promise<CpuMs> {
  const entries = Object.entries(pids).map(async ([name, pid]) => [name, await cpuMsOf(pid)] as const);
  return Object.fromEntries(await Promise.all(entries));
}

export const cpuUsed = (before: CpuMs, after: CpuMs): CpuMs =>
  Object.fromEntries(
    Object.entries(after).map(([name, at]) => {
      const from = before[name] ?? null;
      return [name, at === null || from === null ? null : at - from];
    }),
  );
