import type { AgentDocument, ApprovalDocument } from "../../../src/store/documents.ts";
import { lifecycleOf } from "../../../src/domain/agent/state.ts";
import type { AgentStateView } from "../../../src/messages/agent.ts";
import type { AccountSnapshot } from "../../../src/messages/ledger.ts";
import { z } from "zod";
import { BREACH_LEVELS } from "../../../src/domain/ledger/books.ts";
import { EXPLAINED_LIMITS } from "../../../src/domain/ledger/measures.ts";
import type { AuditDocument } from "../../../src/store/audit-documents.ts";
import { type Increased, withoutEnded } from "../../../src/domain/ledger/increases.ts";
import { CLOCK_MAX_MS } from "../disasters.ts";
import type { AccountEntry, ActorEntry, DecisionEntry, RecordEntry } from "./books.ts";
import type { ApprovalEntry } from "./delivered.ts";

/** Records as they are compared. */

/** Returns a policy or a budget without increases that have ended, or may have by a clock that was ahead. */
export const withoutOld = <T extends Increased>(set: T): Omit<T, "increases"> & Increased =>
  withoutEnded(set, Date.now() + CLOCK_MAX_MS);

export const approvalEntry = ({
  _id,
  agentId,
  resolution,
  resolvedBy,
  transactionId,
}: ApprovalDocument): ApprovalEntry => ({
  id: _id,
  agentId,
  transactionId,
  isDecidedByPerson: resolvedBy !== null,
  resolution,
});

export const accountEntry = ({ open, status, ...account }: AccountSnapshot): AccountEntry => ({
  agentId: account.agentId,
  name: account.name,
  keyId: account.keyId,
  state: status === "closed" ? "archived" : status,
  policy: withoutOld(account.policy),
  policyVersion: account.policyVersion,
  spentCents: account.spentCents,
  reservedCents: account.reservedCents,
  sequence: account.sequence,
  openCount: open.length,
});

export const actorEntry = (state: AgentStateView): ActorEntry => ({
  agentId: state.profile.agentId,
  name: state.profile.name,
  keyId: state.access.activeKeyId,
  state: lifecycleOf(state),
  isWindowOpen: !state.access.bundled.erased,
});

export const recordEntry = ({
  _id,
  key,
  lifecycle,
  name,
  policy,
  ...record
}: AgentDocument): RecordEntry => ({
  agentId: _id,
  name,
  keyId: key?.id ?? null,
  state: lifecycle,
  policy: withoutOld(policy),
  policyVersion: record.policyVersion,
  spentCents: record.spentCents,
  reservedCents: record.reservedCents,
});

const decided = z.object({
  outcome: z.string(),
  inputs: z.object({ amountCents: z.number() }),
  limits: z
    .array(
      z.object({
        level: z.enum(BREACH_LEVELS),
        limit: z.enum(EXPLAINED_LIMITS),
        value: z.number(),
        used: z.number(),
      }),
    )
    .nullable(),
});

export function decisionEntry({ decision, resource }: AuditDocument): DecisionEntry {
  const { inputs, limits, outcome } = decided.parse(decision);
  return { id: resource.id ?? "", outcome, amountCents: inputs.amountCents, limits: limits ?? [] };
}
