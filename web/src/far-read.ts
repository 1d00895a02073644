/** Maximum pages of a list that are refetched when something in the list may have changed. */
const PAGES_MAX = 4;

/** Whether data is a list with so many pages read that refetching all would take too many requests. */
export function isFarRead(data: unknown): boolean {
  if (typeof data !== "object" || data === null || !("pages" in data)) return false;
  return Array.isArray(data.pages) && data.pages.length > PAGES_MAX;
}
