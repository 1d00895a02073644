import { isDeepStrictEqual } from "node:util";

/** A contradiction between the service and the books. */
export class Violation extends Error {
  override readonly name = "Violation";
}

export function must(holds: boolean, complaint: string | (() => string)): asserts holds {
  if (!holds) throw new Violation(typeof complaint === "string" ? complaint : complaint());
}

/** Compares plain data by what it says, whatever the order of its fields. */
export function mustEqual(actual: unknown, expected: unknown, complaint: string): void {
  // Writing both down costs much more than finding them the same, as they nearly always are.
  if (Object.is(actual, expected) || isDeepStrictEqual(actual, expected)) return;
  const [is, should] = [said(actual), said(expected)];
  if (is !== should) throw new Violation(`${complaint}: ${is} instead of ${should}`);
}

/** Compares whole states: what is undefined and what is not there are two things. */
export function mustBeSame(actual: unknown, expected: unknown, complaint: string): void {
  if (isDeepStrictEqual(actual, expected)) return;
  throw new Violation(`${complaint}: ${firstDifference(actual, expected)}`);
}

/** The path to the first part that differs, and what it is on either side. */
function firstDifference(actual: unknown, expected: unknown, path = ""): string {
  const [is, should] = [partsOf(actual), partsOf(expected)];
  if (is !== null && should !== null) {
    for (const key of new Set([...is.keys(), ...should.keys()])) {
      if (isDeepStrictEqual(is.get(key), should.get(key)) && is.has(key) === should.has(key)) continue;
      return firstDifference(is.get(key), should.get(key), `${path}/${String(key)}`);
    }
  }
  return `${path} is ${said(actual)} instead of ${said(expected)}`;
}

function partsOf(value: unknown): Map<unknown, unknown> | null {
  if (value instanceof Map) return value;
  return typeof value === "object" && value !== null ? new Map(Object.entries(value)) : null;
}

const said = (value: unknown): string =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? JSON.stringify(Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))))
    : JSON.stringify(value ?? null);
