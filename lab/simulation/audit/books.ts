import type { Denial, LimitDenial } from "../../../src/domain/ledger/policy.ts";
import {
  type AccountModel,
  HOUR,
  isClosed,
  isMoney,
  type PaymentModel,
  type Verdict,
} from "./account-model.ts";
import type { StoppedModel } from "./account-audit.ts";
import type { AgentModel } from "./agent-model.ts";
import { must, mustEqual } from "./violation.ts";

/** A project or a team: its cap, and the rules that judge payments under it. */
export interface LevelModel {
  capCents: number | null;
  version: number;
  rulesVersion: number;
  spentCents: number;
  reservedCents: number;
}

const newLevel = (): LevelModel => ({
  capCents: null,
  version: 1,
  rulesVersion: 0,
  spentCents: 0,
  reservedCents: 0,
});

/** The auditor's books: every account's, every agent's life, every payment's, and what is used of the caps. */
export class WorldModel {
  readonly accounts = new Map<string, AccountModel>();
  readonly lives = new Map<string, AgentModel>();
  readonly payments = new Map<string, PaymentModel>();
  /** What each stop has stopped, by its request. */
  readonly stops = new Map<string, readonly StoppedModel[]>();
  readonly #levels = new Map<string | null, LevelModel>();
  readonly #open = new Set<PaymentModel>();
  /** What has happened, how often. */
  readonly tally = new Map<string, number>();

  /** The project (null), or a team. */
  level(teamId: string | null): LevelModel {
    const known = this.#levels.get(teamId) ?? newLevel();
    this.#levels.set(teamId, known);
    return known;
  }

  payment(transactionId: string): PaymentModel {
    const payment = this.payments.get(transactionId);
    must(payment !== undefined, `${transactionId} was never decided`);
    return payment;
  }

  account(agentId: string): AccountModel {
    const model = this.accounts.get(agentId);
    must(model !== undefined, `no account was opened for ${agentId}`);
    return model;
  }

  life(agentId: string): AgentModel {
    const model = this.lives.get(agentId);
    must(model !== undefined, `${agentId} was never created`);
    return model;
  }

  add(model: AccountModel, payment: PaymentModel): void {
    must(!this.payments.has(payment.id), `${payment.id} was decided twice`);
    this.payments.set(payment.id, payment);
    this.#open.add(payment);
    model.add(payment);
    this.#count(model, payment, 1);
  }

  change(model: AccountModel, payment: PaymentModel, change: Partial<PaymentModel>, now: number): void {
    this.#count(model, payment, -1);
    model.change(payment, change, now);
    this.#count(model, payment, 1);
  }

  #count({ teamId }: AccountModel, { amountCents, status }: PaymentModel, sign: 1 | -1): void {
    if (!isMoney(status)) return;
    const field = status === "pending" ? "reservedCents" : "spentCents";
    for (const level of [this.level(null), this.level(teamId)]) level[field] += sign * amountCents;
  }

  openCount(): number {
    for (const payment of this.#open) if (isClosed(payment)) this.#open.delete(payment);
    return this.#open.size;
  }

  /**
   * What limits of all levels say to an amount, in the order in which they are looked at; `own` not counted. `seen`: the code that was
   * answered, since an hour may count a little longer, and never shorter.
   */
  verdict(
    model: AccountModel,
    amountCents: number,
    now: number,
    { own = null, seen }: { readonly own?: PaymentModel | null; readonly seen: string | null },
  ): Verdict | null {
    const verdictOf = (hourMs: number): Verdict | null =>
      model.verdict(amountCents, now, { hourMs, own }) ?? this.#capVerdict(model.teamId, amountCents, own);
    const exact = verdictOf(HOUR);
    const longestHourMs = model.longestMs(HOUR, now);
    return (exact?.code ?? null) === seen ? exact : verdictOf(longestHourMs);
  }

  #capVerdict(teamId: string, amountCents: number, own: PaymentModel | null): Verdict | null {
    for (const [code, level] of [
      ["TEAM_CAP_EXCEEDED", this.level(teamId)],
      ["PROJECT_CAP_EXCEEDED", this.level(null)],
    ] as const) {
      const { capCents, reservedCents, spentCents } = level;
      const used = spentCents + reservedCents - (own?.amountCents ?? 0);
      if (capCents === null || used + amountCents <= capCents) continue;
      const remaining = capCents > used ? capCents - used : 0;
      return { code, details: { limit: capCents, remaining, resetsAt: null } };
    }
    return null;
  }

  count(what: string): void {
    this.tally.set(what, (this.tally.get(what) ?? 0) + 1);
  }
}

export function expectDenial(
  denial: Denial | LimitDenial | null,
  verdict: Verdict | null,
  what: string,
): void {
  mustEqual(denial?.code ?? null, verdict?.code ?? null, what);
  const [said, expected] = [denial?.details ?? null, verdict?.details ?? null];
  const [soonest, resetsAt] = [expected?.resetsAt ?? null, said?.resetsAt ?? null];
  if (said === null || expected === null || soonest === null || resetsAt === null)
    return mustEqual(said, expected, `${what}, the details`);
  const laterMs = resetsAt - soonest;
  must(laterMs >= 0 && laterMs <= (verdict?.laterMs ?? 0), `${what}, when it resets`);
  mustEqual(said, { ...expected, resetsAt: said.resetsAt }, `${what}, the details`);
}
