import { SHOWN_TRANSACTION_FIELDS } from "../store/documents.ts";
import type { ChangeKind } from "../contract/stream.ts";
import { type BindingFilter, reachOf } from "../domain/binding.ts";
import type { Binding } from "../domain/binding.ts";
import type { Collections } from "../store/collections.ts";
import { conditions } from "../store/newest-reads.ts";
import { budgetView } from "../views/spend-limits.ts";
import { agentView, approvalView, transactionView } from "../views/views.ts";

/** The part of an organization that an event is for. */
interface Audience {
  readonly organizationId: string;
  readonly binding: Binding;
}

/**
 * Returns an event's data: current records in the order in which they changed, or only their ids. Null if no changed
 * record is in the audience's part.
 */
export type EventData = (
  audience: Audience,
  kind: ChangeKind,
  ids: readonly string[],
  more: boolean,
) => Promise<object | null>;

type Records = Pick<Collections, "agents" | "approvals" | "events" | "shownTransactions" | "teams">;

/** Reads all changed records of one kind at once. */
export const eventDataOf =
  (records: Records): EventData =>
  async ({ binding, organizationId }, kind, ids, more) => {
    const { bindingFilter, projects } = reachOf(binding);
    const those = { _id: { $in: [...ids] }, organizationId, ...conditions({ ...bindingFilter }) };
    const part = projects === null ? null : { bindingFilter, projects };
    const found = await foundIn(records, kind, ids, those, part);
    const isEmpty = Object.values(found).every(({ length }) => length === 0);
    return isEmpty && !more && part !== null ? null : { ...found, more };
  };

interface Those {
  readonly _id: { readonly $in: string[] };
  readonly organizationId: string;
}

/** Part of an organization; null for all of it. */
type Part = { readonly bindingFilter: BindingFilter; readonly projects: readonly string[] } | null;

async function foundIn(
  { agents, approvals, events, shownTransactions, teams }: Records,
  kind: ChangeKind,
  ids: readonly string[],
  those: Those,
  part: Part,
): Promise<Readonly<Record<string, readonly unknown[]>>> {
  switch (kind) {
    case "approvals":
      return { approvals: inOrder(ids, await approvals.find(those).toArray()).map(approvalView) };
    case "transactions": {
      const found = await shownTransactions.find(those, { projection: SHOWN_TRANSACTION_FIELDS }).toArray();
      return { transactions: inOrder(ids, found).map(transactionView) };
    }
    case "agents":
      return { agents: inOrder(ids, await agents.find(those).toArray()).map(agentView) };
    case "budgets": {
      const found = inOrder(ids, await events.find(those).toArray());
      return { budgets: found.flatMap(({ data: { budget } }) => budget ?? []).map(budgetView) };
    }
    case "projects":
      return { ids: part === null ? ids : ids.filter((id) => part.projects.includes(id)) };
    case "teams":
      return { ids: part === null ? ids : await teamsAmong(teams, ids, those, part) };
    default:
      return { ids };
  }
}

async function teamsAmong(
  teams: Records["teams"],
  ids: readonly string[],
  { organizationId }: Those,
  { bindingFilter: { projectId, teamId } }: NonNullable<Part>,
): Promise<readonly string[]> {
  if (teamId !== undefined) return ids.filter((id) => teamId.includes(id));
  const within = { _id: { $in: [...ids] }, organizationId, projectId: { $in: [...(projectId ?? [])] } };
  return (await teams.find(within, { projection: { _id: 1 } }).toArray()).map(({ _id }) => _id);
}

function inOrder<T extends { readonly _id: string }>(ids: readonly string[], found: readonly T[]): T[] {
  const byId = new Map(found.map((one) => [one._id, one]));
  return ids.flatMap((id) => byId.get(id) ?? []);
}
