import { HOST_INDEX, RECIPIENT_INDEX } from "../../store/projections.ts";
import type { PaymentRequest, RulesVersions } from "../../domain/ledger/payment.ts";
import type { AgentProfile } from "../../domain/agent/state.ts";
import { allChecks, comparedPayment, paymentRules, type PaymentRules } from "../../domain/rules/checks.ts";
import {
  categoriesOver,
  type CategoryLists,
  type Forbidden,
  forbiddenBy,
  type RestrictedLevel,
} from "../../domain/rules/restrictions.ts";
import type { ReadyRule } from "../../domain/rules/rules.ts";
import { hostIn } from "../../domain/rules/shop-hosts.ts";
import { comparedName } from "../../domain/rules/compared-name.ts";
import type { AccessKind, AccessProofs } from "../../secrets/access-proofs.ts";
import type { Collections } from "../../store/collections.ts";
import type { TransactionDocument } from "../../store/documents.ts";
import type { HmacPaymentProofs } from "../payment-proofs.ts";
import { shortHash } from "../../lib/ids.ts";
import { readyContents, type RulesHead, type RulesInForce, RulesOf } from "./rules-in-force.ts";
import { ZoneClocks } from "./zone-offsets.ts";

type Payment = Pick<PaymentRequest, "rail" | "recipient" | "amountMc" | "merchantCategory"> & {
  readonly resource?: string | undefined;
};

export interface Restricted {
  /** The restriction that forbids the payment; missing if none does. */
  readonly forbidden?: Forbidden;
  /** Versions of rules and restrictions; undefined if none were ever set. */
  readonly versions: RulesVersions | undefined;
}

export interface Ruling extends Restricted {
  /** Undefined if no rule applies. */
  readonly rules: PaymentRules | undefined;
}

type InForce = Readonly<Record<RestrictedLevel, RulesInForce | undefined>>;

/** Returns a key that is equal for similar payments: rail, amount and recipient as compared. */
export const fingerprint = ({ amountMc, rail, recipient }: Payment): string =>
  shortHash(`${rail} ${amountMc} ${comparedName(recipient)}`);

/** Options of look-ups: from the primary, since settled payments count at once, and by this index. */
export const FOUND = {
  projection: { createdAt: 1 },
  readPreference: "primary",
  hint: RECIPIENT_INDEX,
} as const;

/** Options of look-ups whose records are verified, and so read whole. */
const VERIFIED = { readPreference: "primary", hint: RECIPIENT_INDEX } as const;
const VERIFIED_BY_HOST = { ...VERIFIED, hint: HOST_INDEX } as const;

export interface PaymentRulesDependencies {
  readonly accessProofs: Pick<AccessProofs, "genuine">;
  readonly proofs: Pick<HmacPaymentProofs, "isChargeGenuine">;
  readonly collections: Pick<Collections, "transactions" | "ruled">;
  readonly clock: () => Date;
}

/** Rulings of a payment's project, team and agent, prepared for the ledger. */
export class PaymentRulings {
  readonly #transactions: Collections["transactions"];
  readonly #projects: RulesOf;
  readonly #teams: RulesOf;
  readonly #agents: RulesOf;
  readonly #zones: ZoneClocks;
  readonly #proofs: PaymentRulesDependencies["proofs"];

  constructor({ accessProofs, clock, collections, proofs }: PaymentRulesDependencies) {
    this.#proofs = proofs;
    const { ruled, transactions } = collections;
    this.#transactions = transactions;
    const ready = readyContents();
    const isGenuine = (kind: AccessKind, head: RulesHead) => accessProofs.genuine(kind, head) !== null;
    const areGenuine =
      (level: "project" | "team") =>
      (head: RulesHead): boolean =>
        (head.approvalRules === undefined || isGenuine(`${level}Rules`, head)) &&
        (head.restrictions === undefined || isGenuine(`${level}Restrictions`, head));
    this.#projects = new RulesOf(ruled.project, ready, areGenuine("project"));
    this.#teams = new RulesOf(ruled.team, ready, areGenuine("team"));
    this.#agents = new RulesOf(ruled.agent, ready, (head) => isGenuine("agentRestrictions", head));
    this.#zones = new ZoneClocks(clock);
  }

  /**
   * Judges by rules that may be some seconds old. The ledger refuses a payment judged by rules older than the newest
   * acknowledged replacement; then the cached rules are dropped and the payment is judged again.
   */
  async of(profile: AgentProfile, payment: Payment): Promise<Ruling> {
    const inForce = await this.#inForce(profile);
    const enabled = [...(inForce.project?.rules ?? []), ...(inForce.team?.rules ?? [])];
    const restricted = restrictedBy(inForce, payment);
    // A denied payment is not flagged.
    if (enabled.length === 0 || restricted.forbidden !== undefined)
      return { rules: undefined, ...restricted };
    const findings = {
      isNewRecipient: await this.#isNewRecipient(enabled, profile.agentId, payment),
      offsetsOf: (timezone: string) => this.#zones.offsetsOf(timezone),
    };
    return { rules: paymentRules(enabled, comparedPayment(payment), findings), ...restricted };
  }

  /** Judges a payment by the current restrictions, also by further names of its recipient. */
  async restrictionsOn(
    profile: AgentProfile,
    payment: Payment,
    furtherNames: readonly string[] = [],
  ): Promise<Restricted> {
    return restrictedBy(await this.#inForce(profile), payment, furtherNames);
  }

  /** Lists of categories over a card that is made for an agent. They are read anew, since the card keeps them. */
  async categoriesOver(profile: AgentProfile): Promise<CategoryLists> {
    this.forget(profile);
    return categoriesOver(restrictionsIn(await this.#inForce(profile)));
  }

  async #inForce({ agentId, projectId, teamId }: AgentProfile): Promise<InForce> {
    const [project, team, agent] = await Promise.all([
      this.#projects.of(projectId),
      this.#teams.of(teamId),
      this.#agents.of(agentId),
    ]);
    return { project, team, agent };
  }

  /** Drops the cached rules and restrictions, so that later payments use the current ones. */
  forget({ agentId, projectId, teamId }: AgentProfile): void {
    this.#agents.forget(agentId);
    this.#projects.forget(projectId);
    this.#teams.forget(teamId);
  }

  /** Returns the rules with the time of the newest similar finished payment, if a rule needs it. */
  async withSimilarPayment(
    rules: PaymentRules | undefined,
    agentId: string,
    payment: Payment,
  ): Promise<PaymentRules | undefined> {
    if (rules === undefined || !allChecks(rules).some(({ type }) => type === "duplicate")) return rules;
    // Pending payments are in the ledger, and a denied one is no duplicate.
    const status = { $in: ["approved", "reversed", "failed", "expired"] } as const;
    const like = await this.#transactions.findOne(
      { ...toRecipient(agentId, payment), status, "ledgerState.amountMc": payment.amountMc },
      // MongoDB merges one range of the index per status.
      { ...FOUND, sort: { createdAt: -1 } },
    );
    return like === null ? rules : { ...rules, similarAt: like.createdAt.getTime() };
  }

  /**
   * Whether no settled payment to the recipient is recorded. The records contain every settled payment before its
   * response is sent, and also those that predate the rules. A recipient stays known even if the payment is reversed.
   */
  async #isNewRecipient(rules: readonly ReadyRule[], agentId: string, payment: Payment): Promise<boolean> {
    if (!rules.some(({ type }) => type === "new_recipient")) return false;
    const status = { $in: ["approved", "reversed"] } as const;
    // Any payment will do, so the first in the index is read, whatever its amount.
    const { resource } = payment;
    const found = [this.#transactions.findOne({ ...toRecipient(agentId, payment), status }, VERIFIED)];
    if (resource !== undefined)
      found.push(this.#transactions.findOne({ agentId, host: hostIn(resource), status }, VERIFIED_BY_HOST));
    return !(await Promise.all(found)).every((record) => record !== null && this.#isGenuine(record));
  }

  /** Whether the service wrote what the record says of its payee and its charge: MongoDB alone makes none known. */
  #isGenuine(record: TransactionDocument): boolean {
    const { comparedRecipient, host, recipient, resource } = record;
    return (
      comparedRecipient === comparedName(recipient) &&
      host === (resource === undefined ? undefined : hostIn(resource)) &&
      this.#proofs.isChargeGenuine(record)
    );
  }
}

/** Returns the filter for an agent's payments to a recipient on a rail. */
export const toRecipient = (agentId: string, { rail, recipient }: Pick<Payment, "rail" | "recipient">) => ({
  agentId,
  rail,
  comparedRecipient: comparedName(recipient),
});

const versionOf = (level: RulesInForce | undefined): number | null => level?.version ?? null;

const restrictionsIn = ({ agent, project, team }: InForce) => ({
  agent: agent?.restrictions,
  team: team?.restrictions,
  project: project?.restrictions,
});

function restrictedBy(inForce: InForce, payment: Payment, furtherNames: readonly string[] = []): Restricted {
  const { agent, project, team } = inForce;
  if (project === undefined && team === undefined && agent === undefined) return { versions: undefined };
  const versions = { project: versionOf(project), team: versionOf(team), agent: versionOf(agent) };
  const levels = restrictionsIn(inForce);
  if (Object.values(levels).every((level) => level === undefined)) return { versions };
  const compared = comparedPayment(payment);
  const shopNames = [...compared.shopNames, ...furtherNames.map(comparedName)];
  const forbidden = forbiddenBy(levels, { ...compared, shopNames });
  return forbidden === null ? { versions } : { forbidden, versions };
}
