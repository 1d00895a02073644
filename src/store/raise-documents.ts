import type { Resolver } from "../domain/ledger/payment.ts";
import type { Raised, RaiseBasis, Shortfall } from "../domain/ledger/raises.ts";

/** A person's decision to grant a raise, recorded before the ledger applies it. */
export interface RaiseDecision {
  readonly by: Resolver;
  readonly at: Date;
  /** End of the increases; null if permanent, `window` for the end of each limit's own window. */
  readonly endsAt: Date | "window" | null;
  /** Limits that the decision was based on. */
  readonly basis: RaiseBasis;
}

/** An agent's request for higher limits. Replaced as a whole, with its proof. */
export interface RaiseRequestDocument {
  readonly _id: string;
  readonly organizationId: string;
  readonly projectId: string;
  readonly teamId: string;
  readonly agentId: string;
  readonly agentName: string;
  readonly amountCents: number;
  readonly reason: string;
  /** The denied payment, if the agent names one. */
  readonly transactionId: string | null;
  readonly keyHash: string;
  readonly payloadHash: string;
  /** Missing amounts per limit at the time of the request. */
  readonly shortfalls: readonly Shortfall[];
  /** `closed`: granted too late, since the agent was archived or nothing was missing any more. */
  readonly status: "pending" | "granted" | "refused" | "closed";
  readonly closedBy?: "AGENT_ARCHIVED" | "RAISE_NOT_NEEDED";
  /** Set before the grant. While the request is still pending, the grant is in progress. */
  readonly decision: RaiseDecision | null;
  readonly raised: readonly Raised[];
  readonly feedback: string | null;
  readonly resolvedBy: Resolver | null;
  readonly resolvedAt: Date | null;
  readonly createdAt: Date;
  /** The agent, while the request is pending; unique, so that an agent has at most one pending request. */
  readonly openOf?: string;
  readonly proof: string;
}
