import * as fc from "fast-check";
import { mustEqual } from "../../lab/simulation/audit/violation.ts";
import {
  forbiddenBy,
  NO_RESTRICTIONS,
  readyRestrictions,
  type RestrictedLevel,
  type Restrictions,
} from "../../src/domain/rules/restrictions.ts";
import { comparedPayment } from "../../src/domain/rules/checks.ts";

/** Restrictions of three levels in the plainest way: what is in a `never`, or missing in an `only`, is forbidden. */

export interface RestrictionsDomain {
  readonly forbiddenBy: typeof forbiddenBy;
}
export const restrictionsDomain: RestrictionsDomain = { forbiddenBy };

const NAMES = ["a", "b", "c"] as const;
const RAILS = ["card", "wallet"] as const;

const listOf = <T>(items: readonly T[]) => fc.subarray([...items]);
const onlyOf = <T>(items: readonly T[]) => fc.option(fc.subarray([...items], { minLength: 1 }));
const lists = fc.record({
  recipients: fc.record({ only: onlyOf(NAMES), never: listOf(NAMES) }),
  rails: fc.record({ only: onlyOf(RAILS) }),
});
const levels = fc.record({ agent: fc.option(lists), team: fc.option(lists), project: fc.option(lists) });
const payments = fc.record({ recipient: fc.constantFrom(...NAMES), rail: fc.constantFrom(...RAILS) });

export const restrictedPayments = fc.record({ levels, payment: payments });
type Restricted = typeof restrictedPayments extends fc.Arbitrary<infer T> ? T : never;
type Lists = Pick<Restrictions, "rails" | "recipients"> | null;

const ready = (level: Lists) =>
  level === null ? undefined : readyRestrictions({ ...NO_RESTRICTIONS, ...level });

/** Objects where the domain does not name the first level that forbids a payment, or names one where none does. */
export function judgeRestricted({ levels: set, payment }: Restricted, domain: RestrictionsDomain): void {
  const { agent, project, team } = set;
  const all = { agent: ready(agent), team: ready(team), project: ready(project) };
  const facts = comparedPayment({ ...payment, amountMc: 1, merchantCategory: null });
  const forbids = (level: RestrictedLevel, kind: "rail" | "recipient"): boolean => {
    const found = set[level];
    if (found === null) return false;
    const [{ only }, name] =
      kind === "rail" ? [found.rails, payment.rail] : [found.recipients, payment.recipient];
    if (kind === "recipient" && found.recipients.never.some((each) => each === name)) return true;
    return only !== null && !only.some((each) => each === name);
  };
  const [byRail, byRecipient] = (["rail", "recipient"] as const).map((kind) =>
    (["agent", "team", "project"] as const).find((level) => forbids(level, kind)),
  );
  const expected =
    byRail !== undefined
      ? { code: "RAIL_NOT_ALLOWED", level: byRail }
      : byRecipient === undefined
        ? null
        : { code: "RECIPIENT_NOT_ALLOWED", level: byRecipient };
  mustEqual(domain.forbiddenBy(all, facts), expected, "the restriction that forbids a payment");
}
