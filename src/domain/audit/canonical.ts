/**
 * Canonical form of audit entries: JSON without white space, the fields of every object in the order of their names'
 * UTF-16 units, strings and numbers as in ECMAScript (RFC 8785). Every verifier gets the same bytes from the same
 * content, whatever order it was stored or sent in.
 */
export type AuditValue =
  null | boolean | number | string | readonly AuditValue[] | { readonly [name: string]: AuditValue };

/** Replacement for a value that no entry can hold, such as a database type; equals no text in an entry. */
const FOREIGN = "\u0000";

export const canonicalJson = (value: unknown): string =>
  // V8 serializes an object with ordered fields several times faster than `putInOrder` does.
  isInOrder(value) ? JSON.stringify(value) : putInOrder(value);

/** Whether a value is one that an entry can hold, with all names in order. */
function isInOrder(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return isScalar(value);
  if (Array.isArray(value)) return value.every(isInOrder);
  if (!isPlain(value)) return false;
  let last: string | null = null;
  for (const name of Object.keys(value)) {
    if ((last !== null && name < last) || !isInOrder(value[name])) return false;
    last = name;
  }
  return true;
}

function putInOrder(value: unknown): string {
  if (typeof value !== "object" || value === null) return isScalar(value) ? JSON.stringify(value) : FOREIGN;
  if (Array.isArray(value)) return `[${value.map(putInOrder).join(",")}]`;
  if (!isPlain(value)) return FOREIGN;
  // `toSorted` orders by UTF-16 units.
  const names = Object.keys(value).toSorted();
  return `{${names.map((name) => `${JSON.stringify(name)}:${putInOrder(value[name])}`).join(",")}}`;
}

function isScalar(value: unknown): value is null | boolean | number | string {
  if (typeof value === "number") return Number.isFinite(value);
  return typeof value === "string" || typeof value === "boolean" || value === null;
}

function isPlain(value: object): value is Readonly<Record<string, unknown>> {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/**
 * Converts a value to the form stored in entries: fields without a value are omitted, instants are ISO texts, and
 * strings are well-formed, since the database would replace lone surrogates.
 */
export const auditValue = (value: unknown): AuditValue => (isAuditValue(value) ? value : toAuditValue(value));

/** Narrows without copying: copying each value would cost a payment more than its hash. */
function isAuditValue(value: unknown): value is AuditValue {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value !== "object" || value === null) return isScalar(value);
  if (Array.isArray(value)) return value.every(isAuditValue);
  return (
    isPlain(value) && Object.keys(value).every((name) => name.isWellFormed() && isAuditValue(value[name]))
  );
}

function toAuditValue(value: unknown): AuditValue {
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return value.toWellFormed();
  if (typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (value instanceof Date) return Number.isFinite(value.getTime()) ? value.toISOString() : String(value);
  if (Array.isArray(value)) return value.map(toAuditValue);
  if (typeof value !== "object") return null;
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return Object.fromEntries(fields.map(([name, field]) => [name.toWellFormed(), toAuditValue(field)]));
}
