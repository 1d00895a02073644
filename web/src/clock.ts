import { useSyncExternalStore } from "react";

/** Maximum difference that is not another clock, since the Date header has whole seconds. */
const CLOCK_TOLERANCE_MS = 1_500;

let aheadMs = 0;
let tick = 0;

export function noteServiceTime(now: number | null): void {
  if (now === null) return;
  const differs = now - Date.now();
  if (Math.abs(differs - aheadMs) > CLOCK_TOLERANCE_MS) aheadMs = differs;
}

/** Returns the time until an instant, by the service's clock. */
export const msUntil = (iso: string): number => Date.parse(iso) - Date.now() - aheadMs;

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

/** Subscribes to the single timer of all components that show time. */
function subscribe(onTick: () => void): () => void {
  listeners.add(onTick);
  timer ??= setInterval(() => {
    tick += 1;
    for (const listener of listeners) listener();
  }, 1_000);
  return () => {
    listeners.delete(onTick);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** Renders the calling component again each second. */
export const useSeconds = (): number => useSyncExternalStore(subscribe, () => tick);

/** Whether a time has come, by the service's clock. Renders the calling component again once it has. */
export const useIsOver = (iso: string): boolean => useSyncExternalStore(subscribe, () => msUntil(iso) <= 0);
