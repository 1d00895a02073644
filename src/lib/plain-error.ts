/** An error whose message tells a person in a line what is wrong and what to do: it is shown without a stack trace. */
export class PlainError extends Error {
  override readonly name: string = "PlainError";
}

/** What a person is shown of an error: of a plain one its message, of a defect where it happened. */
export function shownOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error instanceof PlainError ? error.message : (error.stack ?? error.message);
}

/** The first line of an error's message. */
export const firstLineOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).split("\n")[0] ?? "";
