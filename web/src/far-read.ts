/** Pages of a list that are read again when something in it may have changed. */
const PAGES_MAX = 4;

/** Whether it is a list of which so many pages were read that reading them all again would cost too many requests. */
export function isFarRead(data: unknown): boolean {
  if (typeof data !== "object" || data === null || !("pages" in data)) return false;
  return Array.isArray(data.pages) && data.pages.length > PAGES_MAX;
}
