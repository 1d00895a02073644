/** An error whose message tells a person in one line what is wrong and what to do. Shown without a stack trace. */
export class PlainError extends Error {
  override readonly name: string = "PlainError";
}

/** Returns the text for a person: a plain error's message, or a defect's location. */
export function shownOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error instanceof PlainError ? error.message : (error.stack ?? error.message);
}

export const firstLineOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).split("\n")[0] ?? "";
