/** The value at a path of names with dots between them; undefined where there is none. */
export const valueAt = (document: unknown, path: string): unknown =>
  path.includes(".") ? path.split(".").reduce<unknown>(fieldOf, document) : fieldOf(document, path);

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
