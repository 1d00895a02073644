import type { AgentDocument, ApprovalDocument } from "../../../src/store/documents.ts";
import { lifecycleOf } from "../../../src/domain/agent/state.ts";
import type { AgentStateView } from "../../../src/messages/agent.ts";
import type { AccountSnapshot } from "../../../src/messages/ledger.ts";
import type { AccountEntry, ActorEntry, RecordEntry } from "./books.ts";
import type { ApprovalEntry } from "./delivered.ts";

/** Records as they are compared. */

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
  policy: account.policy,
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
  policy,
  policyVersion: record.policyVersion,
  spentCents: record.spentCents,
  reservedCents: record.reservedCents,
});
