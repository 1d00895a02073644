import { rail as rails } from "../../src/contract/records.ts";
import { ok } from "../../src/domain/result.ts";
import type { Usage } from "../../src/containers/container-budgets.ts";
import { newest } from "../../src/store/lists.ts";
import { SHOWN_TRANSACTION_FIELDS } from "../../src/store/documents.ts";
import { transactionView } from "../../src/views/views.ts";
import { agentsIn } from "./agent-records.ts";
import { awaitFlush } from "../../src/actors/catch-up.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

const LAST_PAYMENTS = 10;

export function approvalContextHandlers({
  collections,
  containerBudgets,
  ledgers,
}: HandlerDependencies): Pick<Handlers, "getApprovalContext"> {
  const current = agentsIn(collections);

  return {
    async getApprovalContext(
      _input,
      { target: { agentId, amountCents, createdAt, projectId, state, teamId } },
    ) {
      await awaitFlush(ledgers.flush({ projectId }, agentId));
      const [agent, { project, team }, lastPayments] = await Promise.all([
        current(agentId),
        containerBudgets.levels(projectId, teamId),
        newest(
          {
            collection: collections.shownTransactions,
            equals: { agentId, rail: rails.options },
            until: createdAt,
            projection: SHOWN_TRANSACTION_FIELDS,
          },
          LAST_PAYMENTS,
        ),
      ]);
      const { policy, reservedCents, spentCents } = agent;
      const remainingCents = Math.max(0, policy.budgetCents - spentCents - reservedCents);
      const freedCents = state === "pending" ? amountCents : 0;
      return ok({
        body: {
          agent: levelOf(policy.budgetCents, { spentCents, reservedCents, remainingCents }, freedCents),
          team: levelOf(team.capCents, team.usage, freedCents),
          project: levelOf(project.capCents, project.usage, freedCents),
          lastPayments: lastPayments.map(transactionView),
        },
      });
    },
  };
}

/**
 * Returns a level's usage. `freedCents`: amount that a denial would release. It does not add to the remainder as long
 * as usage exceeds a lowered limit.
 */
function levelOf(
  limitCents: number | null,
  { remainingCents, reservedCents, spentCents }: Usage,
  freedCents: number,
) {
  const remainingIfDeniedCents =
    limitCents === null ? null : Math.max(0, limitCents - spentCents - reservedCents + freedCents);
  return { limitCents, spentCents, reservedCents, remainingCents, remainingIfDeniedCents };
}
