import assert from "node:assert/strict";
import type { AgentCommand, AgentReply } from "../../../src/domain/agent/commands.ts";
import type { Payment, RailOutcome } from "../../../src/domain/agent/payment.ts";
import type { BudgetPolicy } from "../../../src/domain/agent/policy.ts";
import type { AgentState } from "../../../src/domain/agent/state.ts";
import { countToday, countWithinHour, spentToday } from "../../../src/domain/agent/usage.ts";
import type { BookedPayment } from "./book.ts";
import { Book, dayOf } from "./book.ts";

type Of<T extends { kind: string }, K extends T["kind"]> = Extract<T, { kind: K }>;
type Resolution = Of<AgentCommand, "approve" | "deny" | "cancel" | "expire">;

/** What may follow on a status. An actor that hears of a settlement only after its reversal goes straight there. */
const CHANGES: Readonly<Record<string, readonly string[]>> = {
  pending: ["approved", "denied", "failed", "expired", "reversed"],
  approved: ["reversed"],
};

/**
 * Watches an actor from outside: keeps its own book of every command, says what each reply must be, and holds the
 * actor's totals against sums over that book. Knows nothing of events, phases or revisions but that they rise.
 */
export class Auditor {
  readonly book: Book;
  readonly #seen = new Map<string, string>();
  #highest = { revision: 0, sequence: 0, policyVersion: 0, used: 0 };

  constructor(policy: BudgetPolicy) {
    this.book = new Book(policy);
  }

  /** A command, what the actor replied, and its state afterwards. Throws at the first thing that is wrong. */
  observe(command: AgentCommand, reply: AgentReply, state: AgentState, now: number): void {
    this.#expect(command, reply, now);
    this.#checkTotals(state, now);
    this.#checkPayments(state);
    this.#checkRising(state);
  }

  #expect(command: AgentCommand, reply: AgentReply, now: number): void {
    switch (command.kind) {
      case "pay":
        return this.#expectPay(command, reply, now);
      case "confirm":
        assert.equal(reply.kind, "confirmed");
        if (command.outcome !== null) this.#settle(command.transactionId, command.outcome.result);
        return;
      case "confirm_limits":
      case "confirm_summary":
        assert.equal(reply.kind, "confirmed");
        return;
      case "approve":
      case "deny":
      case "cancel":
      case "expire":
        return this.#expectResolution(command, reply, now);
      case "change_policy":
        return this.#expectPolicy(command, reply);
      case "pause":
      case "resume":
        return this.#expectLifecycle(command.kind === "pause", reply);
      case "read_payment":
      case "rename":
      case "authenticate":
      case "mint_key":
      case "revoke_key":
      case "prove_non_delivery":
      case "confirm_erased":
      case "archive":
      case "confirm_detached":
      // And so have the caps.
      case "confirm_report":
      case "heed_budget":
      case "read_report":
        // The agent's life has a model of its own.
        return assert.fail(`the workload of payments does not ${command.kind}`);
    }
  }

  #expectPay(command: Of<AgentCommand, "pay">, reply: AgentReply, now: number): void {
    const { request, approvalWindowSeconds } = command;
    const known = this.book.byKey.get(request.keyHash);
    if (known !== undefined) return expectReplay(known, request.payloadHash, reply);
    assert(reply.kind === "decided", `a new key was answered ${reply.kind}`);
    const { decision } = reply;
    const verdict = this.book.verdict(request.amountCents, now);
    assert.equal(decision.denial?.code ?? null, verdict?.code ?? null, "the denial");
    assert.deepEqual(decision.denial?.details ?? null, verdict?.details ?? null, "the denial's details");
    const held = verdict === null && this.book.needsApproval(request.amountCents);
    assert.equal(decision.approval !== null, held, "whether a person is asked");
    const expiresAt = now + approvalWindowSeconds * 1_000;
    if (decision.approval !== null) assert.equal(decision.approval.expiresAt, expiresAt);
    assert.equal(decision.sequence, this.book.payments.size + 1, "the sequence");
    assert.deepEqual([decision.createdAt, decision.day], [now, dayOf(now)]);
    const payment: BookedPayment = {
      id: request.transactionId,
      amountCents: request.amountCents,
      createdAt: now,
      payloadHash: request.payloadHash,
      accepted: verdict === null,
      expiresAt,
      place: verdict !== null ? "over" : held ? "held" : "sent",
      status: verdict === null ? "pending" : "denied",
      day: dayOf(now),
    };
    this.book.payments.set(payment.id, payment);
    this.book.byKey.set(request.keyHash, payment);
    if (payment.accepted)
      assert(this.book.used() <= this.book.policy.budgetCents, "accepted over the budget");
  }

  #settle(transactionId: string, outcome: RailOutcome): void {
    const payment = this.book.payments.get(transactionId);
    if (payment === undefined || payment.place !== "sent") return;
    if (outcome.status === "settled") {
      payment.status = "approved";
      if (outcome.final) payment.place = "over";
    }
    if (outcome.status === "failed" && payment.status === "pending") {
      payment.status = "failed";
      payment.place = "over";
    }
    if (outcome.status === "reversed") {
      payment.status = "reversed";
      payment.place = "over";
    }
  }

  #expectResolution(command: Resolution, reply: AgentReply, now: number): void {
    const payment = this.book.payments.get(command.transactionId);
    if (reply.kind === "not_open") {
      assert(payment === undefined || payment.place === "over", "a payment that is not over is not open");
      return;
    }
    assert(reply.kind === "payment" && payment !== undefined, `answered ${reply.kind}`);
    const held = payment.place === "held";
    const intime = held && now < payment.expiresAt;
    if (held) this.#resolve(payment, command, now);
    assert.equal(reply.changed, intime, `whether ${command.kind} changed the payment`);
    assert.equal(reply.payment.status, payment.status, `what ${command.kind} made of the payment`);
    if (held) this.#expectResolved(reply.payment, command, intime);
  }

  #resolve(payment: BookedPayment, command: Resolution, now: number): void {
    if (now >= payment.expiresAt || command.kind === "expire") payment.status = "expired";
    else if (command.kind !== "approve") payment.status = "denied";
    else if (this.book.verdict(payment.amountCents, now, payment) !== null) payment.status = "failed";
    payment.place = payment.status === "pending" ? "sent" : "over";
    // What is spent today counts today, also when it was put on hold yesterday.
    if (payment.place === "sent") payment.day = dayOf(now);
  }

  #expectResolved(payment: Payment, command: Resolution, intime: boolean): void {
    const executing = payment.status === "pending";
    const resolution = executing ? "executing" : payment.status;
    assert.equal(payment.approval?.resolution, resolution, "the approval's resolution");
    assert.equal(payment.denial === null, executing, "whether there is a denial");
    const person = intime && (command.kind === "approve" || command.kind === "deny");
    assert.equal(payment.approval?.resolvedBy !== null, person, "who resolved it");
  }

  #expectPolicy(command: Of<AgentCommand, "change_policy">, reply: AgentReply): void {
    if (command.version !== this.book.version) {
      const conflict = { kind: "version_conflict", policyVersion: this.book.version };
      assert.deepEqual(reply, conflict, "a policy changed from a stale version");
      return;
    }
    const before = this.book.policy;
    this.book.policy = { ...before, ...command.patch };
    this.book.version += 1;
    const { policy, version } = this.book;
    assert.deepEqual(reply, { kind: "policy", before, policy, policyVersion: version });
  }

  #expectLifecycle(paused: boolean, reply: AgentReply): void {
    const changed = this.book.paused !== paused;
    this.book.paused = paused;
    assert.deepEqual(reply, { kind: "lifecycle", lifecycle: paused ? "paused" : "active", changed });
  }

  #checkTotals(state: AgentState, now: number): void {
    const { usage } = state;
    const shown = {
      spent: usage.spentCents,
      reserved: usage.reservedCents,
      today: spentToday(usage, now).amountCents,
      todayCount: countToday(usage, now),
      hourCount: countWithinHour(usage, now),
    };
    const booked = {
      spent: this.book.sum("approved"),
      reserved: this.book.sum("pending"),
      today: this.book.spentOn(dayOf(now)),
      todayCount: this.book.countOn(dayOf(now)),
      hourCount: this.book.ofHour(now).length,
    };
    assert.deepEqual(shown, booked, "totals against the sum over the payments");
    const used = usage.spentCents + usage.reservedCents;
    const limit = Math.max(state.policy.budgetCents, this.#highest.used);
    assert(used <= limit, `${used} used of ${state.policy.budgetCents}`);
    this.#highest.used = used;
  }

  /** Each payment that the actor still shows is as booked, and came there by an allowed change. */
  #checkPayments(state: AgentState): void {
    for (const { payment } of Object.values(state.open)) {
      const { status, request } = payment;
      const { transactionId } = request;
      assert.equal(status, this.book.payments.get(transactionId)?.status, `the status of ${transactionId}`);
      const before = this.#seen.get(transactionId) ?? "pending";
      const allowed = before === status || CHANGES[before]?.includes(status) === true;
      assert(allowed, `${transactionId} went from ${before} to ${status}`);
      this.#seen.set(transactionId, status);
    }
  }

  #checkRising({ revision, sequence, policyVersion }: AgentState): void {
    const before = this.#highest;
    assert(revision >= before.revision, "the record's revision fell");
    assert(sequence >= before.sequence, "the sequence fell");
    assert(policyVersion >= before.policyVersion, "the policy's version fell");
    this.#highest = { revision, sequence, policyVersion, used: before.used };
  }
}

function expectReplay(known: BookedPayment, payloadHash: string, reply: AgentReply): void {
  assert(reply.kind === "replayed", `a known key was answered ${reply.kind}`);
  assert.equal(reply.transactionId, known.id, "the transaction of a replay");
  assert.equal(reply.samePayload, known.payloadHash === payloadHash, "whether the payload is the same");
  assert.equal(reply.payment?.status ?? known.status, known.status, "the status in a replay");
}
