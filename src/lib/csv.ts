/** Text that has no special meaning to any reader, whatever it splits cells at. */
const PLAIN = /^[0-9A-Za-z_][0-9A-Za-z_.:+-]*$/;

/** Positions at which a reader with another separator may begin a cell, quotes or not. */
const AFTER_SEPARATOR = /(?<=[;\t\r\n])/;

/** White space, invisible and control characters, and quotes, all of which spreadsheets may pass over. */
const PASSED_OVER = /^[\s"\p{White_Space}\p{Default_Ignorable_Code_Point}\p{C}]*/u;

const FORMULA = /^[=+\-@]/;

/**
 * A row of a CSV file as RFC 4180 has it, its line's end included. Null is an empty cell. A text that a spreadsheet would run
 * as a formula has an apostrophe before it, which keeps it a text. So has what follows a semicolon, a tab or a line's end in a
 * text: where a spreadsheet splits cells at those, as it does in many languages, quotes inside of what it takes for one cell
 * don't keep it from beginning another.
 */
export const csvRow = (cells: readonly (string | number | null)[]): string =>
  `${cells.map(cellOf).join(",")}\r\n`;

function cellOf(value: string | number | null): string {
  if (value === null || value === "") return "";
  if (typeof value === "number") return String(value);
  return PLAIN.test(value) ? value : `"${inert(value).replaceAll('"', '""')}"`;
}

/** The text with an apostrophe wherever a spreadsheet may see the beginning of a formula. */
function inert(text: string): string {
  const [first = "", ...rest] = text.split(AFTER_SEPARATOR);
  const parts = [first, ...rest.map((part) => (isFormula(part) ? `'${part}` : part))];
  return `${isFormula(text) || isIndented(text) ? "'" : ""}${parts.join("")}`;
}

const passedOver = (text: string): string => PASSED_OVER.exec(text)?.[0] ?? "";

/** Full-width and other forms of the signs are signs (NFKC). */
function isFormula(text: string): boolean {
  const sign = text.codePointAt(passedOver(text).length);
  return sign !== undefined && FORMULA.test(String.fromCodePoint(sign).normalize("NFKC"));
}

const isIndented = (text: string): boolean => /[\t\r]/.test(passedOver(text));
