/**
 * The canonical form of audit entries (docs/audit-log.md): JSON without white space, the fields of every object in the order
 * of their names' UTF-16 units, strings and numbers as ECMAScript writes them (RFC 8785). The same content gives the same
 * bytes to everybody who checks it, whatever order it was stored or sent in.
 */
export type AuditValue =
  null | boolean | number | string | readonly AuditValue[] | { readonly [name: string]: AuditValue };

/** Replacement for a value that no entry can hold, such as a database type; no text of an entry equals it. */
const FOREIGN = "\u0000";

export const canonicalJson = (value: unknown): string =>
  // V8 serializes an object whose fields are in order several times faster than `putInOrder` does.
  isInOrder(value) ? JSON.stringify(value) : putInOrder(value);

/** Whether it is nothing but what an entry can hold, all names in their order. */
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
  // `toSorted` by itself is by UTF-16 units.
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
 * A value as an entry keeps it: fields without a value are left out, instants are ISO texts, and no string has half a
 * character, which the database would keep as another.
 */
export const auditValue = (value: unknown): AuditValue => (isAuditValue(value) ? value : toAuditValue(value));

/** Narrows without copying: a copy of each value would cost a payment more than its hash. */
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
