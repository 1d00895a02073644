import { paymentRules, type PaymentRules } from "../rules/checks.ts";
import { type Forbidden, forbiddenBy } from "../rules/restrictions.ts";
import type { ReadyRule, RuleType } from "../rules/rules.ts";
import { shopNames } from "../rules/shop-hosts.ts";
import { type PastPayment, payeesOf } from "./past-payment.ts";
import type { SimulatedAgent, SimulatedLevel, SimulatedProject } from "./simulated.ts";

/** Ruling of rules and restrictions, as sent with a payment. */
interface Ruling {
  readonly rules?: PaymentRules;
  readonly forbidden?: Forbidden;
}

interface RulesOver {
  readonly enabled: readonly ReadyRule[];
  /** Whether a rule asks whom an agent has paid before. */
  readonly asksForPayees: boolean;
  /** Whether a rule asks for similar payments. */
  readonly asksForAlike: boolean;
}

/** Rules and restrictions of a simulation, and what they look up in records otherwise. */
export class Rulings {
  readonly #project: SimulatedProject;
  readonly #rules = new Map<SimulatedLevel | undefined, RulesOver>();
  /** When the first payment to a payee had settled. */
  readonly #settled = new Map<string, number>();
  /** Time of the newest payment that was not denied, by agent and fingerprint. */
  readonly #newestAlike = new Map<string, number>();

  constructor(project: SimulatedProject) {
    this.#project = project;
  }

  /** Judges a payment by the rules and restrictions over its agent. */
  on(past: PastPayment, agent: SimulatedAgent | undefined, team: SimulatedLevel | undefined): Ruling {
    const { amountMc, comparedName, createdAt, merchantCategory, rail, resource } = past;
    const names = resource === undefined ? [] : shopNames(resource);
    const payment = { amountMc, comparedName, merchantCategory, rail, shopNames: names };
    const levels = {
      agent: agent?.restrictions,
      team: team?.restrictions,
      project: this.#project.restrictions,
    };
    const forbidden = forbiddenBy(levels, payment);
    if (forbidden !== null) return { forbidden };
    const { asksForAlike, asksForPayees, enabled } = this.#rulesOver(team);
    if (enabled.length === 0) return {};
    const isNewRecipient =
      asksForPayees && payeesOf(past).some((payee) => (this.#settled.get(payee) ?? Infinity) > createdAt);
    const findings = { isNewRecipient, offsetsOf: this.#project.offsetsOf };
    const rules = paymentRules(enabled, payment, findings);
    if (rules === undefined) return {};
    if (!asksForAlike) return { rules };
    const similarAt = this.#newestAlike.get(alike(past));
    return { rules: similarAt === undefined ? rules : { ...rules, similarAt } };
  }

  /** Rules of the project and of a team. */
  #rulesOver(team: SimulatedLevel | undefined): RulesOver {
    const known = this.#rules.get(team);
    if (known !== undefined) return known;
    const enabled = [...this.#project.rules, ...(team?.rules ?? [])];
    const asksFor = (asking: RuleType) => enabled.some(({ type }) => type === asking);
    const over = { enabled, asksForPayees: asksFor("new_recipient"), asksForAlike: asksFor("duplicate") };
    this.#rules.set(team, over);
    return over;
  }

  /** Notes a settled payment. */
  settled(past: PastPayment, team: SimulatedLevel | undefined, at: number): void {
    if (this.#rulesOver(team).asksForPayees) for (const payee of payeesOf(past)) this.paid(payee, at);
  }

  /** Notes a payee, as named by `payeesOf`, to whom a payment has settled. */
  paid(payee: string, at: number): void {
    this.#settled.set(payee, Math.min(at, this.#settled.get(payee) ?? Infinity));
  }

  /** Notes a payment that was not denied. Returns the time of the newest similar payment before it. */
  remember(past: PastPayment, team: SimulatedLevel | undefined): number | undefined {
    if (!this.#rulesOver(team).asksForAlike) return undefined;
    const before = this.#newestAlike.get(alike(past));
    this.#newestAlike.set(alike(past), past.createdAt);
    return before;
  }

  /** Forgets a payment that was denied after all, since it makes no other a duplicate. */
  forget(past: PastPayment, before: number | undefined): void {
    if (this.#newestAlike.get(alike(past)) !== past.createdAt) return;
    if (before === undefined) this.#newestAlike.delete(alike(past));
    else this.#newestAlike.set(alike(past), before);
  }
}

const alike = ({ agentId, fingerprint }: PastPayment): string => `${agentId} ${fingerprint}`;
