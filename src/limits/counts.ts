/** Store of request counts. Keys contain their minute, so counts are never reset, but dropped some time later. */
export interface Counts {
  /**
   * Adds to a key's count and returns the new one atomically: concurrent calls get different numbers. Beyond the limit,
   * any number above it may be returned.
   */
  add(key: string, points: number, limit: number): Promise<number>;
  /** Returns the current count without adding. */
  read(key: string, limit: number): Promise<number>;
}

/** A minute and a half: a server whose clock is up to half a minute behind still finds the count of its minute. */
export const COUNT_RETENTION_SECONDS = 90;
