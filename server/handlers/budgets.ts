import { ok, type Result } from "../../src/domain/result.ts";
import type { AuditNotes } from "../../src/audit/notes.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

type BudgetHandlers = Pick<
  Handlers,
  "getProjectBudget" | "setProjectBudget" | "getTeamBudget" | "setTeamBudget"
>;

/** Budgets of projects and teams. */
export function budgetHandlers({ containerBudgets }: HandlerDependencies): BudgetHandlers {
  return {
    getProjectBudget: async (_input, { target }) => ok({ body: await containerBudgets.ofProject(target) }),
    getTeamBudget: async (_input, { target }) => ok({ body: await containerBudgets.ofTeam(target) }),
    async setProjectBudget({ body }, { audit, target }) {
      const replacing = replace(
        () => containerBudgets.ofProject(target),
        () => containerBudgets.replaceProject(target, body),
        { audit, body },
      );
      return answer(await replacing);
    },
    async setTeamBudget({ body }, { audit, target }) {
      const replacing = replace(
        () => containerBudgets.ofTeam(target),
        () => containerBudgets.replaceTeam(target, body),
        { audit, body },
      );
      return answer(await replacing);
    },
  };
}

interface Budget {
  readonly version: number;
  readonly usage: unknown;
}

/** Replaces a budget, and says for the audit log what it was and is. A replacement raises the version by one. */
async function replace<T extends Budget>(
  read: () => Promise<T>,
  execute: () => Promise<Result<T>>,
  { audit, body }: { readonly audit: AuditNotes; readonly body: { readonly version: number } },
): Promise<Result<T>> {
  const before = await read();
  // Versions only grow: one that is behind is refused, for the reason that comes first, and its body is written nowhere.
  const isBehind = body.version < before.version;
  if (!isBehind)
    await audit.begin({ before: withoutUsage(before), after: { ...body, version: body.version + 1 } });
  const replaced = await execute();
  if (replaced.ok) {
    // Only the version that was named is replaced, and only as the body says; what is read afterwards may be the next one's.
    const isBefore = before.version === body.version;
    audit.change(isBefore ? withoutUsage(before) : null, { ...body, version: body.version + 1 });
  }
  return replaced;
}

const withoutUsage = ({ usage: _usage, ...budget }: Budget): object => budget;

const answer = <T>(result: Result<T>): Result<{ readonly body: T }> =>
  result.ok ? ok({ body: result.value }) : result;
