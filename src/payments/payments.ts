import type { ApprovalDocument, TransactionDocument } from "../store/documents.ts";
import type { Rails } from "./ports.ts";
import { TimeoutError, withTimeout } from "../lib/with-timeout.ts";
import type { ExecutionHints, PaymentEffects } from "./effects.ts";
import { Superseded } from "./rail-sender.ts";
import type { HmacPaymentProofs } from "./payment-proofs.ts";
import { recordsOf } from "../store/held-payments.ts";
import { approvalDocument, transactionDocument } from "../store/payment-records.ts";
import { type Payment, type PaymentRequest, type RailOutcome, settle } from "../domain/ledger/payment.ts";
import type { AgentProfile } from "../domain/agent/state.ts";
import { refusal } from "../domain/errors.ts";
import { mcOf } from "../domain/money.ts";
import type { LedgerReply } from "../domain/ledger/commands.ts";
import { type AssessedPayment, decidedPayment } from "../domain/ledger/pay.ts";
import { confirmationOf, type ExecutionResult } from "../messages/ledger.ts";
import type { Result } from "../domain/result.ts";
import { ok, refused } from "../domain/result.ts";
import { ActorUnavailable, CallerGone } from "../actors/actor-unavailable.ts";
import type { Ledgers } from "../actors/ledgers.ts";
import type { TemporalActors } from "../actors/temporal.ts";
import type { AccessProofs } from "../secrets/access-proofs.ts";
import type { Collections } from "../store/collections.ts";
import { shortHash } from "../lib/ids.ts";
import type { Deadline } from "../lib/deadline.ts";
import type { Logger } from "../lib/logger.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { tooManyOpen } from "./full-ledger.ts";
import { fingerprint, PaymentRulings } from "./rules/payment-rules.ts";
import { type CheckedOrder, keyReused, type PaymentOrder, unprovenOf } from "./payment-orders.ts";
import { type PaymentsByKey, paymentsByKey } from "./payments-by-key.ts";
import { PossibleDuplicates } from "./possible-duplicates.ts";

export interface Payer {
  readonly profile: AgentProfile;
  readonly keyId: string;
  /** Missing if the agent's record was read for this payment. */
  readonly cached?: CachedPayer;
}

/** A cached agent, and how to verify its key now. */
export interface CachedPayer {
  readonly revision: number;
  readonly verify: () => Promise<Result<Payer>>;
}

export interface RecordedPayment {
  readonly transaction: TransactionDocument;
  readonly approval: ApprovalDocument | null;
}

export interface MadePayment extends RecordedPayment {
  readonly replayed: boolean;
  /** Transaction that this payment may duplicate; null if none. */
  readonly possibleDuplicateOf: string | null;
}

export interface PaymentDependencies {
  readonly collections: Pick<Collections, "transactions" | "approvals" | "ruled">;
  readonly accessProofs: Pick<AccessProofs, "genuine">;
  readonly ledgers: Ledgers;
  readonly effects: PaymentEffects;
  readonly rails: Rails;
  readonly actors: Pick<TemporalActors, "settled">;
  readonly proofs: Pick<HmacPaymentProofs, "isChargeGenuine" | "ofOrder">;
  readonly approvalWindowSeconds: number;
  readonly clock: () => Date;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

const OVERLOADED = refusal(
  "SERVICE_UNAVAILABLE",
  "Decisions take too long at the moment, and this request began nothing; repeat it with the same idempotencyKey.",
  { retryAfterSeconds: 1 },
);

/** Time after the wait within which the record must be read; otherwise the earlier answer stands. */
const RECORD_READ_TIMEOUT_MS = 200;

/** Maximum submissions of one payment: again after a look-up of an evicted key, or with newer rules. */
const DECISION_ATTEMPTS_MAX = 6;

/** Remaining time of a request, whether its caller still waits, and its id for the log. */
type RequestTime = Pick<Deadline, "isAwaited" | "leftMs" | "requestId" | "spareMs">;

/** Deadline for a payment's effects. */
interface EffectsDeadline {
  readonly requestId: string | null;
  /** By `performance.now()`. */
  readonly until: number;
}

interface Asked {
  readonly order: PaymentOrder;
  readonly bound: EffectsDeadline;
  readonly isAwaited: () => boolean;
}

/** Makes agents' payments on the server: decides durably, then acts, then records. */
export class Payments {
  readonly #dependencies: PaymentDependencies;
  /** Batches look-ups of requests that arrive together; caches nothing. */
  readonly #byKey: PaymentsByKey;
  readonly #duplicates: PossibleDuplicates;
  readonly rulings: PaymentRulings;

  constructor(dependencies: PaymentDependencies) {
    this.#dependencies = dependencies;
    const { transactions } = dependencies.collections;
    this.#byKey = paymentsByKey(transactions);
    this.#duplicates = new PossibleDuplicates(transactions, this.#byKey);
    this.rulings = new PaymentRulings(dependencies);
  }

  /**
   * Makes a payment, or returns the one made with the same idempotency key. Waits for the rail while the request has
   * time to spare, and for finality if the rail is final only later. A payment that is not finished by then is returned
   * as pending.
   */
  async pay(payer: Payer, order: PaymentOrder, time: RequestTime): Promise<Result<MadePayment>> {
    const { finality } = this.#dependencies.rails[order.rail].capabilities;
    const withinMs = finality === "instant" ? time.leftMs : time.spareMs;
    const bound = { requestId: time.requestId, until: performance.now() + withinMs };
    const paid = await this.#payOrShed(payer, { order, bound, isAwaited: () => time.isAwaited });
    // A purchase waits for the shop, not for the chain.
    const isWaitedFor = paid.ok && finality === "eventual" && order.purchase === undefined;
    return isWaitedFor ? ok(await this.#awaitFinal(paid.value, bound.until)) : paid;
  }

  async #awaitFinal(paid: MadePayment, until: number): Promise<MadePayment> {
    const { actors } = this.#dependencies;
    const { _id, approvalId, status } = paid.transaction;
    const isInFlight = status === "pending" && approvalId === null;
    if (!isInFlight || !(await actors.settled(_id, until - performance.now()))) return paid;
    try {
      const final = await withTimeout(
        until + RECORD_READ_TIMEOUT_MS - performance.now(),
        this.#readRecords(_id),
      );
      return { ...paid, ...final };
    } catch (error) {
      if (!(error instanceof TimeoutError)) throw error;
      return paid;
    }
  }

  /** Refuses the payment while decisions are too slow, or if its caller has left. */
  async #payOrShed(payer: Payer, asked: Asked): Promise<Result<MadePayment>> {
    const { ledgers, metrics } = this.#dependencies;
    const { profile } = payer;
    if (ledgers.isOverloaded(profile, profile.agentId)) {
      metrics.paymentShed("overload");
      return refused(OVERLOADED);
    }
    try {
      return await this.#pay(payer, asked);
    } catch (error) {
      if (!(error instanceof CallerGone)) throw error;
      metrics.paymentShed("caller_gone");
      return refused(OVERLOADED);
    }
  }

  async #pay(payer: Payer, asked: Asked): Promise<Result<MadePayment>> {
    const { profile, cached } = payer;
    const { bound, isAwaited, order } = asked;
    const decided = await this.#decide(payer, this.#requestOf(profile, order), isAwaited);
    const { revisionRecorded, reply, request } = decided;
    switch (reply.kind) {
      case "decided": {
        const payment = decidedPayment(request, reply.decision);
        const isAnswered = this.#dependencies.ledgers.answering(profile);
        try {
          const [paid, possibleDuplicateOf] = await Promise.all([
            this.#execute(profile, payment, decided, bound),
            this.#duplicates.of(profile.agentId, payment, reply.duplicate),
            revisionRecorded,
          ]);
          // Not a replay, even if the ledger's sweep executed it first.
          return ok({ ...paid, replayed: false, possibleDuplicateOf });
        } finally {
          isAnswered();
        }
      }
      case "replayed":
        if (!reply.samePayload) return refused(keyReused(reply.transactionId));
        await this.#execute(profile, reply.payment, {}, bound);
        return ok(await this.#replayOf(await this.#readRecords(reply.transactionId), request));
      case "recorded": {
        // The look-up precedes the ledger, which refuses a key that was revoked since it was cached.
        const verified = (await cached?.verify()) ?? ok(payer);
        return verified.ok ? this.#replayOfClosed(profile.agentId, request) : verified;
      }
      case "too_many_open":
        return refused(tooManyOpen(reply, this.#dependencies.clock().getTime()));
      case "stale_agent": {
        if (cached === undefined) throw new Error("the ledger refused a freshly read agent as stale");
        const verified = await cached.verify();
        return verified.ok ? this.#pay(verified.value, asked) : verified;
      }
      case "no_account":
      case "inactive_key":
        // The key was valid at authentication; the agent was archived or the key revoked since.
        return refused(refusal("UNAUTHORIZED"));
      default:
        throw new Error(`a ledger answered ${reply.kind} to a payment`);
    }
  }

  /** Returns the closed payment that the idempotency key was used for. */
  async #replayOfClosed(agentId: string, request: PaymentRequest): Promise<Result<MadePayment>> {
    const earlier = await this.#byKey.load({ agentId, keyHash: request.keyHash });
    if (earlier === null) throw new ActorUnavailable("the records lack a payment that the ledger has closed");
    if (earlier.payloadHash !== request.payloadHash) return refused(keyReused(earlier._id));
    return ok(await this.#replayOf(await this.#readRecords(earlier._id), request));
  }

  /** Returns the response to a replay. A request whose command reached the ledger twice is no replay. */
  async #replayOf(paid: RecordedPayment, { transactionId }: PaymentRequest): Promise<MadePayment> {
    const possibleDuplicateOf = await this.#duplicates.before(paid.transaction);
    return { ...paid, replayed: paid.transaction._id !== transactionId, possibleDuplicateOf };
  }

  /**
   * Executes the result of a command on a held payment: sends it if approved, writes its record, confirms it to the
   * ledger. Work that exceeds the request's spare time is left to the ledger's sweep.
   */
  async executeResolution(
    profile: AgentProfile,
    payment: Payment,
    { requestId, spareMs }: Pick<Deadline, "requestId" | "spareMs">,
    hints: ExecutionHints = {},
  ): Promise<RecordedPayment> {
    return this.#execute(profile, payment, hints, { requestId, until: performance.now() + spareMs });
  }

  /** Returns the recorded payment made with a key; null if none is recorded. */
  async earlier(agentId: string, idempotencyKey: string): Promise<RecordedPayment | null> {
    const { collections } = this.#dependencies;
    const keyHash = shortHash(idempotencyKey);
    const transaction = await collections.transactions.findOne({ agentId, keyHash });
    return transaction === null ? null : recordsOf(collections, transaction);
  }

  /** Returns a payment made with this key as the response to a repeated request. */
  async repeated(earlier: RecordedPayment): Promise<MadePayment> {
    const possibleDuplicateOf = await this.#duplicates.before(earlier.transaction);
    return { ...earlier, replayed: true, possibleDuplicateOf };
  }

  /** Advances an open payment whose caller asks again. */
  async goOn(profile: AgentProfile, transactionId: string, withinMs: number): Promise<RecordedPayment> {
    const { clock, effects, ledgers } = this.#dependencies;
    const { agentId } = profile;
    const reply = await ledgers.submit(profile, { kind: "read_payment", agentId, transactionId });
    if (reply.kind !== "payment" || reply.payment.phase === "held") return this.#readRecords(transactionId);
    const { payment } = reply;
    if (payment.phase !== "following")
      return this.#execute(profile, payment, {}, { requestId: null, until: performance.now() + withinMs });
    const result = await this.#settleOnRail(profile, payment, withinMs);
    if (result === "superseded") return this.#readRecords(transactionId);
    const outcome = result === null ? null : { result, at: clock().getTime() };
    const after = outcome === null ? payment : settle(payment, outcome.result, outcome.at);
    if (after === payment) return recordsFrom(profile, payment);
    const done = { transactionId, revision: after.revision, outcome, payment: after };
    await effects.release(profile, payment, done);
    await effects.record(profile, after);
    ledgers.confirmLater(profile, confirmationOf(agentId, done), effects.publish(profile, after, "soon"));
    return recordsFrom(profile, after);
  }

  async #settleOnRail(
    profile: AgentProfile,
    payment: Payment,
    withinMs: number,
  ): Promise<RailOutcome | null | "superseded"> {
    const { effects, rails } = this.#dependencies;
    const ask = () => effects.requestPermission(profile, payment);
    try {
      return await rails[payment.request.rail].settle(profile, payment, withinMs, ask);
    } catch (error) {
      // Another process brought the payment to its end, and the ledger knows.
      if (error instanceof Superseded) return "superseded";
      throw error;
    }
  }

  #requestOf(profile: AgentProfile, order: PaymentOrder): PaymentRequest {
    const request = unprovenOf(order);
    return { ...request, proof: this.#dependencies.proofs.ofOrder(profile, request) };
  }

  /** Submits the payment to the ledger, and looks the key up in the records if the ledger has evicted it. */
  async #decide(
    { keyId, profile, cached }: Payer,
    requested: PaymentRequest,
    isAwaited: () => boolean,
  ): Promise<Decided> {
    const { agentId } = profile;
    const { approvalWindowSeconds, ledgers, metrics } = this.#dependencies;
    const { rail } = requested;
    let recordsCheckedThrough = ledgers.closedOf(agentId);
    const release = ledgers.announceCommand(profile);
    try {
      for (let attempt = 0; attempt < DECISION_ATTEMPTS_MAX; attempt += 1) {
        const areRecordsChecked = recordsCheckedThrough > 0;
        const [{ forbidden, rules: ruled, versions }, earlier] = await metrics.timed(rail, "lookup", () =>
          Promise.all([
            this.rulings.of(profile, requested),
            areRecordsChecked ? this.#byKey.load({ agentId, keyHash: requested.keyHash }) : null,
          ]),
        );
        if (earlier !== null)
          return { reply: { kind: "recorded" }, request: requested, revisionRecorded: Promise.resolve() };
        const request = versions === undefined ? requested : { ...requested, rulesVersions: versions };
        const rules = areRecordsChecked
          ? await metrics.timed(rail, "lookup", () =>
              this.rulings.withSimilarPayment(ruled, agentId, request),
            )
          : ruled;
        const command = {
          kind: "pay",
          agentId,
          keyId,
          request,
          approvalWindowSeconds,
          recordsCheckedThrough,
          ...(cached === undefined ? {} : { cachedAgentRevision: cached.revision }),
          ...(rules === undefined ? {} : { rules }),
          ...(forbidden === undefined ? {} : { forbidden }),
        } as const;
        const submitting = metrics.timed(rail, "decision", () =>
          ledgers.submitUnrecorded(profile, command, { isAwaited }),
        );
        release();
        const { requestedMs, revisionRecorded, reply } = await submitting;
        if (reply.kind === "records_check_required") recordsCheckedThrough = reply.closed;
        else if (reply.kind === "stale_rules") this.rulings.forget(profile);
        else {
          const permit = reply.kind === "decided" ? reply.permit : null;
          const hints = permit === null ? {} : { decided: { permit, requestedMs } };
          return { reply, request, revisionRecorded, ...hints };
        }
      }
    } finally {
      release();
    }
    throw new ActorUnavailable("the records do not keep up with the ledger");
  }

  /** Returns the ledger query for a dry run. The caller flushes the ledger's mailbox first. */
  async assessed(profile: AgentProfile, order: CheckedOrder): Promise<AssessedPayment> {
    const { purchase, rail, recipient } = order;
    const { amountMc = mcOf(order.amountCents), resource } = purchase ?? {};
    const payment = { rail, recipient, amountMc, resource, merchantCategory: order.merchantCategory ?? null };
    // Uses the current rules: unlike a payment's, a dry run's rules are not compared with the ledger's version.
    this.rulings.forget(profile);
    const { forbidden, rules: ruled } = await this.rulings.of(profile, payment);
    const rules = await this.rulings.withSimilarPayment(ruled, profile.agentId, payment);
    return { rail, recipient, amountMc, fingerprint: fingerprint(payment), rules, forbidden };
  }

  async #execute(
    profile: AgentProfile,
    payment: Payment,
    hints: ExecutionHints,
    bound: EffectsDeadline,
  ): Promise<RecordedPayment> {
    const done = await this.#executeInTime(profile, payment, hints, bound);
    return done === "superseded"
      ? this.#readRecords(payment.request.transactionId)
      : recordsFrom(profile, done);
  }

  /**
   * Returns the payment after its effects. If one of them fails or is too slow, the payment is recorded as decided and
   * left to the ledger's sweep: without an answer from the rail it stays pending, and a resolution stands. Throws for a
   * payment on hold whose records or workflow could not be written: its caller may replay the key.
   */
  async #executeInTime(
    profile: AgentProfile,
    payment: Payment,
    hints: ExecutionHints,
    { requestId, until }: EffectsDeadline,
  ): Promise<Payment | "superseded"> {
    const { effects, logger } = this.#dependencies;
    try {
      const done = this.#executeAndConfirm(profile, payment, hints);
      const isHeld = payment.phase === "held";
      return (await (isHeld ? done : withTimeout(until - performance.now(), done))).payment;
    } catch (error) {
      // Another process executed the payment, and the ledger knows.
      if (error instanceof Superseded) return "superseded";
      const { transactionId } = payment.request;
      logger.warn(
        { requestId, err: error, transactionId },
        "effects failed and are left to the ledger's sweep",
      );
      await effects.record(profile, payment);
      if (payment.phase === "held") throw error;
      return payment;
    }
  }

  /** Executes the effects and confirms them to the ledger once done and published, even if no caller waits any more. */
  async #executeAndConfirm(
    profile: AgentProfile,
    payment: Payment,
    hints: ExecutionHints,
  ): Promise<ExecutionResult> {
    const { effects, ledgers } = this.#dependencies;
    const done = await effects.execute(profile, payment, hints);
    const published = effects.publish(profile, done.payment, "soon");
    ledgers.confirmLater(profile, confirmationOf(profile.agentId, done), published);
    return done;
  }

  /** Returns a replayed payment from its record, which may be ahead of the ledger's copy, never behind. */
  async #readRecords(transactionId: string): Promise<RecordedPayment> {
    const { collections } = this.#dependencies;
    const transaction = await collections.transactions.findOne({ _id: transactionId });
    if (transaction === null) throw new ActorUnavailable(`transaction ${transactionId} has no record yet`);
    return recordsOf(collections, transaction);
  }
}

interface Decided extends ExecutionHints {
  readonly reply: LedgerReply<Payment>;
  /** Request as it was submitted to the ledger. */
  readonly request: PaymentRequest;
  /** Resolves before any response may be sent. */
  readonly revisionRecorded: Promise<void>;
}

const recordsFrom = (profile: AgentProfile, payment: Payment): RecordedPayment => ({
  transaction: transactionDocument(profile, payment),
  approval: approvalDocument(profile, payment),
});
