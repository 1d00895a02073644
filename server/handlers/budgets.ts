import { within } from "../../activities/within.ts";
import { ok, type Result } from "../../src/domain/result.ts";
import type { AuditNotes } from "../audit/notes.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

type BudgetHandlers = Pick<
  Handlers,
  "getProjectBudget" | "setProjectBudget" | "getTeamBudget" | "setTeamBudget"
>;

/** How long an answer may take, whatever is down; a replacement that was decided by then is carried through all the same. */
const ANSWERED_MS = 4_400;

/** Budgets of projects and teams (management-api.md sections 2.7 and 4.2, decisions.md section 4). */
export function budgetHandlers({ containerBudgets }: HandlerDependencies): BudgetHandlers {
  return {
    getProjectBudget: async (_input, { target }) =>
      ok({ body: await within(ANSWERED_MS, containerBudgets.ofProject(target)) }),
    getTeamBudget: async (_input, { target }) =>
      ok({ body: await within(ANSWERED_MS, containerBudgets.ofTeam(target)) }),
    async setProjectBudget({ body }, { audit, target }) {
      const replacing = replace(
        () => containerBudgets.ofProject(target),
        () => containerBudgets.replaceProject(target, body),
        audit,
      );
      return answer(await within(ANSWERED_MS, replacing));
    },
    async setTeamBudget({ body }, { audit, target }) {
      const replacing = replace(
        () => containerBudgets.ofTeam(target),
        () => containerBudgets.replaceTeam(target, body),
        audit,
      );
      return answer(await within(ANSWERED_MS, replacing));
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
  carryOut: () => Promise<Result<T>>,
  audit: AuditNotes,
): Promise<Result<T>> {
  const before = await read();
  const replaced = await carryOut();
  if (replaced.ok) {
    // Somebody else's replacement may have come between.
    const isBefore = before.version === replaced.value.version - 1;
    audit.change(isBefore ? withoutUsage(before) : null, withoutUsage(replaced.value));
  }
  return replaced;
}

const withoutUsage = ({ usage: _usage, ...budget }: Budget): object => budget;

const answer = <T>(result: Result<T>): Result<{ readonly body: T }> =>
  result.ok ? ok({ body: result.value }) : result;
