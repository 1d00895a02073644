/** Returns the value at a dotted path; undefined if there is none. */
export const valueAt = (document: unknown, path: string): unknown =>
  path.includes(".") ? path.split(".").reduce<unknown>(fieldOf, document) : fieldOf(document, path);

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
