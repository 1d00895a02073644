/**
 * The canonical form of audit entries (docs/audit-log.md): JSON without white space, the fields of every object in the order
 * of their names' UTF-16 units, strings and numbers as ECMAScript writes them (RFC 8785). The same content gives the same
 * bytes to everybody who checks it, whatever order it was stored or sent in.
 */
export type AuditValue =
  null | boolean | number | string | readonly AuditValue[] | { readonly [name: string]: AuditValue };

/** What no entry can hold, such as a type of the database's own: it must not pass for any text that an entry can. */
const FOREIGN = "\u0000";

export const canonicalJson = (value: unknown): string =>
  // What comes in that order, as each payment's entry does, V8 writes several times as fast as it is put together here.
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

/** What is kept as it is. Most of it is: a copy of it all would cost each payment more than its hash does. */
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
