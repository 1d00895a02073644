/**
 * Guards of commands between versions: an actor and its callers may be of different ones. Payloads are authenticated, so
 * this service made every command. A guard refuses fields, variants and words that its version does not know, and what
 * lacks a field. Apart from amounts, it leaves values to the contract, the rails and the domain.
 */
export type Guard<T> = (value: unknown) => value is T;

interface Optional<T> {
  readonly optional: Guard<T>;
}

type Field<T, K extends keyof T> =
  Partial<Pick<T, K>> extends Pick<T, K> ? Optional<Exclude<T[K], undefined>> : Guard<T[K]>;

/** A guard for each field of a record; the compiler reports missing ones. */
type Shape<T> = { readonly [K in keyof T]-?: Field<T, K> };

type Fields = Readonly<Record<string, unknown>>;

export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const isFlag: Guard<boolean> = (value) => typeof value === "boolean";

export const isNumber: Guard<number> = (value) => typeof value === "number";

/** Amounts, counts, times, revisions: safe integers, 0 or more, so that sums stay exact. */
export const isCount: Guard<number> = (value): value is number =>
  isNumber(value) && Number.isSafeInteger(value) && value >= 0;

export const isText: Guard<string> = (value) => typeof value === "string";

export const isOneOf =
  <const T extends string>(values: readonly T[]): Guard<T> =>
  (value): value is T =>
    values.some((one) => one === value);

export const orNull =
  <T>(guard: Guard<T>): Guard<T | null> =>
  (value): value is T | null =>
    value === null || guard(value);

export const optional = <T>(guard: Guard<T>): Optional<T> => ({ optional: guard });

export const isArrayOf =
  <T>(item: Guard<T>): Guard<readonly T[]> =>
  (value): value is readonly T[] =>
    Array.isArray(value) && value.every(item);

export const isPairOf =
  <A, B>(first: Guard<A>, second: Guard<B>): Guard<readonly [A, B]> =>
  (value): value is readonly [A, B] =>
    Array.isArray(value) && value.length === 2 && first(value[0]) && second(value[1]);

export const either =
  <T>(...guards: readonly Guard<T>[]): Guard<T> =>
  (value): value is T =>
    guards.some((guard) => guard(value));

/** A record with exactly these fields: unknown ones are neither kept nor silently ignored. */
export function isRecord<T>(shape: Shape<T>): Guard<T> {
  const hasFields = fieldsOf(shape);
  return (value): value is T => isFields(value) && hasFields(value, 0);
}

export const isVariant = <T extends Readonly<Record<K, string>>, K extends string>(
  tag: K,
  shapes: Variants<T, K>,
): Guard<T> => {
  const guards = variantsOf(shapes);
  return (value): value is T => {
    if (!isFields(value)) return false;
    const name = value[tag];
    return typeof name === "string" && guards.get(name)?.(value, 1) === true;
  };
};

type Variants<T extends Readonly<Record<K, string>>, K extends string> = {
  readonly [V in T[K]]: Shape<Omit<Extract<T, Readonly<Record<K, V>>>, K>>;
};

type HasFields = (value: Fields, others: number) => boolean;

const variantsOf = (shapes: Readonly<Record<string, object>>): ReadonlyMap<string, HasFields> =>
  new Map(Object.entries(shapes).map(([name, shape]) => [name, fieldsOf(shape)]));

/** Returns a check that a value has the shape's fields and, besides them, `others` fields that were checked before. */
function fieldsOf(shape: object): HasFields {
  const fields = Object.entries(shape).map(([name, field]: [string, unknown]) => {
    if (typeof field === "function") return { name, guard: field, isOptional: false };
    const guard = isFields(field) ? field["optional"] : null;
    if (typeof guard !== "function") throw new Error(`the field ${name} has no guard`);
    return { name, guard, isOptional: true };
  });
  return (value, others) => {
    let known = others;
    for (const { guard, isOptional, name } of fields) {
      const given = value[name];
      if (given === undefined && isOptional) continue;
      if (guard(given) !== true) return false;
      known += 1;
    }
    return Object.keys(value).length === known;
  };
}
