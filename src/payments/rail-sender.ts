import type { Permission } from "../domain/ledger/permission.ts";
import type { AgentProfile } from "../domain/agent/state.ts";
import type { Payment, RailOutcome } from "../domain/ledger/payment.ts";
import type { LedgerGateway, Rails, SendOutcome } from "./ports.ts";

/** The ledger has a newer state of the payment, which must be read again. */
export class Superseded extends Error {
  override readonly name = "Superseded";
}

/** Every permit met the fence of a later stop; the ledger's sweep sends the payment. */
export class Fenced extends Error {
  override readonly name = "Fenced";
}

export interface DecidedPermit {
  readonly permit: number;
  /** Time of the decision's request, by `monotonicMs`. */
  readonly requestedMs: number;
}

/** Maximum calls to a rail with one transaction id before it counts as not responding. A slow rail gets one. */
const RAIL_CALLS_MAX = { instant: 2, eventual: 1 } as const;

/** Maximum permits per execution of a payment; each further one means a stop and a resume meanwhile. */
const PERMITS_MAX = 3;

/**
 * Maximum age of a decision whose permit is used without asking again. A process can be suspended for longer, and
 * the ledger can be restored meanwhile from records that lack the payment.
 */
const DECISION_AGE_MAX_MS = 1_000;

interface RailSenderDependencies {
  readonly ledgers: LedgerGateway;
  readonly rails: Rails;
  /** Monotonic time, unaffected by changes of the clock. */
  readonly monotonicMs: () => number;
}

/** Calls to a payment's rail, as far as its ledger permits. */
export interface RailSender {
  /** Throws `Superseded` if the payment is past being sent. */
  requestPermission(profile: AgentProfile, payment: Payment): Promise<Permission>;
  /** Returns the rail's outcome; null if the rail has nothing of the payment and must not get it now. */
  send(
    profile: AgentProfile,
    payment: Payment,
    decided: DecidedPermit | undefined,
  ): Promise<RailOutcome | null>;
}

export function createRailSender({ ledgers, monotonicMs, rails }: RailSenderDependencies): RailSender {
  /** Requests a permit. A payment that has ended is handled by the process that confirmed it. */
  async function requestPermission(profile: AgentProfile, { request }: Payment): Promise<Permission> {
    const { agentId } = profile;
    const { transactionId } = request;
    const reply = await ledgers.submit(profile, { kind: "request_permission", agentId, transactionId });
    if (reply.kind !== "permission") throw new Superseded("the payment must not be sent any more");
    return reply.permission;
  }

  async function sendPermitted(
    profile: AgentProfile,
    payment: Payment,
    permit: number,
  ): Promise<SendOutcome> {
    const rail = rails[payment.request.rail];
    for (let call = 1; ; call += 1) {
      try {
        return await rail.send(profile, payment, permit);
      } catch (error) {
        if (call >= RAIL_CALLS_MAX[rail.capabilities.finality]) throw error;
      }
    }
  }

  /** Returns the decision's own permission unless it is too old. */
  function decidedPermission(decided: DecidedPermit | undefined): Permission | null {
    if (decided === undefined || monotonicMs() - decided.requestedMs >= DECISION_AGE_MAX_MS) return null;
    return { kind: "send", permit: decided.permit };
  }

  async function send(
    profile: AgentProfile,
    payment: Payment,
    decided: DecidedPermit | undefined,
  ): Promise<RailOutcome | null> {
    const { rail: name, transactionId } = payment.request;
    const rail = rails[name];
    let permission = decidedPermission(decided);
    for (let asked = 0; asked <= PERMITS_MAX; asked += 1) {
      permission ??= await requestPermission(profile, payment);
      if (permission.kind === "withdraw") return rail.withhold(profile, payment);
      if (permission.kind === "wait") {
        // The process that paused the agent may have died before it laid the fence.
        await rail.fence([{ transactionId, fence: permission.fence }]);
        return rail.query(payment);
      }
      const outcome = await sendPermitted(profile, payment, permission.permit);
      if (outcome.status !== "fenced") return outcome;
      permission = null;
    }
    throw new Fenced("the agent was stopped during every attempt");
  }

  return { requestPermission, send };
}
