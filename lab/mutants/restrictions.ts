import { forbiddenBy, type RestrictedLevel } from "../../src/domain/rules/restrictions.ts";
import type { RestrictionsDomain } from "../../test/domain/restrictions-model.ts";
import type { Mutant } from "./mutant.ts";

/** Faults of restrictions, as other services have had them. */

type Levels = Parameters<RestrictionsDomain["forbiddenBy"]>[0];

const LAST_FIRST: readonly RestrictedLevel[] = ["project", "team", "agent"];
const NONE: Levels = { agent: undefined, team: undefined, project: undefined };

export const restrictionMutants: readonly Mutant<RestrictionsDomain>[] = [
  {
    fault: "the last level wins",
    complaint: "the restriction that forbids",
    domain: () => ({
      forbiddenBy(levels, payment) {
        const last = LAST_FIRST.find((level) => levels[level] !== undefined);
        return last === undefined ? null : forbiddenBy({ ...NONE, [last]: levels[last] }, payment);
      },
    }),
  },
  {
    fault: "only is the union of the levels' lists",
    complaint: "the restriction that forbids",
    domain: () => ({
      forbiddenBy(levels, payment) {
        const set = LAST_FIRST.filter((level) => levels[level] !== undefined);
        const allowing = set.some(
          (level) => forbiddenBy({ ...NONE, [level]: levels[level] }, payment) === null,
        );
        return allowing ? null : forbiddenBy(levels, payment);
      },
    }),
  },
  {
    fault: "a level that forbids is not asked where another allows",
    complaint: "the restriction that forbids",
    domain: () => ({
      forbiddenBy: (levels, payment) =>
        levels.agent === undefined
          ? forbiddenBy(levels, payment)
          : forbiddenBy({ ...levels, project: undefined }, payment),
    }),
  },
];
