import type { AgentLifecycle } from "../../src/domain/agent/state.ts";
import { ok } from "../../src/domain/result.ts";
import type { EqualityFilter } from "../../src/store/newest-reads.ts";
import { conditions } from "../../src/store/newest-reads.ts";
import { mostSpecificScope } from "../../src/identity/most-specific-scope.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

/** Timeout for reading agents in MongoDB: ten thousand take about 30 ms. */
const READ_TIMEOUT_MS = 2_500;

interface Sums {
  readonly count: number;
  readonly budgetCents: number;
  readonly spentCents: number;
  readonly reservedCents: number;
}
const NONE: Sums = { count: 0, budgetCents: 0, spentCents: 0, reservedCents: 0 };

export function agentSummaryHandlers({
  collections,
  reads,
}: HandlerDependencies): Pick<Handlers, "summarizeAgents"> {
  async function sumsIn(scope: EqualityFilter): Promise<(state: AgentLifecycle) => Sums> {
    const found = await collections.agents
      .aggregate<Sums & { readonly _id: AgentLifecycle }>(
        [
          { $match: conditions(scope) },
          {
            $group: {
              _id: "$lifecycle",
              count: { $sum: 1 },
              budgetCents: { $sum: "$policy.budgetCents" },
              spentCents: { $sum: "$spentCents" },
              reservedCents: { $sum: "$reservedCents" },
            },
          },
        ],
        { maxTimeMS: READ_TIMEOUT_MS },
      )
      .toArray();
    return (state) => found.find(({ _id }) => _id === state) ?? NONE;
  }

  return {
    async summarizeAgents({ query }, { principal: { organizationId }, target: { bindingFilter } }) {
      const scope = await mostSpecificScope(collections, organizationId, query, bindingFilter);
      const of = scope === null ? () => NONE : await reads.run(() => sumsIn(scope), organizationId);
      const [active, paused] = [of("active"), of("paused")];
      return ok({
        body: {
          counts: { active: active.count, paused: paused.count, archived: of("archived").count },
          budgetCents: active.budgetCents + paused.budgetCents,
          spentCents: active.spentCents + paused.spentCents,
          reservedCents: active.reservedCents + paused.reservedCents,
        },
      });
    },
  };
}
