import { randomUUID } from "node:crypto";
import { getAddress } from "viem";
import { caip2Of } from "../../src/chain/config.ts";
import { centsOf } from "../../src/chain/units.ts";
import { refusal } from "../../src/domain/errors.ts";
import { ok, refused } from "../../src/domain/result.ts";
import { newId } from "../../src/lib/ids.ts";
import { billingPaymentView, cardLedgerEntryView } from "../../src/views/views.ts";
import { profileOf } from "../../src/store/documents.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

const DECLINED = "The card on file was declined.";

export function sandboxHandlers(
  dependencies: HandlerDependencies,
): Pick<Handlers, "depositToTreasury" | "failBilling" | "fundAgentInSandbox" | "listCardLedger"> {
  const { clock, collections, journal, lists, wallets } = dependencies;
  return {
    async fundAgentInSandbox({ body: { amountCents } }, { audit, target: agent }) {
      const wallet = agent.wallet ?? null;
      const sandbox = wallets?.sandbox ?? null;
      if (wallets === null || sandbox === null || wallet === null) return refused(refusal("NOT_FOUND"));
      // A wallet created earlier on a chain that is not a sandbox would not see the money.
      if (wallet.chainCaip2 !== caip2Of(wallets.config.chainId)) return refused(refusal("NOT_FOUND"));
      if (agent.lifecycle === "archived") return refused(refusal("AGENT_ARCHIVED"));
      await audit.begin({ before: null, after: { amountCents } });
      const minted = await sandbox.mint(randomUUID(), getAddress(wallet.address), amountCents);
      if (minted !== null) audit.change(null, { amountCents });
      const balance = await wallets.rail.balance(profileOf(agent));
      if (minted === null || balance.kind !== "cents") return refused(mayStillArrive());
      return ok({ body: { balanceCents: balance.cents, onChainTxHash: minted.hash } });
    },

    async depositToTreasury({ body: { amountCents } }, { audit, principal: { organizationId } }) {
      const sandbox = wallets?.sandbox ?? null;
      if (wallets === null || sandbox === null) return refused(refusal("NOT_FOUND"));
      const { config, rpc, treasuries } = wallets;
      const treasury = await treasuries.of(organizationId);
      if (treasury === null) return refused(refusal("NOT_FOUND"));
      await audit.begin({ before: null, after: { amountCents } });
      const minted = await sandbox.mint(randomUUID(), treasury, amountCents);
      if (minted === null) return refused(mayStillArrive());
      audit.change(null, { amountCents });
      const units = await rpc.balanceAt(treasury, "latest").catch(() => null);
      if (units === null) return refused(mayStillArrive());
      const balanceCents = centsOf(units, config.tokenDecimals);
      const at = { address: treasury, chainCaip2: caip2Of(config.chainId) };
      return ok({ body: { treasury: at, balanceCents, onChainTxHash: minted.hash } });
    },

    async failBilling(_input, { audit, principal: { organizationId } }) {
      // No failure is simulated if wallets hold real money.
      if ((wallets?.sandbox ?? null) === null) return refused(refusal("NOT_FOUND"));
      const organization = await collections.organizations.findOne({ _id: organizationId });
      if (organization === null) throw new Error("a caller's organization has lost its record");
      await audit.begin({ before: null, after: null });
      const failedAt = clock();
      const payment = { id: newId("pay"), plan: organization.plan, reason: DECLINED, failedAt };
      await journal.organizationEvent(organizationId, {
        _id: `evt_${payment.id}_billing.payment_failed`,
        type: "billing.payment_failed",
        createdAt: failedAt,
        data: { payment },
      });
      return ok({ body: { payment: billingPaymentView(payment) } });
    },

    async listCardLedger({ query: { cursor, limit } }, { principal: { organizationId } }) {
      // The card sandbox is currently the only card processor that keeps a ledger.
      const collection = collections.cardLedger;
      const page = await lists.page({
        collection,
        list: "entries",
        filters: { organizationId },
        equals: { organizationId },
        limit,
        cursor,
      });
      if (!page.ok) return page;
      const { items, nextCursor } = page.value;
      return ok({ body: { entries: items.map(cardLedgerEntryView), nextCursor } });
    },
  };
}

const mayStillArrive = () =>
  refusal("SERVICE_UNAVAILABLE", "The chain does not answer; the money may still arrive.", {
    retryAfterSeconds: 1,
  });
