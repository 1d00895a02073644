import type { LedgerDomain } from "../../test/domain/ledger/world.ts";
import type { LifeDomain } from "../../test/domain/life/run.ts";
import { accountMutants } from "./accounts.ts";
import { bookMutants } from "./books.ts";
import {
  type Kill,
  killInBooks,
  killInLedger,
  killInLife,
  killInRestrictions,
  killInSpendLimits,
} from "./kill.ts";
import { levelMutants } from "./levels.ts";
import { lifeMutants } from "./life.ts";
import type { Mutant } from "./mutant.ts";
import { restrictionMutants } from "./restrictions.ts";
import { spendLimitMutants } from "./spend-limits.ts";
import { paymentMutants } from "./payments.ts";

/** Fixed, so that a result is about the models and not about luck. */
const SEED = 20_261_124;

interface Listed {
  readonly what: string;
  readonly faults: readonly {
    readonly fault: string;
    readonly complaint: string;
    readonly kill: () => Kill | null;
  }[];
}

function listed<D>(
  what: string,
  mutants: readonly Mutant<D>[],
  kill: (domain: () => D, seed: number) => Kill | null,
): Listed {
  const faults = mutants.map(({ complaint, domain, fault, seed }) => ({
    fault,
    complaint,
    kill: () => kill(domain, seed ?? SEED),
  }));
  return { what, faults };
}

const inLedger = (what: string, mutants: readonly Mutant<LedgerDomain>[]): Listed =>
  listed(what, mutants, killInLedger);
const inLife = (what: string, mutants: readonly Mutant<LifeDomain>[]): Listed =>
  listed(what, mutants, killInLife);

/** All faults, by the part of the domain that each is put into. */
export const lists: readonly Listed[] = [
  inLedger("payments", paymentMutants),
  inLedger("accounts", accountMutants),
  inLedger("all levels, and roll-overs", levelMutants),
  listed("books of payments", bookMutants, killInBooks),
  listed("spend limits by period", spendLimitMutants, killInSpendLimits),
  listed("restrictions", restrictionMutants, killInRestrictions),
  inLife("an agent's life", lifeMutants),
];
