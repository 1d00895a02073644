import { setFlagsFromString } from "node:v8";
import type { DecisionsConfig, DecisionsResult } from "../decisions.ts";
import { assessByCedar, disagreements, prepareCedar } from "../decisions/cedar.ts";
import { Paying, type Timed } from "../decisions/ours.ts";
import { timeOf } from "../decisions/workload.ts";
import { median } from "../statistics.ts";
import { type Role, runRole } from "./role.ts";

/** Verdicts that are compared before anything is measured. */
const COMPARED = 2_000;
/** Payments before that, so that there is usage to judge by. */
const WARM_UP_MS = 1_000;

const perSecond = ({ decisions, ms }: Timed): number => (decisions / ms) * 1_000;

/** Pure decisions, one thread, nothing else in the process: each kind in turn, round after round. */
function measure({ rounds, seconds }: DecisionsConfig): DecisionsResult {
  const paying = new Paying(false);
  const capped = new Paying(true);
  prepareCedar();
  const warm = paying.run(WARM_UP_MS);
  capped.run(WARM_UP_MS);
  const differing = disagreements(paying.ledger, warm.decisions, COMPARED);
  let paid = warm.decisions;
  const rates = {
    pay: [] as number[],
    capped: [] as number[],
    assess: [] as number[],
    cedar: [] as number[],
  };
  const lengthMs = seconds * 1_000;
  for (let round = 0; round < rounds; round += 1) {
    const timed = paying.run(lengthMs);
    paid += timed.decisions;
    rates.pay.push(perSecond(timed));
    rates.capped.push(perSecond(capped.run(lengthMs)));
    rates.assess.push(perSecond(paying.assess(lengthMs)));
    rates.cedar.push(perSecond(assessByCedar(paying.ledger, timeOf(paid), lengthMs)));
  }
  return {
    perSecond: {
      pay: median(rates.pay),
      capped: median(rates.capped),
      assess: median(rates.assess),
      cedar: median(rates.cedar),
    },
    outcomes: paying.outcomes,
    differing,
  };
}

// Node 20 ends ("unreachable code") when it takes back the optimization of a function that calls Cedar's WebAssembly inline.
setFlagsFromString("--no-turbo-inline-js-wasm-calls");

await runRole((): Promise<Role> =>
  Promise.resolve({
    port: null,
    answer: (request) => Promise.resolve(measure(request as DecisionsConfig)),
    stop: () => Promise.resolve(),
  }),
);
