/**
 * The canonical form of audit entries (docs/audit-log.md): JSON without white space, the fields of every object in the order
 * of their names' UTF-16 units, strings and numbers as ECMAScript writes them (RFC 8785). The same content gives the same
 * bytes to everybody who checks it, whatever order it was stored or sent in.
 */
export type AuditValue =
  null | boolean | number | string | readonly AuditValue[] | { readonly [name: string]: AuditValue };

/** What no entry can hold, such as a type of the database's own: it must not pass for any text that an entry can. */
const FOREIGN = "\u0000";

export function canonicalJson(value: unknown): string {
  if (value === null || typeof value !== "object") return scalar(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (!isPlain(value)) return FOREIGN;
  // Each payment's entry comes by here: texts are put together as they come, and `toSorted` by itself is by UTF-16 units.
  let fields = "";
  for (const name of Object.keys(value).toSorted()) {
    fields += `${fields === "" ? "" : ","}${JSON.stringify(name)}:${canonicalJson(value[name])}`;
  }
  return `{${fields}}`;
}

function isPlain(value: object): value is Readonly<Record<string, unknown>> {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function scalar(value: unknown): string {
  if (typeof value === "number") return Number.isFinite(value) ? JSON.stringify(value) : FOREIGN;
  if (value === null || typeof value === "boolean" || typeof value === "string") return JSON.stringify(value);
  return FOREIGN;
}

/**
 * A value as an entry keeps it: fields without a value are left out, instants are ISO texts, and no string has half a
 * character, which the database would keep as another.
 */
export function auditValue(value: unknown): AuditValue {
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return value.toWellFormed();
  if (typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return value.map(auditValue);
  if (typeof value !== "object") return null;
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return Object.fromEntries(fields.map(([name, field]) => [name.toWellFormed(), auditValue(field)]));
}
