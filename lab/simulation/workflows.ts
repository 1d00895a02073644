import type { PaymentActivities } from "../../activities/payment-activities.ts";
import type { PaymentWorkflows } from "../../src/payments/ports.ts";
import type { Payment } from "../../src/domain/ledger/payment.ts";
import type { AgentProfile } from "../../src/domain/agent/state.ts";
import { SETTLEMENT_POLL_SECONDS } from "../../src/messages/settlement.ts";
import type { Random } from "../random.ts";
import type { Timeline } from "./timeline.ts";

type Activity = <T>(work: (activities: PaymentActivities) => Promise<T>) => Promise<T>;

const TIMER_DELAY_MAX_MS = 120_000;

interface ApprovalRun {
  isEnded: boolean;
  wake: () => void;
}

/** The workflows that wait with a payment, as workflows/{approval,settlement}.ts: started once for an id, and never lost. */
export class DurableWorkflows implements PaymentWorkflows {
  readonly #timeline: Timeline;
  readonly #random: Random;
  readonly #activity: Activity;
  readonly #approvals = new Map<string, ApprovalRun>();
  readonly #settlements = new Set<string>();
  expiries = 0;

  /** `activity` repeats what fails until it succeeds. */
  constructor(timeline: Timeline, random: Random, activity: Activity) {
    this.#timeline = timeline;
    this.#random = random;
    this.#activity = activity;
  }

  startApproval(profile: AgentProfile, payment: Payment): Promise<void> {
    this.#approvalOf(profile, payment);
    return Promise.resolve();
  }

  endApproval(profile: AgentProfile, payment: Payment): Promise<void> {
    const run = this.#approvalOf(profile, payment);
    if (run !== null) {
      run.isEnded = true;
      run.wake();
    }
    return Promise.resolve();
  }

  startSettlement(profile: AgentProfile, payment: Payment): Promise<void> {
    const { transactionId } = payment.request;
    if (this.#settlements.has(transactionId)) return Promise.resolve();
    this.#settlements.add(transactionId);
    void this.#settle(profile, payment);
    return Promise.resolve();
  }

  /** No record is lost here. */
  textsOf(): Promise<null> {
    return Promise.resolve(null);
  }

  #approvalOf(profile: AgentProfile, payment: Payment): ApprovalRun | null {
    const { approval } = payment;
    if (approval === null) return null;
    const known = this.#approvals.get(approval.id);
    if (known !== undefined) return known;
    const run: ApprovalRun = { isEnded: false, wake: () => undefined };
    this.#approvals.set(approval.id, run);
    void this.#expire(profile, payment.request.transactionId, approval.expiresAt, run);
    return run;
  }

  async #expire(
    profile: AgentProfile,
    transactionId: string,
    expiresAt: number,
    run: ApprovalRun,
  ): Promise<void> {
    await new Promise<void>((resolve) => {
      run.wake = resolve;
      // A timer fires late where no worker is free in time.
      const lateMs = this.#random.chance(0.4) ? this.#random.between(1, TIMER_DELAY_MAX_MS) : 0;
      this.#timeline.after(Math.max(1, expiresAt - this.#timeline.now) + lateMs, resolve, true);
    });
    if (run.isEnded) return;
    this.expiries += 1;
    await this.#activity((activities) => activities.expireApproval({ profile, transactionId }));
  }

  async #settle(profile: AgentProfile, sent: Payment): Promise<void> {
    let payment = sent;
    for (let polls = 0; payment.phase !== "done"; polls += 1) {
      const pace = SETTLEMENT_POLL_SECONDS[Math.min(polls, SETTLEMENT_POLL_SECONDS.length - 1)] ?? 900;
      await this.#timeline.sleep(pace * 1_000, true);
      const before = payment;
      payment = await this.#activity((activities) => activities.followPayment({ profile, payment: before }));
    }
  }
}
