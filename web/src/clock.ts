import { useSyncExternalStore } from "react";

/** The Date header counts whole seconds; what differs by less is no other clock. */
const SAME_CLOCK_MS = 1_500;

let aheadMs = 0;
let tick = 0;

/** What an answer said of the service's time. */
export function noteServiceTime(now: number | null): void {
  if (now === null) return;
  const differs = now - Date.now();
  if (Math.abs(differs - aheadMs) > SAME_CLOCK_MS) aheadMs = differs;
}

/** How long until then, by the service's clock. */
export const msUntil = (iso: string): number => Date.parse(iso) - Date.now() - aheadMs;

function subscribe(onTick: () => void): () => void {
  const timer = setInterval(() => {
    tick += 1;
    onTick();
  }, 1_000);
  return () => clearInterval(timer);
}

/** Has whoever uses it shown anew each second. */
export const useSeconds = (): number => useSyncExternalStore(subscribe, () => tick);
