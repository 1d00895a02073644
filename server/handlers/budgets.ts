import type { ContainerUsage } from "../../src/containers/container-budgets.ts";
import type { ShownSpendLimit, SpendLimit } from "../../src/domain/ledger/windows.ts";
import { ok, type Result } from "../../src/domain/result.ts";
import { increasesView, spendLimitsView } from "../../src/views/spend-limits.ts";
import type { AuditNotes } from "../../src/audit/notes.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

type BudgetHandlers = Pick<
  Handlers,
  "getProjectBudget" | "setProjectBudget" | "getTeamBudget" | "setTeamBudget"
>;

export function budgetHandlers({ containerBudgets }: HandlerDependencies): BudgetHandlers {
  return {
    getProjectBudget: async (_input, { target }) =>
      ok({ body: budgetView(await containerBudgets.ofProject(target)) }),
    getTeamBudget: async (_input, { target }) =>
      ok({ body: budgetView(await containerBudgets.ofTeam(target)) }),
    async setProjectBudget({ body: sent }, { audit, target }) {
      const body = withoutUse(sent);
      const replacing = replace(
        () => containerBudgets.ofProject(target),
        () => containerBudgets.replaceProject(target, body),
        { audit, body },
      );
      return answer(await replacing);
    },
    async setTeamBudget({ body: sent }, { audit, target }) {
      const body = withoutUse(sent);
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
  readonly spendLimits: readonly SpendLimit[];
}

/** Replaces a budget and records its old and new value in the audit log. A replacement increments the version. */
async function replace<T extends Budget>(
  read: () => Promise<T>,
  execute: () => Promise<Result<T>>,
  { audit, body }: { readonly audit: AuditNotes; readonly body: SentBudget },
): Promise<Result<T>> {
  const before = await read();
  // Versions only grow: a stale one is refused for whatever reason comes first, and its body is recorded nowhere.
  const isBehind = body.version < before.version;
  const after = { ...body, version: body.version + 1, spendLimits: body.spendLimits ?? amountsOf(before) };
  if (!isBehind) await audit.begin({ before: withoutUsage(before), after });
  const replaced = await execute();
  if (replaced.ok) {
    // Only the named version is replaced, with exactly the body. `before` may be a different version if it was read
    // late.
    const isBefore = before.version === body.version;
    audit.change(isBefore ? withoutUsage(before) : null, after);
  }
  return replaced;
}

interface SentBudget {
  readonly version: number;
  readonly spendLimits?: readonly SpendLimit[] | undefined;
}

const withoutUse = <B extends SentBudget>(body: B) => ({
  ...body,
  spendLimits: body.spendLimits === undefined ? undefined : amountsOf({ spendLimits: body.spendLimits }),
});

const amountsOf = ({ spendLimits }: Pick<Budget, "spendLimits">): readonly SpendLimit[] =>
  spendLimits.map(({ limitCents, period }) => ({ period, limitCents }));

const withoutUsage = ({ usage: _usage, ...budget }: Budget): object => ({
  ...budget,
  spendLimits: amountsOf(budget),
});

const budgetView = <T extends Shown>(budget: T) => ({
  ...budget,
  spendLimits: spendLimitsView(budget.spendLimits),
  usage: { ...budget.usage, increases: increasesView(budget.usage.increases) },
});

interface Shown {
  readonly spendLimits: readonly ShownSpendLimit[];
  readonly usage: ContainerUsage;
}

const answer = <T extends Shown>(result: Result<T>) =>
  result.ok ? ok({ body: budgetView(result.value) }) : result;
