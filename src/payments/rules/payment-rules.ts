import { HOST_INDEX, RECIPIENT_INDEX } from "../../store/projections.ts";
import type { PaymentRequest, RulesVersions } from "../../domain/ledger/payment.ts";
import type { AgentProfile } from "../../domain/agent/state.ts";
import { paymentRules, type PaymentRules } from "../../domain/rules/checks.ts";
import type { ReadyRule } from "../../domain/rules/rules.ts";
import { hostIn } from "../../domain/rules/shop-hosts.ts";
import { comparedName } from "../../domain/rules/compared-name.ts";
import type { AccessProofs } from "../../secrets/access-proofs.ts";
import type { Collections } from "../../store/collections.ts";
import { shortHash } from "../../lib/ids.ts";
import { ReadyRulesCache } from "./ready-cache.ts";
import { type RulesHead, type RulesInForce, RulesOf } from "./rules-in-force.ts";
import { ZoneClocks } from "./zone-offsets.ts";

/** The parts of a payment that its rules look at. */
type Payment = Pick<PaymentRequest, "rail" | "recipient" | "amountMc" | "merchantCategory"> & {
  readonly resource?: string | undefined;
};

/** Rulings of project and team on a payment. */
export interface Ruling {
  /** Undefined where they have nothing to say. */
  readonly rules: PaymentRules | undefined;
  /** The versions of those rules; undefined where none were ever set. */
  readonly versions: RulesVersions | undefined;
}

/** Returns the key of like payments: rail, recipient as compared, amount. */
export const fingerprint = ({ amountMc, rail, recipient }: Payment): string =>
  shortHash(`${rail} ${amountMc} ${comparedName(recipient)}`);

/** Reads from the primary, since settled payments count at once, by this index whatever the planner prefers. */
export const FOUND = {
  projection: { createdAt: 1 },
  readPreference: "primary",
  hint: RECIPIENT_INDEX,
} as const;

const FOUND_BY_HOST = { ...FOUND, hint: HOST_INDEX } as const;

export interface PaymentRulesDependencies {
  readonly accessProofs: Pick<AccessProofs, "genuine">;
  readonly collections: Pick<Collections, "transactions" | "containers">;
  readonly clock: () => Date;
}

/** Rulings of a payment's project and team, prepared for the ledger (docs/policy.md). */
export class PaymentRulings {
  readonly #transactions: Collections["transactions"];
  readonly #projects: RulesOf;
  readonly #teams: RulesOf;
  readonly #zones: ZoneClocks;

  constructor({ accessProofs, clock, collections }: PaymentRulesDependencies) {
    this.#transactions = collections.transactions;
    const cache = new ReadyRulesCache();
    const areGenuine = (kind: "projectRules" | "teamRules") => (head: RulesHead) =>
      accessProofs.genuine(kind, head) !== null;
    this.#projects = new RulesOf(collections.containers.project, cache, areGenuine("projectRules"));
    this.#teams = new RulesOf(collections.containers.team, cache, areGenuine("teamRules"));
    this.#zones = new ZoneClocks(clock);
  }

  /**
   * Judges by rules that may be some seconds old. The ledger refuses a payment judged by rules older than the newest
   * answered replacement; then the cached rules are dropped and the payment is judged again.
   */
  async of(profile: AgentProfile, payment: Payment): Promise<Ruling> {
    const [project, team] = await Promise.all([
      this.#projects.of(profile.projectId),
      this.#teams.of(profile.teamId),
    ]);
    const versions = versionsOf(project, team);
    const enabled = [...(project?.rules ?? []), ...(team?.rules ?? [])];
    if (enabled.length === 0) return { rules: undefined, versions };
    const findings = {
      isNewRecipient: await this.#isNewRecipient(enabled, profile.agentId, payment),
      offsetsOf: (timezone: string) => this.#zones.offsetsOf(timezone),
    };
    return { rules: paymentRules(enabled, payment, findings), versions };
  }

  /** Drops the cached rules, so that later payments use the current ones. */
  forget({ projectId, teamId }: Pick<AgentProfile, "projectId" | "teamId">): void {
    this.#projects.forget(projectId);
    this.#teams.forget(teamId);
  }

  /** The rules, with the newest like payment that is done with, where a rule asks for it. */
  async withSimilarPayment(
    rules: PaymentRules | undefined,
    agentId: string,
    payment: Payment,
  ): Promise<PaymentRules | undefined> {
    if (rules?.checks.some(({ type }) => type === "duplicate") !== true) return rules;
    // Pending payments are in the ledger, and a denied one counts as no duplicate.
    const status = { $in: ["approved", "reversed", "failed", "expired"] } as const;
    const like = await this.#transactions.findOne(
      { ...toRecipient(agentId, payment), status, "ledgerState.amountMc": payment.amountMc },
      // Merged from one stretch of the index for each status.
      { ...FOUND, sort: { createdAt: -1 } },
    );
    return like === null ? rules : { ...rules, similarAt: like.createdAt.getTime() };
  }

  /**
   * Read from the records, which have every settled payment before its response is sent, and those from before there were rules
   * as well. Found once, it stays: a reversal unlearns nothing.
   */
  async #isNewRecipient(rules: readonly ReadyRule[], agentId: string, payment: Payment): Promise<boolean> {
    if (!rules.some(({ type }) => type === "new_recipient")) return false;
    const status = { $in: ["approved", "reversed"] } as const;
    // Any of them will do, so the first in the index, whatever its amount.
    const { resource } = payment;
    const [settled, atShop] = await Promise.all([
      this.#transactions.findOne({ ...toRecipient(agentId, payment), status }, FOUND),
      resource === undefined
        ? "none"
        : this.#transactions.findOne({ agentId, host: hostIn(resource), status }, FOUND_BY_HOST),
    ]);
    return settled === null || atShop === null;
  }
}

/** An agent's payments to a recipient on a rail. */
export const toRecipient = (agentId: string, { rail, recipient }: Pick<Payment, "rail" | "recipient">) => ({
  agentId,
  rail,
  comparedRecipient: comparedName(recipient),
});

function versionsOf(
  project: RulesInForce | undefined,
  team: RulesInForce | undefined,
): RulesVersions | undefined {
  if (project === undefined && team === undefined) return undefined;
  return { project: project?.version ?? null, team: team?.version ?? null };
}
