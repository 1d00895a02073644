import { refusal } from "../../src/domain/errors.ts";
import { ok, refused } from "../../src/domain/result.ts";
import { newId } from "../../src/lib/ids.ts";
import { TimeoutError, withTimeout } from "../../src/lib/with-timeout.ts";
import { ChainUnreachable } from "../../src/chain/rpc.ts";
import type { FundingDocument, Fundings } from "../../src/rails/wallet/fundings.ts";
import { profileOf } from "../../src/store/documents.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

/** Time the response waits for the chain. A funding not settled by then is followed up later. */
const SETTLEMENT_WAIT_MS = 3_000;

export const notFundable = () =>
  refusal("NOT_FOUND", "There is no wallet to fund, or no treasury to fund it from.");

export function fundingHandlers({ wallets }: HandlerDependencies): Pick<Handlers, "fundAgent"> {
  return {
    async fundAgent({ body: { amountCents, idempotencyKey = null } }, { audit, target: agent }) {
      const profile = profileOf(agent);
      if (agent.wallet === null || wallets === null || !(await wallets.fundings.isPossible(profile)))
        return refused(notFundable());
      const { fundings } = wallets;
      if (agent.lifecycle === "archived") return refused(refusal("AGENT_ARCHIVED"));
      await audit.begin({ before: null, after: { amountCents } });
      const begun = await fundings.beginFor({ _id: newId("fnd"), profile, amountCents, idempotencyKey });
      if (begun.kind === "reused") return refused(refusal("IDEMPOTENCY_KEY_REUSED"));
      if (begun.kind === "begun") audit.change(null, { amountCents });
      const body = { funding: fundingView(await advanced(fundings, begun.funding)) };
      return ok(begun.kind === "repeated" ? { status: 200 as const, body } : { body });
    },
  };
}

/** Returns the funding once the chain has settled it, or its state when the wait ends. */
async function advanced(fundings: Fundings, funding: FundingDocument): Promise<FundingDocument> {
  try {
    return await withTimeout(SETTLEMENT_WAIT_MS, fundings.advance(funding, SETTLEMENT_WAIT_MS));
  } catch (error) {
    if (error instanceof TimeoutError || error instanceof ChainUnreachable) return funding;
    throw error;
  }
}

const fundingView = ({
  _id,
  amountCents,
  createdAt,
  failure,
  onChain,
  profile,
  settledAt,
  status,
}: FundingDocument) => ({
  id: _id,
  agentId: profile.agentId,
  amountCents,
  currency: "USD" as const,
  status,
  failureCode: failure?.code ?? null,
  failureReason: failure?.reason ?? null,
  onChainTxHash: onChain?.txHash ?? null,
  chainCaip2: onChain?.chainCaip2 ?? null,
  createdAt: createdAt.toISOString(),
  settledAt: settledAt?.toISOString() ?? null,
});
