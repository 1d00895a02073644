/** Text without special meaning to any reader, whatever separator it uses. */
const PLAIN = /^[0-9A-Za-z_][0-9A-Za-z_.:+-]*$/;

/** Positions at which a reader with another separator may begin a cell, quoted or not. */
const AFTER_SEPARATOR = /(?<=[;\t\r\n])/;

/** White space, invisible and control characters, and quotes, all of which spreadsheets may skip. */
const PASSED_OVER = /^[\s"\p{White_Space}\p{Default_Ignorable_Code_Point}\p{C}]*/u;

const FORMULA = /^[=+\-@]/;

/**
 * Returns a row of a CSV file (RFC 4180), including its line end. Null is an empty cell. Text that a spreadsheet would
 * run as a formula gets a leading apostrophe, which keeps it text. So does text after a semicolon, tab or line end:
 * many languages' spreadsheets split cells there, and quotes inside what they take for one cell do not prevent the
 * split.
 */
export const csvRow = (cells: readonly (string | number | null)[]): string =>
  `${cells.map(cellOf).join(",")}\r\n`;

function cellOf(value: string | number | null): string {
  if (value === null || value === "") return "";
  if (typeof value === "number") return String(value);
  return PLAIN.test(value) ? value : `"${inert(value).replaceAll('"', '""')}"`;
}

/** Adds an apostrophe wherever a spreadsheet may see the beginning of a formula. */
function inert(text: string): string {
  const [first = "", ...rest] = text.split(AFTER_SEPARATOR);
  const parts = [first, ...rest.map((part) => (isFormula(part) ? `'${part}` : part))];
  return `${isFormula(text) || isIndented(text) ? "'" : ""}${parts.join("")}`;
}

const passedOver = (text: string): string => PASSED_OVER.exec(text)?.[0] ?? "";

/** Whether text begins a formula. Full-width and other forms of the signs count as signs (NFKC). */
function isFormula(text: string): boolean {
  const sign = text.codePointAt(passedOver(text).length);
  return sign !== undefined && FORMULA.test(String.fromCodePoint(sign).normalize("NFKC"));
}

const isIndented = (text: string): boolean => /[\t\r]/.test(passedOver(text));
