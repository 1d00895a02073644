import { type Lease, LEASE_MS } from "../domain/ledger/lease.ts";
import type { AgentProfile } from "../domain/agent/state.ts";
import type { Payment, RailOutcome } from "../domain/ledger/payment.ts";
import type { LedgerGateway, Rails } from "./ports.ts";

/** The ledger has a newer state of this payment: read it again. */
export class Superseded extends Error {
  override readonly name = "Superseded";
}

/** A lease to send a payment was over when it was to be sent: another executor sends it. */
export class LeaseExpired extends Error {
  override readonly name = "LeaseExpired";
}

/** Calls to a rail, with the same transaction id, before it counts as not answering. A slow one is not called twice. */
const RAIL_CALLS_MAX = { instant: 2, eventual: 1 } as const;

/** Who executes a payment asks for a lease so often, where the answers come too late to be made use of. */
const LEASE_REQUESTS_MAX = 3;

interface SendingDependencies {
  readonly ledgers: LedgerGateway;
  readonly rails: Rails;
  /** Milliseconds that have passed since some moment, whatever is done to the clock. */
  readonly monotonicMs: () => number;
}

/** Calls of a payment's rail, each under a lease from its ledger. */
export interface Sending {
  /** A lease to send a payment, good at the moment of the answer. Throws `Superseded` where it is past that. */
  requestLease(profile: AgentProfile, payment: Payment): Promise<Lease>;
  /** What the rail says once it was called; null: it has nothing of the payment, and is not to have it now. */
  send(
    profile: AgentProfile,
    payment: Payment,
    decidedSinceMs: number | undefined,
  ): Promise<RailOutcome | null>;
}

export function createSending({ ledgers, monotonicMs, rails }: SendingDependencies): Sending {
  const isFresh = (sinceMs: number): boolean => monotonicMs() - sinceMs < LEASE_MS;

  /** What has ended in the ledger is handled by the process that confirmed it. */
  async function requestLease(profile: AgentProfile, { request }: Payment): Promise<Lease> {
    const { agentId } = profile;
    const { transactionId } = request;
    for (let ask = 0; ask < LEASE_REQUESTS_MAX; ask += 1) {
      const requestedMs = monotonicMs();
      const reply = await ledgers.submit(profile, { kind: "request_lease", agentId, transactionId });
      if (reply.kind !== "lease") throw new Superseded("it must not be sent any more");
      if (reply.lease !== "send" || isFresh(requestedMs)) return reply.lease;
    }
    throw new LeaseExpired("every lease expired before it could be used");
  }

  async function send(
    profile: AgentProfile,
    payment: Payment,
    decidedSinceMs: number | undefined,
  ): Promise<RailOutcome | null> {
    const rail = rails[payment.request.rail];
    /** A lease that is good now; the rail asks as well, since it may wait for something before it sends. */
    let leasedSinceMs = decidedSinceMs;
    const ask = async (): Promise<Lease> => {
      if (leasedSinceMs !== undefined && isFresh(leasedSinceMs)) return "send";
      const requestedMs = monotonicMs();
      const lease = await requestLease(profile, payment);
      if (lease === "send") leasedSinceMs = requestedMs;
      return lease;
    };
    for (let call = 1; ; call += 1) {
      const lease = await ask();
      if (lease === "wait") return rail.query(payment);
      if (lease === "withdraw") return rail.withhold(profile, payment);
      try {
        return await rail.send(profile, payment, ask);
      } catch (error) {
        if (call >= RAIL_CALLS_MAX[rail.capabilities.finality]) throw error;
      }
    }
  }

  return { requestLease, send };
}
