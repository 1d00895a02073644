import { actionsOn, AUDIT_ACTIONS, isResourceKind } from "../../src/client/audit-actions.ts";

export interface AuditSearch {
  /** Id of the person, key or agent. */
  readonly actor?: string;
  readonly resourceType?: string;
  readonly resource?: string;
  readonly action?: string;
  /** First and last day, such as 2026-03-29, in the organization's time zone. */
  readonly from?: string;
  readonly to?: string;
}

/** New value of each field; null clears it. */
export type AuditSearchChange = { readonly [K in keyof AuditSearch]?: string | null };

/** Format of ids and names that the service accepts. */
const NAME = /^[A-Za-z0-9_-]{1,100}$/;
const DAY = /^\d{4}-\d\d-\d\d$/;

const ACTIONS: readonly string[] = Object.keys(AUDIT_ACTIONS);

const named = (value: unknown): string | undefined =>
  typeof value === "string" && NAME.test(value) ? value : undefined;
const dayIn = (value: unknown): string | undefined =>
  typeof value === "string" && DAY.test(value) && !Number.isNaN(Date.parse(value)) ? value : undefined;

/**
 * Returns the filters that the pickers can show: an action only on the chosen kind of object, an object only of a
 * chosen kind.
 */
export function auditSearchIn(search: Readonly<Record<string, unknown>>): AuditSearch {
  const [kind, action] = [named(search["resourceType"]), named(search["action"])];
  const resourceType = kind !== undefined && isResourceKind(kind) ? kind : undefined;
  const actions = resourceType === undefined ? ACTIONS : actionsOn(resourceType);
  const found = {
    actor: named(search["actor"]),
    resourceType,
    resource: resourceType === undefined ? undefined : named(search["resource"]),
    action: actions.find((each) => each === action),
    from: dayIn(search["from"]),
    to: dayIn(search["to"]),
  };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined));
}
