/**
 * Guards that check the type of values from Temporal. A client with access to Temporal can write to it, and a newer
 * server may send what an older worker does not know. Hand-written for speed, since they run in workflows on each
 * payload.
 */
export type Guard<T> = (value: unknown) => value is T;

export interface Optional<T> {
  readonly optional: Guard<T>;
}

type Field<T, K extends keyof T> =
  Partial<Pick<T, K>> extends Pick<T, K> ? Optional<Exclude<T[K], undefined>> : Guard<T[K]>;

/** A guard for each field of a record; the compiler reports missing ones. */
export type Shape<T> = { readonly [K in keyof T]-?: Field<T, K> };

type Fields = Readonly<Record<string, unknown>>;

/** Maximum of a `Date`'s epoch milliseconds. */
const TIME_MAX_MS = 8_640_000_000_000_000;

/** Maximum id length; longer than any id of this service. */
const ID_CHARACTERS_MAX = 200;

/** C0 and DEL, except tab and line ends. Each is stored as six bytes, for which an actor's state has no room. */
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/;

/** Property names that every object inherits: as keys they would be found without having been set. */
const INHERITED: ReadonlySet<string> = new Set(Object.getOwnPropertyNames(Object.prototype));

export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const isFlag: Guard<boolean> = (value) => typeof value === "boolean";

export const isInteger: Guard<number> = (value): value is number => Number.isSafeInteger(value);

/** Cents, counts, versions, revisions: 0 or more. */
export const isCount: Guard<number> = (value): value is number => isInteger(value) && value >= 0;

/** Epoch milliseconds that a `Date` can represent. */
export const isTime: Guard<number> = (value): value is number => isCount(value) && value <= TIME_MAX_MS;

export const isAtMost =
  (max: number): Guard<number> =>
  (value): value is number =>
    isCount(value) && value <= max;

/** Id of a record, usable as a key in an actor's state. */
export const isId: Guard<string> = (value): value is string =>
  typeof value === "string" &&
  value.length > 0 &&
  value.length <= ID_CHARACTERS_MAX &&
  !INHERITED.has(value) &&
  !CONTROL.test(value);

/** Well-formed text of at most `max` code points, without control characters, so that its size is bounded. */
export const isText =
  (max: number): Guard<string> =>
  (value): value is string =>
    typeof value === "string" &&
    (value.length <= max || (value.length <= 2 * max && Array.from(value).length <= max)) &&
    !CONTROL.test(value) &&
    value.isWellFormed();

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
  <T>(item: Guard<T>, max: number): Guard<readonly T[]> =>
  (value): value is readonly T[] =>
    Array.isArray(value) && value.length <= max && value.every(item);

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

export type Variants<T extends Readonly<Record<K, string>>, K extends string> = {
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
