import type { Payment } from "../../../src/domain/ledger/payment.ts";
import { PocketKeys } from "../../../src/rails/pocket/pocket-keys.ts";
import { collectionsOf } from "../../../src/store/collections.ts";
import { eventually, newPayment, openScene, sharedChainUrl } from "../../chain/support.ts";
import { shortOrSoak } from "../../support/soak.ts";
import { railKit, type RailScene } from "../kit.ts";
import { steppedChain, steppedDb } from "../steps.ts";

async function walletScene(): Promise<RailScene> {
  const scene = await openScene();
  const agent = await scene.funded(100_000);
  const made: Payment[] = [];
  return {
    rail: scene.open().rail,
    profile: agent.profile,
    payment() {
      const payment = newPayment(100);
      made.push(payment);
      return payment;
    },
    async stepped(steps) {
      const chain = await steppedChain(sharedChainUrl(), steps);
      const { rail } = scene.open({ db: steppedDb(scene.db, steps), rpcUrl: chain.url });
      return { rail, close: () => chain.close() };
    },
    async timesMade({ request }) {
      // A transaction is mined a moment after its hand-over is answered.
      await eventually("all is mined", async () => {
        const [pending, latest] = await Promise.all(
          (["pending", "latest"] as const).map((blockTag) =>
            scene.chain.getTransactionCount({ address: scene.signer.address, blockTag }),
          ),
        );
        return pending === latest;
      });
      const { spent } = await scene.audit([agent], made);
      return spent.get(request.transactionId)?.length ?? 0;
    },
    sources: {
      collections: collectionsOf(scene.db),
      db: scene.db,
      pocketKeys: new PocketKeys(scene.pocketKey),
      env: { EVM_TOKEN_ADDRESS: scene.config.token },
      chainRpcUrl: scene.config.rpcUrl,
    },
    every: shortOrSoak(5, 1),
    close: () => scene.close(),
  };
}

railKit("wallet", walletScene);
