import { randomUUID } from "node:crypto";
import { getAddress } from "viem";
import { caip2Of } from "../../activities/chain/config.ts";
import { refusal } from "../../src/domain/errors.ts";
import { ok, refused } from "../../src/domain/result.ts";
import { cardLedgerEntryView } from "../views.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import { profileOf } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

/** Test money, and the sandbox processor's books. */
export function sandboxHandlers(
  dependencies: HandlerDependencies,
): Pick<Handlers, "fundAgentInSandbox" | "listCardLedger"> {
  const { collections, lists, wallets } = dependencies;
  return {
    async fundAgentInSandbox({ body: { amountCents } }, { target: agent }) {
      const wallet = agent.wallet ?? null;
      const sandbox = wallets?.sandbox ?? null;
      if (wallets === null || sandbox === null || wallet === null) return refused(refusal("NOT_FOUND"));
      // A wallet from before, on a chain that is no sandbox, would not see the money.
      if (wallet.chainCaip2 !== caip2Of(wallets.place.chainId)) return refused(refusal("NOT_FOUND"));
      if (agent.lifecycle === "archived") return refused(refusal("AGENT_ARCHIVED"));
      const minted = await sandbox.mint(randomUUID(), getAddress(wallet.address), amountCents);
      const balance = await wallets.rail.balance(profileOf(agent));
      if (minted === null || balance.kind !== "cents") {
        const message = "The chain does not answer; the money may still arrive.";
        return refused(refusal("SERVICE_UNAVAILABLE", message, { retryAfterSeconds: 1 }));
      }
      return ok({ body: { balanceCents: balance.cents, onChainTxHash: minted.hash } });
    },

    async listCardLedger({ query: { cursor, limit } }, { principal: { organizationId } }) {
      // The card sandbox is the only card processor there is until another one can be set up.
      const collection = collections.cardLedger;
      const page = await lists.page({
        collection,
        list: "entries",
        filter: { organizationId },
        limit,
        cursor,
      });
      if (!page.ok) return page;
      const { items, nextCursor } = page.value;
      return ok({ body: { entries: items.map(cardLedgerEntryView), nextCursor } });
    },
  };
}
