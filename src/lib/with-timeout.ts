import type { Unavailable } from "./unavailable.ts";

/** The timeout passed. The work may still complete. */
export class TimeoutError extends Error implements Unavailable {
  override readonly name = "TimeoutError";
  readonly isUnavailable = true;
}

/** Resolves to the work's outcome, or throws `TimeoutError` after `ms`; the work goes on, its late failure ignored. */
export async function withTimeout<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const bound = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new TimeoutError(`not within ${Math.round(ms)} ms`)), Math.max(0, ms));
  });
  try {
    return await Promise.race([work, bound]);
  } finally {
    clearTimeout(timer);
  }
}
