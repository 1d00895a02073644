import type { RailBooks } from "../domain/ledger/books.ts";
import type { Payment } from "../domain/ledger/payment.ts";
import type { Permission } from "../domain/ledger/permission.ts";
import { FORGED, withoutResolver } from "../domain/ledger/forged.ts";
import { isArmed, moneyOf, settle, totalOf } from "../domain/ledger/payment.ts";
import type { AgentProfile } from "../domain/agent/state.ts";
import { approvalEndOf } from "../messages/approval.ts";
import { confirmationOf, type ExecutionResult } from "../messages/ledger.ts";
import type {
  Clock,
  ForgedKind,
  LedgerGateway,
  PaymentProofs,
  PaymentPublishing,
  PaymentWorkflows,
  Projections,
  Rails,
} from "./ports.ts";
import { createRailSender, type DecidedPermit, Superseded } from "./rail-sender.ts";

/** Systems, other than its own ledger, on which a payment has effects. */
export interface EffectDependencies {
  readonly rails: Rails;
  readonly projections: Projections;
  readonly workflows: PaymentWorkflows;
  readonly publisher: PaymentPublishing;
  readonly proofs: PaymentProofs;
  readonly clock: Clock;
  /** Monotonic time, unaffected by changes of the clock. */
  readonly monotonicMs: () => number;
}

export interface PaymentEffectDependencies extends EffectDependencies {
  readonly ledgers: LedgerGateway;
}

/** Facts that the caller already has about the payment. */
export interface ExecutionHints {
  /** Permit that came with the decision; if missing, one is requested. */
  readonly decided?: DecidedPermit;
}

export interface PaymentEffects {
  /**
   * Executes everything that a payment needs at its revision: calls the rail if it is to be sent, starts the workflow
   * that waits with the payment, and writes the projection. Every step is idempotent by transaction id, so the server
   * and the ledger's sweep may run it concurrently.
   *
   * While the agent is paused, the rail is only queried; a payment that the rail does not have stays unchanged, and no
   * revision is confirmed. Throws if a step failed; then nothing is confirmed, and the ledger's sweep repeats it. A
   * payment without valid proof of its acceptance, or of the named person's approval, is ended without calling any
   * rail.
   */
  execute(profile: AgentProfile, payment: Payment, hints?: ExecutionHints): Promise<ExecutionResult>;
  /** Executes the payment and publishes its outcome, for callers that confirm it at once. */
  executeAndPublish: PaymentEffects["execute"];
  /** Asks whether a payment may be sent now. Throws `Superseded` if it is past that. */
  requestPermission(profile: AgentProfile, payment: Payment): Promise<Permission>;
  /**
   * Confirms an outcome that frees money or arms a card to the ledger, before any caller can read it. Confirms no
   * revision, since effects are still to come. Does nothing for other outcomes.
   */
  release(profile: AgentProfile, before: Payment, done: ExecutionResult): Promise<void>;
  /**
   * Records a payment as it is, without calling anything. Throws `Superseded` if it ended on hold and its record shows
   * another decision, as after a restore of an older ledger.
   */
  record(profile: AgentProfile, payment: Payment): Promise<void>;
  recordAndPublish(profile: AgentProfile, payment: Payment): Promise<void>;
  /**
   * Publishes the outcome of a payment whose effects are done, ends the workflow that waited for a person, and closes
   * the card of an ended payment. Responses don't wait for it, but the confirmation does: an unpublished payment is not
   * confirmed, and the process that executes it next publishes it.
   */
  publish(profile: AgentProfile, payment: Payment, when: "now" | "soon"): Promise<void>;
}

export function createPaymentEffects(dependencies: PaymentEffectDependencies): PaymentEffects {
  const { ledgers, proofs, projections, publisher, rails, workflows, clock } = dependencies;
  const sender = createRailSender(dependencies);

  function forgedIn(profile: AgentProfile, payment: Payment): ForgedKind | null {
    if (!proofs.isAccepted(profile, payment)) return "payment";
    return proofs.isResolvedAsNamed(profile, payment) ? null : "decision";
  }

  /** Returns the payment as it may be recorded and published; null if it may not be at all. */
  function shown(profile: AgentProfile, payment: Payment): Payment | null {
    const forged = forgedIn(profile, payment);
    if (forged === "payment") return null;
    return forged === null ? payment : withoutResolver(payment);
  }

  /** Ends a payment without a valid proof as failed, here and in its ledger, so that nothing is paid. */
  async function refuse(
    profile: AgentProfile,
    payment: Payment,
    what: ForgedKind,
    keep: PaymentEffects["record"],
  ): Promise<ExecutionResult> {
    proofs.onForged(what, profile, payment);
    const { agentId } = profile;
    const { transactionId } = payment.request;
    if (payment.phase === "held") {
      const reply = await ledgers.submit(profile, { kind: "cancel", agentId, transactionId });
      const ended = reply.kind === "payment" ? reply.payment : payment;
      return { transactionId, revision: ended.revision, outcome: null, payment: ended };
    }
    const outcome = payment.phase === "done" ? null : { result: FORGED, at: clock().getTime() };
    const ended = outcome === null ? payment : settle(payment, outcome.result, outcome.at);
    const done = { transactionId, revision: ended.revision, outcome, payment: withoutResolver(ended) };
    await release(profile, payment, done);
    // Recorded only if the ledger has the same payment: a forged workflow may pass one that the ledger does not have.
    const reply = await ledgers.submit(profile, { kind: "read_payment", agentId, transactionId });
    const isActual = reply.kind === "payment" && reply.payment.revision === ended.revision;
    if (what === "decision" && isActual) await keep(profile, ended);
    return done;
  }

  async function startWorkflow(profile: AgentProfile, payment: Payment): Promise<void> {
    if (payment.phase === "held") await workflows.startApproval(profile, payment);
    if (isFollowed(payment)) await workflows.startSettlement(profile, payment);
  }

  /** Whether a workflow follows the payment to its end on the rail. If a network reports on the payment, none does. */
  const isFollowed = ({ books, card, phase, request }: Payment): boolean =>
    phase === "following" && ((books === null && card === undefined) || rails[request.rail].network === null);

  async function closeCard({ card, phase, request }: Payment): Promise<void> {
    if (card === undefined || phase !== "done") return;
    await rails[request.rail].network?.close?.(request.transactionId);
  }

  /** Books the network's charges in the ledger first: only the ledger knows which limits they exceed. */
  async function bookCharges(
    profile: AgentProfile,
    { request: { transactionId } }: Payment,
    books: readonly RailBooks[],
    keep: PaymentEffects["record"],
  ): Promise<ExecutionResult> {
    const { agentId } = profile;
    const command = { kind: "book", agentId, transactionId, books, recordsCheckedThrough: 0 } as const;
    const reply = await ledgers.submit(profile, command);
    if (reply.kind !== "payment") throw new Superseded("the payment was charged and has ended since");
    const { payment } = reply;
    await Promise.all([startWorkflow(profile, payment), keep(profile, payment)]);
    return { transactionId, revision: payment.revision, outcome: null, payment };
  }

  async function record(profile: AgentProfile, payment: Payment): Promise<void> {
    const recorded = shown(profile, payment);
    if (recorded === null) return;
    await projections.writePayment(profile, recorded);
    if (!endedOnHold(payment)) return;
    const end = await projections.endOf(payment.request.transactionId);
    if (end?.deniedAt !== payment.deniedAt)
      throw new Superseded("the record shows another decision about the payment");
  }

  async function publish(profile: AgentProfile, payment: Payment, when: "now" | "soon"): Promise<void> {
    const visible = shown(profile, payment);
    if (visible === null) return;
    const end = approvalEndOf(visible);
    await Promise.all([
      publisher.publish(profile, visible, when),
      end === null ? null : workflows.endApproval(profile, visible, end),
      closeCard(visible),
    ]);
  }

  async function recordAndPublish(profile: AgentProfile, payment: Payment): Promise<void> {
    // Records first: no event may be read before the records that it reports on.
    await record(profile, payment);
    await publish(profile, payment, "now");
  }

  async function release(profile: AgentProfile, before: Payment, done: ExecutionResult): Promise<void> {
    const isNewlyArmed = isArmed(done.payment) && !isArmed(before);
    if (!freesMoney(before, done.payment) && !isNewlyArmed) return;
    await ledgers.submit(profile, { ...confirmationOf(profile.agentId, done), revision: 0 });
  }

  const executeWith =
    (keep: PaymentEffects["record"]): PaymentEffects["execute"] =>
    async (profile, before, { decided } = {}) => {
      const forged = forgedIn(profile, before);
      if (forged !== null) return refuse(profile, before, forged, keep);
      const isToSend = before.phase === "sending";
      // A caller with the decision has just created the payment's id, or read in its record that it waits for a person.
      // Every other caller checks whether the payment has already ended, which a replaced or restored ledger may not
      // know.
      if (isToSend && decided === undefined) {
        const ended = await projections.endOf(before.request.transactionId);
        if (ended !== null && ended.sequence !== before.sequence)
          return refuse(profile, before, "payment", keep);
        if (ended !== null) throw new Superseded("the record shows that the payment ended unpaid");
      }
      const result = isToSend ? await sender.send(profile, before, decided) : null;
      if (result?.status === "charged") return bookCharges(profile, before, result.books, keep);
      const outcome = result === null ? null : { result, at: clock().getTime() };
      const payment = outcome === null ? before : settle(before, outcome.result, outcome.at);
      const { transactionId } = payment.request;
      const waits = isToSend && result === null;
      const done = { transactionId, revision: waits ? 0 : payment.revision, outcome, payment };
      await release(profile, before, done);
      await Promise.all([startWorkflow(profile, payment), keep(profile, payment)]);
      return done;
    };

  return {
    requestPermission: (profile, payment) => sender.requestPermission(profile, payment),
    execute: executeWith(record),
    executeAndPublish: executeWith(async (profile, payment) => {
      await record(profile, payment);
      await publish(profile, payment, "now");
    }),
    release,
    record,
    recordAndPublish,
    publish,
  };
}

const endedOnHold = ({ approval }: Payment): boolean =>
  approval?.resolution === "denied" || approval?.resolution === "expired";

const freesMoney = (before: Payment, after: Payment): boolean =>
  totalOf(moneyOf(after)) < totalOf(moneyOf(before));
