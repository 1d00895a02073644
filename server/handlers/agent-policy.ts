import { type AgentDocument, profileOf } from "../../src/store/documents.ts";
import { awaitFlush } from "../../src/actors/catch-up.ts";
import { refusal } from "../../src/domain/errors.ts";
import { patchPolicy } from "../../src/domain/ledger/policy.ts";
import { ok, refused } from "../../src/domain/result.ts";
import { newUuid } from "../../src/lib/ids.ts";
import { definedFields } from "../../src/store/lists.ts";
import { budgetPolicyView } from "../../src/views/views.ts";
import { accountsOf, withPolicy } from "./agent-accounts.ts";
import { agentsFollowing } from "./agent-records.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import { notFundable } from "./fundings.ts";
import type { Handlers } from "./types.ts";

export function agentPolicyHandlers(
  dependencies: HandlerDependencies,
): Pick<Handlers, "getAgentBudgetPolicy" | "updateAgentBudgetPolicy"> {
  const { clock, collections, ledgers, wallets } = dependencies;
  const following = agentsFollowing(collections, ledgers);
  const accountOf = accountsOf(dependencies);

  async function budgetPolicy(agent: AgentDocument) {
    await awaitFlush(ledgers.flush(agent, agent._id));
    const account = await accountOf(agent, { now: clock().getTime() });
    return ok({ body: { ...budgetPolicyView(account), walletTargetCents: await targetOf(agent) } });
  }

  const targetOf = async ({ _id }: AgentDocument) => (await wallets?.targets.of(_id)) ?? null;

  /**
   * Returns an agent's policy, at least as new as `version` if that is in force: the record may briefly be behind the
   * ledger.
   */
  const policyFor = async (
    agent: AgentDocument,
    version: number,
  ): Promise<Pick<AgentDocument, "policy" | "policyVersion">> =>
    agent.policyVersion >= version ? agent : accountOf(agent, { now: clock().getTime() });

  return {
    getAgentBudgetPolicy: (_input, { target }) => budgetPolicy(target),

    async updateAgentBudgetPolicy({ body: { version, walletTargetCents, ...fields } }, { audit, target }) {
      const patch = definedFields(fields);
      const isTargetSet = walletTargetCents !== undefined;
      if (isTargetSet && (wallets === null || !(await wallets.fundings.isPossible(profileOf(target)))))
        return refused(notFundable());
      const targeted = isTargetSet ? { walletTargetCents } : {};
      const targetBefore = isTargetSet ? { walletTargetCents: await targetOf(target) } : {};
      const requestId = newUuid();
      const command = { kind: "change_policy", agentId: target._id, patch, version, requestId } as const;
      const known = await policyFor(target, version);
      // The ledger changes only the version named. Versions only grow, so nothing is begun for an older one.
      if (known.policyVersion <= version) {
        const before = known.policyVersion === version ? known.policy : null;
        await audit.begin({
          before: { ...before, ...targetBefore, version },
          after: {
            ...(before === null ? patch : patchPolicy(before, patch)),
            ...targeted,
            version: version + 1,
          },
        });
      }
      const { reply, revision } = await ledgers.submitRecorded(target, command);
      if (reply.kind === "no_account") return refused(refusal("AGENT_ARCHIVED"));
      if (reply.kind === "version_conflict") return refused(refusal("VERSION_CONFLICT"));
      if (reply.kind !== "policy") throw new Error(`a ledger answered ${reply.kind} to a policy`);
      const { policy, policyVersion } = reply;
      if (isTargetSet) await wallets?.targets.set(profileOf(target), walletTargetCents, policyVersion);
      audit.change(
        { ...reply.before, ...targetBefore, version },
        { ...policy, ...targeted, version: policyVersion },
      );
      await following(target, revision);
      await awaitFlush(ledgers.flush(target, target._id));
      // The policy as this call decided it: a later change by another caller must not be attributed to this one.
      const account = await accountOf(target, { now: clock().getTime() });
      const view = budgetPolicyView(withPolicy(account, policy, policyVersion));
      return ok({ body: { ...view, walletTargetCents: await targetOf(target) } });
    },
  };
}
