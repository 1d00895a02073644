import type { AgentCommand, AgentReply } from "../src/domain/agent/commands.ts";
import type { Payment, Rail, RailOutcome } from "../src/domain/agent/payment.ts";
import type { AgentProfile, AgentSummary } from "../src/domain/agent/state.ts";

/**
 * A payment rail (decisions.md section 6). A call that ends without an answer throws: then nothing is known, and the
 * caller asks again, with the same transaction id.
 */
export interface RailPort {
  /** Sends a payment. At most one effect for a transaction id, however often and by whomever it is called. */
  send(profile: AgentProfile, payment: Payment): Promise<RailOutcome>;
  /** What has become of a payment that was sent; null when the rail has never heard of it. */
  query(payment: Payment): Promise<RailOutcome | null>;
}

export type Rails = Readonly<Record<Rail, RailPort>>;

/** Queryable records of what the actors decided. Writing the same revision twice, or an older one, does nothing. */
export interface Projections {
  writePayment(profile: AgentProfile, payment: Payment): Promise<void>;
  writeAgentSummary(agentId: string, summary: AgentSummary): Promise<void>;
}

/** Starts and tells the workflows that wait with a payment. Each call may be repeated. */
export interface PaymentWorkflows {
  startApproval(profile: AgentProfile, payment: Payment): Promise<void>;
  tellApproval(profile: AgentProfile, payment: Payment): Promise<void>;
  startSettlement(profile: AgentProfile, payment: Payment): Promise<void>;
}

/** The way to an agent's actor. */
export interface AgentGateway {
  submit(agentId: string, command: AgentCommand): Promise<AgentReply>;
}

export type Clock = () => Date;
