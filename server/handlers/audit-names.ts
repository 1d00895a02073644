import type { Collection, Document } from "mongodb";
import type { z } from "zod";
import { type AuditReference, referencesIn } from "../../src/client/audit-changes.ts";
import type { auditName } from "../../src/contract/records.ts";
import type { AuditEntry } from "../../src/domain/audit/entry.ts";
import type { HandlerDependencies } from "./dependencies.ts";

type Name = z.input<typeof auditName>;
type Named = Pick<AuditEntry, "actor" | "after" | "before" | "decision" | "resource">;

/** Maximum records named in one response. A page has at most 200 entries, so their actors and resources always fit. */
const NAMED_MAX = 1_000;

/** Returns a reader of the current names of all records in some entries, with one query for each kind of record. */
export function auditNamesIn({ collections, webhooks }: HandlerDependencies) {
  const { agents, approvals, invites, organizationKeys, projects, teams, transactions, users } = collections;
  const payment = { recipient: 1, amountCents: 1 } as const;
  const readers: Readonly<Record<string, Reader>> = {
    agent: reader(agents, { name: 1 }, ({ name }) => name),
    approval: reader(approvals, payment, ({ recipient }) => recipient),
    invite: reader(invites, { email: 1 }, ({ email }) => email),
    organization_key: reader(organizationKeys, { name: 1 }, ({ name }) => name),
    project: reader(projects, { name: 1 }, ({ name }) => name),
    team: reader(teams, { name: 1 }, ({ name }) => name),
    transaction: reader(transactions, payment, ({ recipient }) => recipient),
    user: reader(users, { name: 1 }, ({ name }) => name),
    webhook_endpoint: reader(webhooks.collections.endpoints, { name: 1 }, ({ name }) => name),
  };

  async function organizationName(organizationId: string): Promise<readonly Name[]> {
    const found = await collections.organizations.findOne({ _id: organizationId });
    return found === null
      ? []
      : [{ type: "organization", id: organizationId, name: found.name, amountCents: null }];
  }

  return async (organizationId: string, entries: readonly Named[]): Promise<Name[]> => {
    const wanted = idsByType(entries);
    const found = await Promise.all(
      [...wanted].map(async ([type, ids]) => {
        if (type === "organization")
          return ids.has(organizationId) ? await organizationName(organizationId) : [];
        const names = (await readers[type]?.(organizationId, [...ids])) ?? [];
        return names.map((name) => ({ type, ...name }));
      }),
    );
    return found.flat();
  };
}

type Reader = (organizationId: string, ids: readonly string[]) => Promise<readonly Omit<Name, "type">[]>;

interface Owned extends Document {
  readonly _id: string;
  readonly organizationId: string;
}

/** Reads only the organization's own records. Any other stays unnamed, whatever an entry says. */
function reader<T extends Owned>(
  collection: Collection<T>,
  projection: Readonly<Record<string, 1>>,
  nameOf: (record: T) => string,
): Reader;
function reader(
  collection: Collection<Owned>,
  projection: Readonly<Record<string, 1>>,
  nameOf: (record: Owned) => string,
): Reader {
  return async (organizationId, ids) => {
    const records = await collection
      .find({ _id: { $in: [...ids] }, organizationId }, { projection })
      .toArray();
    const byId = new Map(records.map((record) => [record._id, record]));
    return ids.map((id) => {
      const record = byId.get(id);
      const amountCents: unknown = record?.["amountCents"];
      return {
        id,
        name: record === undefined ? null : nameOf(record),
        amountCents: typeof amountCents === "number" ? amountCents : null,
      };
    });
  };
}

/** Returns ids of the entries' actors and resources, then of the records in their changes, up to the maximum. */
function idsByType(entries: readonly Named[]): ReadonlyMap<string, ReadonlySet<string>> {
  const first = entries.flatMap(({ actor, resource }): AuditReference[] => [
    { type: actor.type, id: actor.id },
    ...(resource.id === null ? [] : [{ type: resource.type, id: resource.id }]),
  ]);
  const further = entries.flatMap(({ after, before, decision }) => referencesIn([before, after, decision]));
  const ids = new Map<string, Set<string>>();
  let count = 0;
  for (const { id, type } of [...first, ...further]) {
    const ofType = ids.get(type) ?? new Set<string>();
    if (ofType.has(id)) continue;
    if (count === NAMED_MAX) break;
    ids.set(type, ofType.add(id));
    count += 1;
  }
  return ids;
}
