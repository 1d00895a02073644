import { lists } from "./mutants/list.ts";

/**
 * `npm run mutants`: puts each fault into the domain, and fails unless the reference models notice it. Prints each fault with the random
 * run that noticed it; the seeds are fixed, so it is the same each time.
 */
const say = (line: string): void => void process.stdout.write(`${line}\n`);

let faultCount = 0;
let missed = 0;
for (const { faults, what } of lists) {
  say(`\n${what}`);
  for (const { complaint, fault, kill } of faults) {
    faultCount += 1;
    const killed = kill();
    const isNoticed = killed?.complaint.includes(complaint) ?? false;
    if (!isNoticed) missed += 1;
    say(`  ${isNoticed ? "noticed" : "MISSED "}  ${fault} (${killed?.after ?? "no complaint"})`);
    if (killed !== null && !isNoticed) say(`           expected "${complaint}", got "${killed.complaint}"`);
  }
}
say(`\n${String(faultCount - missed)} of ${String(faultCount)} faults noticed`);
process.exit(missed === 0 ? 0 : 1);
