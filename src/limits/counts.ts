/**
 * Store of request counts. Keys contain their minute, so a count is never reset; it is dropped some time after its
 * minute.
 */
export interface Counts {
  /**
   * Adds to a key's count and answers the new one, in one step: of any number at once, each gets another. Beyond the
   * limit it may answer any number beyond it.
   */
  add(key: string, points: number, limit: number): Promise<number>;
  /** The count as it is, nothing added. */
  read(key: string, limit: number): Promise<number>;
}

/** A minute and a half: a server whose clock is up to half a minute behind still finds the count of its minute. */
export const COUNT_RETENTION_SECONDS = 90;
