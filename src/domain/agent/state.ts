import type { Payment } from "./payment.ts";
import type { LifecycleEvent } from "../events.ts";
import { type AgentCaps, initialCaps } from "./caps.ts";
import { type AgentAccess, type FirstKey, initialAccess } from "./access.ts";
import type { BudgetPolicy } from "./policy.ts";
import { emptyUsage, type Usage } from "./usage.ts";

export type AgentLifecycle = "active" | "paused" | "archived";

/** What the actor knows of the agent besides its money; copied into what it writes. */
export interface AgentProfile {
  readonly organizationId: string;
  readonly projectId: string;
  readonly teamId: string;
  readonly agentId: string;
  readonly name: string;
}

/**
 * One remembered idempotency key: payload hash, transaction id, and as which payment it was closed; 0: it is open. Then when
 * the payment was made and its likeness ("": denied), which those from before there were rules do not have. A tuple, since
 * 2,000 roll over.
 */
export type RememberedKey = readonly [
  payloadHash: string,
  transactionId: string,
  closedAs: number,
  createdAt?: number,
  likenessHash?: string,
];

/** A payment with something left to do, to be told, or to happen. */
export interface OpenPayment {
  payment: Payment;
  /** When it last changed: what is not confirmed some time after, the actor carries out itself. */
  changedAt: number;
  /** The newest revision whose effects are known to be carried out; 0: none yet. */
  confirmedRevision: number;
  /** When it is to be seen to, if that is earlier than its last change says: what it waited for has come. */
  dueAt?: number;
  /** It is not to be sent any more: what its rail has none of is released. */
  isWithdrawn?: true;
}

/**
 * The whole state of an agent's actor: plain data, since it is carried over continue-as-new as JSON. Only `evolve`
 * changes it.
 */
export interface AgentState {
  schemaVersion: 1;
  profile: AgentProfile;
  lifecycle: AgentLifecycle;
  policy: BudgetPolicy;
  policyVersion: number;
  usage: Usage;
  /** Number of payments decided so far. */
  sequence: number;
  open: Record<string, OpenPayment>;
  keys: Record<string, RememberedKey>;
  /** Keys in the order in which they are forgotten. */
  keyOrder: string[];
  /** Number of payments closed so far: all is done for them, so they are in the projection as they will stay. */
  closed: number;
  /** The highest of the closed payments, in the order of closing, whose key was forgotten; 0: none. */
  forgottenThrough: number;
  /** Raised by every change of what the agent's own record shows. */
  revision: number;
  confirmedRevision: number;
  updatedAt: number;
  /** The policy that the agent's wallet mirrors. Its first one it gets when it is deployed. */
  mirroredPolicyVersion?: number;
  /** Not there in actors from before they knew of keys. */
  access?: AgentAccess;
  archivedAt?: number;
  /** Since when it is paused; left out while it is not. */
  pausedAt?: number;
  /** Until when some process may begin to send what it has leave to send; left out: none was ever given. */
  leaveUntil?: number;
  /** Whether the service can no longer spend from the wallet of the archived agent. */
  walletDetached?: boolean;
  /** Not there in actors from before there were caps, until they are told of one. */
  caps?: AgentCaps;
  /** What became of the agent and is not known to be in the journal. */
  outbox?: LifecycleEvent[];
}

/** Idempotency keys remembered by the actor itself; older ones are looked up in the projection. */
export const REMEMBERED_KEYS_MAX = 2_000;

/**
 * Payments that may be under way or on hold at once: what is open must fit through continue-as-new, in 2 MiB, with
 * the longest and worst-escaped texts too. A larger state would end its workflow.
 */
export const OPEN_PAYMENTS_MAX = 200;

export function initialAgentState(
  profile: AgentProfile,
  policy: BudgetPolicy,
  now: number,
  firstKey?: FirstKey,
  asksForCaps = false,
): AgentState {
  return {
    schemaVersion: 1,
    profile,
    lifecycle: "active",
    policy,
    policyVersion: 1,
    usage: emptyUsage(),
    sequence: 0,
    open: {},
    keys: {},
    keyOrder: [],
    closed: 0,
    forgottenThrough: 0,
    // Whoever creates the agent writes its first record.
    revision: 1,
    confirmedRevision: 1,
    updatedAt: now,
    mirroredPolicyVersion: 1,
    ...(firstKey === undefined ? {} : { access: initialAccess(firstKey) }),
    ...(asksForCaps ? { caps: initialCaps() } : {}),
  };
}

/** What an agent's record shows of its actor; written to the projection under its revision. */
export interface AgentSummary {
  readonly name: string;
  readonly lifecycle: AgentLifecycle;
  readonly archivedAt: number | null;
  readonly walletDetached: boolean;
  /** The active key's id; left out where the actor does not know, and the record does. */
  readonly keyId?: string | null;
  readonly authenticatedAt: number | null;
  readonly policy: BudgetPolicy;
  readonly policyVersion: number;
  readonly spentCents: number;
  readonly reservedCents: number;
  readonly revision: number;
  readonly updatedAt: number;
  /** For the journal; told until the record of this revision is confirmed. */
  readonly events: readonly LifecycleEvent[];
}

type Later = "archivedAt" | "authenticatedAt" | "events";

/** One that is to be written; an earlier version may have said so, when actors did not know of these. */
export type WrittenSummary = Omit<AgentSummary, Later> & Partial<Pick<AgentSummary, Later>>;

/** All of it but the table of remembered keys, which no record shows. */
export type AgentBooks = Omit<AgentState, "keys" | "keyOrder">;

export const summarize = (state: AgentBooks): AgentSummary => ({
  name: state.profile.name,
  lifecycle: state.lifecycle,
  archivedAt: state.archivedAt ?? null,
  walletDetached: state.walletDetached ?? false,
  ...(state.access === undefined ? {} : { keyId: state.access.activeKeyId }),
  authenticatedAt: state.access?.authenticatedAt ?? null,
  policy: state.policy,
  policyVersion: state.policyVersion,
  spentCents: state.usage.spentCents,
  reservedCents: state.usage.reservedCents,
  revision: state.revision,
  updatedAt: state.updatedAt,
  events: state.outbox ?? [],
});

/** A look-up in the projection that begins after this was told finds all keys that are forgotten through it. */
export const projectedThrough = (state: AgentState): number => state.closed;
