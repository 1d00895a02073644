import type { Resolver } from "../domain/ledger/payment.ts";
import type { Raised, RaiseBasis, Shortfall } from "../domain/ledger/raises.ts";

/** A person's decision to grant a raise; recorded before the ledger takes it. */
export interface RaiseDecision {
  readonly by: Resolver;
  readonly at: Date;
  /** The end of increases; null: for good; `window`: that of each limit's own window. */
  readonly endsAt: Date | "window" | null;
  /** The limits that it was decided on. */
  readonly basis: RaiseBasis;
}

/** An agent's request for higher limits. Replaced whole, with its proof. */
export interface RaiseRequestDocument {
  readonly _id: string;
  readonly organizationId: string;
  readonly projectId: string;
  readonly teamId: string;
  readonly agentId: string;
  readonly agentName: string;
  readonly amountCents: number;
  readonly reason: string;
  /** The payment that was denied, where the agent names one. */
  readonly transactionId: string | null;
  readonly keyHash: string;
  readonly payloadHash: string;
  /** What lacked when it was asked for. */
  readonly shortfalls: readonly Shortfall[];
  /** `closed`: granted too late, since the agent was archived or nothing lacked any more. */
  readonly status: "pending" | "granted" | "refused" | "closed";
  readonly closedBy?: "AGENT_ARCHIVED" | "RAISE_NOT_NEEDED";
  /** Set before the grant; while the request is pending, the grant is under way. */
  readonly decision: RaiseDecision | null;
  readonly raised: readonly Raised[];
  readonly feedback: string | null;
  readonly resolvedBy: Resolver | null;
  readonly resolvedAt: Date | null;
  readonly createdAt: Date;
  /** The agent, while the request is pending: one is open at a time. */
  readonly openOf?: string;
  readonly proof: string;
}
