/** The change recorded by an audit entry, field by field. */

type Fields = Readonly<Record<string, unknown>>;

export interface AuditReference {
  readonly type: string;
  readonly id: string;
}

export interface AuditField {
  readonly field: string;
  readonly value: AuditValue;
}

export type AuditValue =
  | { readonly kind: "none" }
  | { readonly kind: "hidden" }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "number"; readonly value: number }
  | { readonly kind: "flag"; readonly value: boolean }
  | { readonly kind: "money"; readonly cents: number }
  | { readonly kind: "span"; readonly seconds: number }
  | { readonly kind: "time"; readonly iso: string }
  | { readonly kind: "reference"; readonly of: AuditReference }
  | { readonly kind: "rule"; readonly rule: Fields }
  | { readonly kind: "group"; readonly fields: readonly AuditField[] };

export interface AuditChange {
  /** Name of the field, after the names of those that contain it. */
  readonly path: readonly string[];
  /** The list element to which the field belongs; null for the entry itself. */
  readonly of: AuditReference | null;
  /** Old values; for a list, the removed ones. Empty if unknown or absent. */
  readonly was: readonly AuditValue[];
  /** New values; for a list, the added ones. Empty if the field was removed. */
  readonly is: readonly AuditValue[];
}

/** Kinds of records, keyed by the fields that contain their ids. */
const REFERENCES: Readonly<Record<string, string>> = {
  agentId: "agent",
  active: "agent",
  paused: "agent",
  teamId: "team",
  projectId: "project",
  notStopped: "project",
  approvalId: "approval",
  transactionId: "transaction",
  userId: "user",
  revokedOrganizationKeys: "organization_key",
  keptOrganizationKeys: "organization_key",
};
const SCOPES: readonly unknown[] = ["agent", "project", "team"];
const ORGANIZATION_KEY = /^okey_/;

/** Fields that identify an element of a list. */
const IDENTITIES = ["agentId", "teamId", "id", "keyId"] as const;

/** Incremented by every change, so not a change by themselves. */
const COUNTERS: ReadonlySet<string> = new Set(["version", "revision"]);

/** Fields hidden by name, as a precaution: the log contains no secrets. */
const SECRET = /secret|password|token/i;
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns the record whose id a field contains; null if the field has no id, or the record has no name. */
function referenceIn(field: string, id: unknown, parent: Fields): AuditReference | null {
  if (typeof id !== "string") return null;
  const { scopeType, type } = parent;
  if (field === "scopeIds" && SCOPES.includes(scopeType)) return { type: String(scopeType), id };
  if (field === "id" && SCOPES.includes(type)) return { type: String(type), id };
  if (field === "id" && typeof parent["decision"] === "string") return { type: "approval", id };
  if (field === "keyId" && ORGANIZATION_KEY.test(id)) return { type: "organization_key", id };
  const known = Object.hasOwn(REFERENCES, field) ? REFERENCES[field] : undefined;
  return known === undefined ? null : { type: known, id };
}

export function referencesIn(value: unknown, field = "", parent: Fields = {}): readonly AuditReference[] {
  if (Array.isArray(value)) return value.flatMap((each) => referencesIn(each, field, parent));
  if (isFields(value))
    return Object.entries(value).flatMap(([name, each]) => referencesIn(each, name, value));
  const found = referenceIn(field, value, parent);
  return found === null ? [] : [found];
}

/** Returns all differences between an entry's sides. A created record has no old values, a removed one no new ones. */
export const changesOf = (before: unknown, after: unknown): readonly AuditChange[] =>
  fieldChanges(fieldsOf(before), fieldsOf(after), { path: [], of: null });

/** Returns the facts of a decision on a payment, without nulls. A limit is an amount, unless it counts payments. */
export function decisionFacts(decision: unknown): readonly AuditChange[] {
  const { details, ...facts } = fieldsOf(decision);
  const { limit, remaining, ...others } = fieldsOf(details);
  const unit = String(facts["code"]).includes("VELOCITY") ? "" : "Cents";
  const counted = isFields(details)
    ? { [`limit${unit}`]: limit, [`remaining${unit}`]: remaining, ...others }
    : null;
  const all = changesOf(null, { ...facts, details: counted });
  return all.filter(({ is }) => is.some(({ kind }) => kind !== "none"));
}

const fieldsOf = (value: unknown): Fields => (isFields(value) ? value : {});

type Place = Pick<AuditChange, "path" | "of">;

function fieldChanges(before: Fields, after: Fields, place: Place): readonly AuditChange[] {
  const isRoot = place.path.length === 0 && place.of === null;
  const names = [...new Set([...Object.keys(after), ...Object.keys(before)])];
  return names
    .filter((name) => !(isRoot && COUNTERS.has(name)))
    .flatMap((name) => {
      const inner = { ...place, path: [...place.path, name] };
      const sides = { was: sideOf(before, name), is: sideOf(after, name) };
      return valueChanges(sides, inner);
    });
}

interface Side {
  readonly parent: Fields;
  /** Undefined if the field is missing. */
  readonly value: unknown;
}
const sideOf = (parent: Fields, name: string): Side => ({
  parent,
  value: Object.hasOwn(parent, name) ? parent[name] : undefined,
});

interface Sides {
  readonly was: Side;
  readonly is: Side;
}

function valueChanges({ is, was }: Sides, place: Place): readonly AuditChange[] {
  if (textOf(was.value) === textOf(is.value)) return [];
  const field = place.path.at(-1) ?? "";
  const isShown = !SECRET.test(field);
  if (isShown && Array.isArray(was.value) && Array.isArray(is.value))
    return listChanges(field, { was, is }, place);
  if (isShown && isPlain(was.value) && isPlain(is.value))
    return fieldChanges(fieldsOf(was.value), fieldsOf(is.value), place);
  return [{ ...place, was: valuesOf(field, was), is: valuesOf(field, is) }];
}

/** Whether a value is shown by its fields, or is missing. */
const isPlain = (value: unknown): boolean =>
  value === undefined || (isFields(value) && shownFields(value).kind === "group");

/** Returns each element of a list separately; an empty list counts as a value. */
function valuesOf(field: string, { parent, value }: Side): readonly AuditValue[] {
  if (value === undefined) return [];
  if (Array.isArray(value) && value.length > 0) return value.map((each) => shownOf(field, each, parent));
  return [shownOf(field, value, parent)];
}

/** Returns the added and removed elements. A record that stayed is shown by its changed fields. */
function listChanges(field: string, { is, was }: Sides, place: Place): readonly AuditChange[] {
  const [before, after] = [listOf(was.value), listOf(is.value)];
  const removed = without(before, after);
  const added = without(after, before);
  const ordered = { ...place, was: valuesOf(field, was), is: valuesOf(field, is) };
  // The elements are equal, so their order has changed.
  if (removed.length === 0 && added.length === 0) return [ordered];
  const stayed = removed.flatMap((old) => {
    const of = identityOf(old);
    const now = of === null ? undefined : added.find((each) => textOf(identityOf(each)) === textOf(of));
    return of === null || now === undefined ? [] : [{ of, old, now }];
  });
  const own = {
    ...place,
    was: shownAll(
      field,
      without(
        removed,
        stayed.map(({ old }) => old),
      ),
      was.parent,
    ),
    is: shownAll(
      field,
      without(
        added,
        stayed.map(({ now }) => now),
      ),
      is.parent,
    ),
  };
  return [
    ...(own.was.length + own.is.length === 0 ? [] : [own]),
    ...stayed.flatMap(({ now, of, old }) =>
      fieldChanges(fieldsOf(old), fieldsOf(now), { path: place.path, of }),
    ),
  ];
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const shownAll = (field: string, values: readonly unknown[], parent: Fields): readonly AuditValue[] =>
  values.map((each) => shownOf(field, each, parent));

/** Returns the record that a list element is about. */
function identityOf(element: unknown): AuditReference | null {
  if (!isFields(element)) return null;
  const name = IDENTITIES.find((each) => typeof element[each] === "string");
  return name === undefined ? null : referenceIn(name, element[name], element);
}

/** Returns a list's elements minus those of another; each of the latter removes one equal element. */
function without(list: readonly unknown[], other: readonly unknown[]): readonly unknown[] {
  const left = new Map<string, number>();
  for (const each of other) left.set(textOf(each), (left.get(textOf(each)) ?? 0) + 1);
  return list.filter((each) => {
    const count = left.get(textOf(each)) ?? 0;
    left.set(textOf(each), count - 1);
    return count <= 0;
  });
}

/** Returns the same text for equal values, whatever the order of their fields. `undefined` differs from null. */
const textOf = (value: unknown): string =>
  value === undefined
    ? ""
    : JSON.stringify(value, (_name, each: unknown) =>
        isFields(each) ? Object.fromEntries(Object.entries(each).toSorted(byName)) : each,
      );
const byName = ([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number =>
  one < other ? -1 : 1;

function shownOf(field: string, value: unknown, parent: Fields): AuditValue {
  if (value === null || value === undefined) return { kind: "none" };
  if (SECRET.test(field)) return { kind: "hidden" };
  if (Array.isArray(value))
    return { kind: "group", fields: value.map((each) => ({ field, value: shownOf(field, each, parent) })) };
  if (isFields(value)) return shownFields(value);
  if (typeof value === "boolean") return { kind: "flag", value };
  if (typeof value === "number") {
    if (field.endsWith("Cents")) return { kind: "money", cents: value };
    return field.endsWith("Seconds") ? { kind: "span", seconds: value } : { kind: "number", value };
  }
  const of = referenceIn(field, value, parent);
  if (of !== null) return { kind: "reference", of };
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return INSTANT.test(text) ? { kind: "time", iso: text } : { kind: "text", text };
}

function shownFields(value: Fields): AuditValue {
  const { id, params, type } = value;
  if (typeof type === "string" && isFields(params)) return { kind: "rule", rule: value };
  const of = referenceIn("id", id, value);
  if (of !== null && typeof type === "string") return { kind: "reference", of };
  return {
    kind: "group",
    fields: Object.entries(value).map(([field, each]) => ({ field, value: shownOf(field, each, value) })),
  };
}
