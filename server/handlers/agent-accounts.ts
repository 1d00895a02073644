import type { AgentDocument } from "../../src/store/documents.ts";
import type { AssessedPayment } from "../../src/domain/ledger/pay.ts";
import { NO_RAISE_BASIS } from "../../src/domain/ledger/raises.ts";
import { withUse } from "../../src/domain/ledger/windows.ts";
import { remainingOf } from "../../src/domain/money.ts";
import type { AccountView } from "../../src/messages/ledger.ts";
import { ActorUnavailable } from "../../src/actors/actor-unavailable.ts";
import type { HandlerDependencies } from "./dependencies.ts";

interface Question {
  readonly now: number;
  readonly payment?: AssessedPayment | null;
}

/** Returns an agent's account from the ledger, or from the agent's record if the ledger no longer has one. */
export const accountsOf =
  ({ actors, collections }: Pick<HandlerDependencies, "actors" | "collections">) =>
  async ({ _id: agentId, projectId }: AgentDocument, question: Question): Promise<AccountView> => {
    const account = await actors.account(projectId, { agentId, ...question });
    if (account !== null) return account;
    const recorded = await collections.agents.findOne({ _id: agentId });
    if (recorded?.lifecycle !== "archived") throw new ActorUnavailable("the ledger has no such account");
    return closedAccount(recorded);
  };

/** Returns the account as if this version of its policy were in force. */
export const withPolicy = (
  account: AccountView,
  policy: AccountView["policy"],
  policyVersion: number,
): AccountView => ({
  ...account,
  policy,
  policyVersion,
  remainingCents: remainingOf(policy.budgetCents, account.spentCents + account.reservedCents),
  spendLimits: withUse(policy.spendLimits ?? [], account.spendLimits),
});

/** Remainders of a closed account, which cannot spend any more. */
const NOTHING_SHOWN = { remainingCents: null, spendLimits: [] };

function closedAccount({ policy, policyVersion, reservedCents, spentCents }: AgentDocument): AccountView {
  return {
    status: "closed",
    pausedAt: null,
    policy,
    policyVersion,
    spentCents,
    reservedCents,
    remainingCents: remainingOf(policy.budgetCents, spentCents + reservedCents),
    todayCents: 0,
    lastHourCount: 0,
    todayCount: 0,
    assessment: null,
    shortfalls: [],
    raiseBasis: NO_RAISE_BASIS,
    spendableCents: 0,
    spendLimits: [],
    team: NOTHING_SHOWN,
    project: NOTHING_SHOWN,
  };
}
