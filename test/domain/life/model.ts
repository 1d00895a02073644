import assert from "node:assert/strict";
import type { AgentCommand } from "../../../src/domain/agent/commands.ts";
import type { Origin } from "./workload.ts";

type Of<K extends AgentCommand["kind"]> = Extract<AgentCommand, { kind: K }>;

export interface ModelPayment {
  readonly id: string;
  readonly keyHash: string;
  readonly cents: number;
  readonly expiresAt: number;
  /** `held` waits for a person, `sent` for its rail. */
  place: "held" | "sent" | "over";
  status: "pending" | "approved" | "denied" | "failed" | "expired";
  /** Over, and that is known to be written down. */
  closed: boolean;
}

const DENIED = "refused MACHINE_ARCHIVE_DENIED";

/**
 * An agent's life a second time (management-api.md sections 3.1, 3.2, 4.1 and 5.4, decisions.md sections 3 and 5), written
 * from those pages in the plainest way. Says in a few words what each command must be answered.
 */
export class LifeModel {
  readonly origin: Origin;
  readonly lineageId: string | null;
  readonly until: number;
  readonly keys = new Map<string, "active" | "dead">();
  readonly payments: ModelPayment[] = [];
  /** What became of the agent itself: an event each. */
  readonly happened: { readonly type: string; readonly at: number }[] = [];
  lifecycle: "active" | "paused" | "archived" = "active";
  name: string;
  budgetCents: number;
  readonly thresholdCents: number;
  policyVersion = 1;
  touchedByPerson = false;
  authenticatedAt: number | null = null;
  provenAt: number | null = null;
  erased = false;
  detached = false;
  archivedBy: "user" | "organization_key" | null = null;
  #heldAtArchive = 0;

  constructor(begin: {
    origin: Origin;
    keyId: string;
    lineageId: string;
    until: number;
    name: string;
    budgetCents: number;
    thresholdCents: number;
  }) {
    this.origin = begin.origin;
    this.lineageId = begin.origin === "machine" ? begin.lineageId : null;
    this.until = begin.until;
    this.name = begin.name;
    this.budgetCents = begin.budgetCents;
    this.thresholdCents = begin.thresholdCents;
    this.keys.set(begin.keyId, "active");
  }

  activeKeyId(): string | null {
    const active = [...this.keys].filter(([, state]) => state === "active").map(([id]) => id);
    assert(active.length <= 1, "the model has two active keys");
    return active[0] ?? null;
  }

  /** Spent (`approved`) or reserved (`pending`) cents. */
  sum(status: "approved" | "pending"): number {
    return this.payments.reduce((total, { cents, status: is }) => total + (is === status ? cents : 0), 0);
  }

  outcomes(): readonly string[] {
    const outcomes: string[] = [];
    if (this.archivedBy === "organization_key") outcomes.push("archived by a machine");
    if (this.#heldAtArchive > 0) outcomes.push("archived with payments on hold");
    if (this.provenAt !== null && this.authenticatedAt !== null)
      outcomes.push("used, so no machine archived it");
    return outcomes;
  }

  statusOf(transactionId: string): string | null {
    return this.payments.find(({ id }) => id === transactionId)?.status ?? null;
  }

  answer(command: AgentCommand, now: number): string {
    switch (command.kind) {
      case "authenticate":
        return this.#authenticate(command.keyId, now);
      case "mint_key":
        return this.#mint(command.keyId);
      case "revoke_key":
        return this.#revoke();
      case "prove_non_delivery":
        return this.#prove(command.lineageId, now);
      case "confirm_erased":
        this.erased = true;
        return "confirmed";
      case "archive":
        return this.#archive(command.by, now);
      case "confirm_detached":
        if (this.lifecycle === "archived") this.detached = true;
        return "confirmed";
      case "pause":
        return this.#change("paused", "agent.paused", now);
      case "resume":
        return this.#change("active", "agent.resumed", now);
      case "rename":
        if (this.lifecycle === "archived") return "archived";
        this.name = command.name;
        return "renamed";
      case "change_policy":
        return this.#changePolicy(command);
      case "pay":
        return this.#pay(command, now);
      case "approve":
      case "deny":
      case "cancel":
      case "expire":
        return this.#resolve(command, now);
      case "confirm":
        return this.#confirm(command);
      case "confirm_summary":
      case "confirm_limits":
        return "confirmed";
      case "confirm_report":
      case "heed_budget":
      case "read_report":
      case "read_payment":
        return assert.fail("not among what happens here");
    }
  }

  #authenticate(keyId: string, now: number): string {
    if (this.lifecycle === "archived" || this.keys.get(keyId) !== "active") return "authenticated false";
    assert.notEqual(this.archivedBy, "organization_key", "used after a machine's archive");
    this.authenticatedAt ??= now;
    return "authenticated true";
  }

  #mint(keyId: string): string {
    if (this.lifecycle === "archived") return "archived";
    if (this.activeKeyId() !== null) return "key_exists";
    this.keys.set(keyId, "active");
    this.touchedByPerson = true;
    return `key ${keyId}`;
  }

  #revoke(): string {
    if (this.lifecycle === "archived") return "archived";
    const keyId = this.activeKeyId();
    if (keyId === null) return "no_key";
    this.keys.set(keyId, "dead");
    this.touchedByPerson = true;
    return `key ${keyId}`;
  }

  #prove(lineageId: string, now: number): string {
    // Of an actor from before, nothing was ever delivered again.
    const over = this.origin === "unknown" || now >= this.until;
    const proves = this.lineageId === lineageId && over;
    if (proves) this.provenAt ??= now;
    return `window over ${over}, proven ${proves}`;
  }

  #archive(by: Of<"archive">["by"], now: number): string {
    const ofOwn = by.type === "organization_key" && by.lineageId === this.lineageId;
    if (this.lifecycle === "archived") return by.type === "user" || ofOwn ? "archive false" : DENIED;
    if (by.type === "organization_key") {
      if (!ofOwn || this.touchedByPerson) return DENIED;
      if (this.authenticatedAt !== null || this.payments.length > 0) return DENIED;
      if (now < this.until) return "refused KEY_STILL_DELIVERABLE";
      if (this.provenAt === null) return "refused KEY_DELIVERY_UNPROVEN";
      if (by.balance === "unreadable") return "refused BALANCE_UNVERIFIABLE";
      if (by.balance === "not_zero") return DENIED;
    }
    this.lifecycle = "archived";
    this.archivedBy = by.type;
    this.happened.push({ type: "agent.archived", at: now });
    for (const id of this.keys.keys()) this.keys.set(id, "dead");
    for (const payment of this.payments.filter(({ place }) => place === "held")) {
      this.#heldAtArchive += 1;
      payment.place = "over";
      payment.status = now >= payment.expiresAt ? "expired" : "denied";
    }
    return "archive true";
  }

  #change(to: "active" | "paused", type: string, now: number): string {
    if (this.lifecycle === "archived") return "archived";
    if (this.lifecycle === to) return `${to} false`;
    this.lifecycle = to;
    this.happened.push({ type, at: now });
    return `${to} true`;
  }

  #changePolicy({ patch, version }: Of<"change_policy">): string {
    if (this.lifecycle === "archived") return "archived";
    if (version !== this.policyVersion) return "version_conflict";
    this.budgetCents = patch.budgetCents ?? this.budgetCents;
    this.policyVersion += 1;
    return `policy ${this.policyVersion}`;
  }

  #pay({ approvalWindowSeconds, request }: Of<"pay">, now: number): string {
    const known = this.payments.find(({ keyHash }) => keyHash === request.keyHash);
    if (known !== undefined) return `replayed ${known.id}`;
    if (this.lifecycle === "archived") return "archived";
    const { amountCents: cents, keyHash, transactionId: id } = request;
    const denial = this.#denial(cents);
    const held = denial === null && cents > this.thresholdCents;
    const payment: ModelPayment = {
      id,
      keyHash,
      cents,
      expiresAt: now + approvalWindowSeconds * 1_000,
      place: denial !== null ? "over" : held ? "held" : "sent",
      status: denial !== null ? "denied" : "pending",
      closed: false,
    };
    this.payments.push(payment);
    return `decided ${denial ?? payment.place}`;
  }

  /** Why the agent may not pay so much now, on top of what it has spent and reserved but for `own`. */
  #denial(cents: number, ownCents = 0): string | null {
    if (this.lifecycle === "paused") return "AGENT_PAUSED";
    const used = this.sum("approved") + this.sum("pending") - ownCents;
    return used + cents > this.budgetCents ? "BUDGET_EXCEEDED" : null;
  }

  #resolve({ kind, transactionId }: Of<"approve" | "deny" | "cancel" | "expire">, now: number): string {
    const payment = this.payments.find(({ id }) => id === transactionId);
    if (payment === undefined || payment.closed) return "not_open";
    if (payment.place !== "held") return `payment false ${payment.status}`;
    const late = now >= payment.expiresAt;
    payment.place = "over";
    if (late || kind === "expire") payment.status = "expired";
    else if (kind !== "approve") payment.status = "denied";
    else if (this.#denial(payment.cents, payment.cents) !== null) payment.status = "failed";
    else payment.place = "sent";
    return `payment ${!late} ${payment.status}`;
  }

  #confirm({ outcome, transactionId }: Of<"confirm">): string {
    const payment = this.payments.find(({ id }) => id === transactionId);
    if (payment?.place === "sent" && outcome !== null) {
      payment.status = outcome.result.status === "settled" ? "approved" : "failed";
      payment.place = "over";
    }
    if (payment?.place === "over") payment.closed = true;
    return "confirmed";
  }
}
