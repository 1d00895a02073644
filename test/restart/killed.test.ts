import type { ServiceProcess } from "../support/process.ts";
import { isSoak, someOrAll } from "../support/soak.ts";
import { capsAtHand } from "./killed/caps.ts";
import { createsToForget, createsToReplay } from "./killed/creates.ts";
import { keysAtHand } from "./killed/keys.ts";
import { paymentsAtHand } from "./killed/payments.ts";
import {
  KILLED_PURCHASES_ENV,
  purchasesAtHand,
  purchasesKilledAgainAndAgain,
  STEPS,
} from "./killed/purchases.ts";
import { restartCrashing, startCrashing } from "./support/crashing.ts";

/** Windows that no restart outlasts, of approvals and of the deliveries of first keys. */
const LONG_WINDOWS = { APPROVAL_WINDOW_SECONDS: "600", KEY_DELIVERY_WINDOW_SECONDS: "600" };
/** Windows that end about when the service is back, or before. */
const SHORT_WINDOWS = { APPROVAL_WINDOW_SECONDS: "12", KEY_DELIVERY_WINDOW_SECONDS: "5" };

/** Work of one kind that is under way when the service is killed. */
interface AtHand {
  begin(service: ServiceProcess): Promise<unknown>;
  /** Begins work that would hold up the other kinds. */
  beginLast?(): Promise<unknown>;
  /** Called once the service is back; absent where the tests do it. */
  meet?(): Promise<unknown>;
  close?(): Promise<unknown>;
  tests(): void;
}

/** Each start takes long, so that one kill meets all that may be at hand, each with an organization of its own. */
describe("A service that is killed with kill -9", () => {
  let service: ServiceProcess;
  const payments = paymentsAtHand();

  before(async () => {
    // Engines of its own cost seconds of processor at each start, and are killed in the soak alone.
    const env = { ...LONG_WINDOWS, ...KILLED_PURCHASES_ENV };
    service = await startCrashing({ env, engines: isSoak ? "own" : "shared" });
  });
  after(() => service?.dispose());

  describe("alone", () => {
    const [caps, purchases] = [capsAtHand(), purchasesAtHand()];
    const kinds: readonly AtHand[] = [
      { ...caps, beginLast: () => caps.replace() },
      {
        begin: (on) => payments.beginAlone(on),
        beginLast: () => payments.pay("alone"),
        meet: () => payments.meet(),
        tests: () => payments.testsAlone(),
      },
      createsToReplay(),
      keysAtHand(),
      // Shops need a chain that outlives the service.
      ...(isSoak
        ? []
        : [
            {
              begin: async (on: ServiceProcess) => {
                await purchases.begin(on, STEPS.length);
                await purchases.buy(STEPS);
              },
              close: () => purchases.close(),
              tests: () => purchases.tests(),
            },
          ]),
    ];
    const atHand = someOrAll(kinds, 3);

    before(async () => {
      for (const each of atHand) await each.begin(service);
      for (const each of atHand.toReversed()) await each.beginLast?.();
      await service.killMain();
      await restartCrashing(service);
      for (const each of atHand) await each.meet?.();
    });
    after(() => Promise.all(atHand.map(async (each) => each.close?.())));

    for (const each of atHand.toReversed()) each.tests();
  });

  // That engines which are killed lose nothing is tested at each of them: `engines/start`, `outage`.
  if (isSoak) describe("together with all engines, at once", togetherWithEngines);

  function togetherWithEngines(): void {
    const creates = createsToForget();

    before(async () => {
      await service.killMain();
      await restartCrashing(service, SHORT_WINDOWS);
      await payments.meetAgain();
      await payments.beginTogether();
      await creates.begin(service);
      await payments.pay("together");
      await service.killEverything();
      await restartCrashing(service, SHORT_WINDOWS);
      await payments.meet();
      await creates.meet();
    });
    after(() => creates.close());

    payments.testsTogether();
    creates.tests();
  }
});

if (isSoak) describe("A service that is killed with kill -9, again and again", purchasesKilledAgainAndAgain);
