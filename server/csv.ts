/** A cell that a spreadsheet would take for a formula, white space before it or not. */
const FORMULA = /^\s*[=+\-@\t\r]/;

const NEEDS_QUOTES = /[",\r\n]/;

/**
 * A row of a CSV file as RFC 4180 has it, its line's end included. Null is an empty cell. A text that a spreadsheet would run
 * as a formula has an apostrophe before it, which keeps it a text.
 */
export const csvRow = (cells: readonly (string | number | null)[]): string =>
  `${cells.map(cellOf).join(",")}\r\n`;

function cellOf(value: string | number | null): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const text = FORMULA.test(value) ? `'${value}` : value;
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
