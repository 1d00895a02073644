import { usedCents } from "../money.ts";
import type { DenialCode } from "../ledger/policy.ts";
import { type PastPayment, type Side, SIDES, sideOf } from "./past-payment.ts";

/** Payments whose verdict has changed. */

/** Maximum examples; the newest ones. */
export const EXAMPLES_MAX = 100;

export interface Move {
  readonly from: Side;
  readonly to: Side;
  readonly count: number;
  readonly cents: number;
}

export interface MoveExample {
  readonly transactionId: string;
  readonly agentId: string;
  readonly createdAt: number;
  readonly recipient: string;
  readonly amountCents: number;
  readonly from: Side;
  readonly to: Side;
  /** Code of the present denial, or of the former one. */
  readonly denialCode: DenialCode | null;
  /** Rules that hold the payment now. */
  readonly flaggedByRuleTypes: readonly string[];
}

export interface SimulatedMoves {
  readonly payments: number;
  readonly unchanged: number;
  readonly moves: readonly Move[];
  readonly examples: readonly MoveExample[];
}

export interface Verdict {
  readonly denialCode?: DenialCode;
  readonly flaggedByRuleTypes?: readonly string[];
}

export class Moves {
  #payments = 0;
  #unchanged = 0;
  readonly #sums = new Map<string, Move>();
  readonly #examples: MoveExample[] = [];

  add(past: PastPayment, to: Side, { denialCode, flaggedByRuleTypes = [] }: Verdict): void {
    const from = sideOf(past);
    this.#payments += 1;
    if (from === to) return void (this.#unchanged += 1);
    const { agentId, createdAt, recipient, transactionId } = past;
    const amountCents = usedCents(past.amountMc);
    const { cents, count } = this.#sums.get(`${from} ${to}`) ?? { count: 0, cents: 0 };
    this.#sums.set(`${from} ${to}`, { from, to, count: count + 1, cents: cents + amountCents });
    const example = { transactionId, agentId, createdAt, recipient, amountCents, from, to };
    this.#examples.push({ ...example, denialCode: denialCode ?? past.denialCode, flaggedByRuleTypes });
    if (this.#examples.length > 2 * EXAMPLES_MAX) this.#examples.splice(0, EXAMPLES_MAX);
  }

  get all(): SimulatedMoves {
    return {
      payments: this.#payments,
      unchanged: this.#unchanged,
      moves: [...this.#sums.values()].toSorted((one, other) => placeOf(one) - placeOf(other)),
      examples: this.#examples
        .toSorted((one, other) => other.createdAt - one.createdAt)
        .slice(0, EXAMPLES_MAX),
    };
  }
}

const placeOf = ({ from, to }: Move): number => SIDES.indexOf(from) * SIDES.length + SIDES.indexOf(to);
