import { cpus } from "node:os";

interface Ticks {
  readonly idle: number;
  readonly all: number;
}

function ticks(): Ticks {
  const times = cpus().map((core) => core.times);
  const idle = times.reduce((sum, core) => sum + core.idle, 0);
  const all = times.reduce(
    (sum, { idle: own, irq, nice, sys, user }) => sum + own + irq + nice + sys + user,
    0,
  );
  return { idle, all };
}

/** Answers which share of this machine's cores had nothing to do since it was asked last, or made. */
export function idleCores(): () => number {
  let last = ticks();
  return () => {
    const now = ticks();
    const [idle, all] = [now.idle - last.idle, now.all - last.all];
    last = now;
    return all === 0 ? 0 : idle / all;
  };
}
