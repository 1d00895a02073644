/** Fields of a form, including nested fields and lists as in `a[b][0]=1`. */
export interface Fields {
  readonly [name: string]: string | Fields;
}

interface OpenFields {
  [name: string]: string | OpenFields;
}

export function fieldsOf(form: string): Fields {
  const fields: OpenFields = Object.create(null);
  for (const [name, value] of new URLSearchParams(form)) {
    const path = name.split(/\]\[|\[|\]/).filter((part, at) => at === 0 || part !== "");
    const last = path.pop() ?? name;
    let into = fields;
    for (const part of path) {
      const next = into[part];
      const found: OpenFields = typeof next === "object" ? next : Object.create(null);
      into[part] = found;
      into = found;
    }
    into[last] = value;
  }
  return fields;
}

/** Returns a list's items; empty for anything else. */
export const itemsOf = (value: string | Fields | undefined): readonly (string | Fields)[] =>
  typeof value === "object" ? Object.values(value) : [];

export const textsOf = (value: string | Fields | undefined): Readonly<Record<string, string>> =>
  typeof value === "object"
    ? Object.fromEntries(
        Object.entries(value).filter((pair): pair is [string, string] => typeof pair[1] === "string"),
      )
    : {};
