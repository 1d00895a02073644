import { type AgentDocument, profileOf } from "../../src/store/documents.ts";
import { type Refusal, refusal } from "../../src/domain/errors.ts";
import { decimalOf } from "../../src/domain/money.ts";
import { ok, refused, type Result } from "../../src/domain/result.ts";
import type { WholeAnswer } from "../../src/lib/guarded-fetch/exchange.ts";
import { chosenOffer, type Chosen } from "../../src/rails/challenge/protocols/choose.ts";
import type { Offer } from "../../src/rails/challenge/protocols/offer.ts";
import type { ShopRequest } from "../../src/rails/challenge/shops.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import { wrongRecipient } from "./payment-recipients.ts";

const BUSY = "Too many requests to shops are going on; repeat it with the same idempotencyKey.";

export function shopVisits({
  clock,
  purchases,
  shops,
  wallets,
}: Pick<HandlerDependencies, "clock" | "purchases" | "shops" | "wallets">) {
  /** Refuses a request that finds no turn. */
  const busy = ({ organizationId }: AgentDocument): Refusal =>
    refusal("SERVICE_UNAVAILABLE", BUSY, { retryAfterSeconds: shops.retryAfterSeconds(organizationId) });

  return {
    busy,
    isBusy: ({ organizationId }: AgentDocument): boolean => shops.isBusy(organizationId),

    async unpaid(agent: AgentDocument, request: ShopRequest): Promise<Result<WholeAnswer>> {
      const fetched = await shops.fetch(profileOf(agent), request);
      if (fetched === null) return refused(busy(agent));
      if (fetched.kind === "answered") return ok(fetched);
      const { reason, urlProblem } = fetched;
      if (urlProblem === null)
        return refused(
          refusal("SHOP_UNREACHABLE", `The shop gave no answer: ${reason}. This request paid nothing.`),
        );
      const issues = [{ path: "url", message: urlProblem }];
      return refused(refusal("VALIDATION_FAILED", undefined, { issues }));
    },

    /** Returns the shop's offer, up to a maximum price. */
    async offer(
      agent: AgentDocument,
      request: ShopRequest,
      fetched: WholeAnswer,
      maxMc: number,
    ): Promise<Result<Offer>> {
      if (wallets === null || purchases === null)
        return refused(
          refusal("NO_PAYABLE_OFFER", "This service has no chain, so that it can pay no offer of a shop."),
        );
      const { chainId, name, verifyingContract, version } = await wallets.pockets.domain();
      const { tokenDecimals: decimals } = wallets.config;
      const terms = { chainId, token: verifyingContract, decimals, name, version };
      const chosen = chosenOffer({ ...fetched, url: request.url }, terms, maxMc, clock().getTime());
      if (chosen.kind !== "offer") return refused(notChosen(chosen));
      const wrong = wrongRecipient(wallets, agent, chosen.offer.payTo);
      return wrong === null ? ok(chosen.offer) : refused(refusal("NO_PAYABLE_OFFER"));
    },
  };
}

function notChosen(chosen: Exclude<Chosen, { kind: "offer" }>): Refusal {
  if (chosen.kind === "above_max") {
    const price = decimalOf(chosen.leastMc);
    return refusal(
      "PRICE_ABOVE_MAX",
      `The shop asks for ${price} USD, more than maxAmountCents; nothing was paid.`,
    );
  }
  const reasons = chosen.reasons.length === 0 ? "" : ` (${chosen.reasons.slice(0, 3).join("; ")})`;
  return refusal(
    "NO_PAYABLE_OFFER",
    `The shop asks for payment in no way that this wallet can pay${reasons}; nothing was paid.`,
  );
}
