import type { BillingPaymentRecord } from "../store/event-records.ts";
import { recordedAmounts } from "../domain/ledger/recorded-amounts.ts";
import type { z } from "zod";
import type { AuditDocument } from "../store/audit-documents.ts";
import type {
  AgentDocument,
  AgentKeyRecord,
  AgentSnapshot,
  ApprovalSnapshot,
  ContainerDocument,
  ProjectDocument,
  TeamDocument,
  TransactionDocument,
  TransactionSnapshot,
} from "../store/documents.ts";
import type { CardLedgerDocument } from "../rails/card/network-books.ts";
import type { failBilling, listCardLedger } from "../contract/operations/sandbox.ts";
import type { OrganizationKeyDocument } from "../store/organization-key-documents.ts";
import { labelsOf } from "../domain/agent/labels.ts";
import { AGENT_TOOLS } from "../contract/tool-names.ts";
import type * as records from "../contract/records.ts";
import type * as organizationKeyOperations from "../contract/operations/organization-keys.ts";
import type { AccountView } from "../messages/ledger.ts";
import { increasesView, spendLimitsView } from "./spend-limits.ts";
import { decimalOf, mcOf } from "../domain/money.ts";

type AgentView = z.input<typeof records.agent>;
type TransactionView = z.input<typeof records.transaction>;
type ApprovalView = z.input<typeof records.approval>;
type ProjectView = z.input<typeof records.project>;
type TeamView = z.input<typeof records.team>;
type CardLedgerEntryView = z.input<typeof listCardLedger.output>["entries"][number];
type BillingPaymentView = z.input<typeof failBilling.output>["payment"];
type BudgetPolicyView = z.input<typeof records.budgetPolicy>;
type OrganizationKeyView = z.input<
  typeof organizationKeyOperations.mintOrganizationKey.output
>["organizationKey"];

/** Records in the contract's form; a stored document leaves the service in no other way. */

const iso = (date: Date): string => date.toISOString();
const isoOrNull = (date: Date | null): string | null => date?.toISOString() ?? null;

export function agentView(agent: AgentSnapshot): AgentView {
  const key = agent.lifecycle === "archived" ? null : agent.key;
  return {
    id: agent._id,
    name: agent.name,
    ...labelsOf(agent),
    state: agent.lifecycle,
    projectId: agent.projectId,
    teamId: agent.teamId,
    scopes: agent.scopes === null ? null : AGENT_TOOLS.filter((tool) => agent.scopes?.includes(tool)),
    budgetCents: agent.policy.budgetCents,
    spentCents: agent.spentCents,
    reservedCents: agent.reservedCents,
    autoApprovalThresholdCents: agent.policy.autoApprovalThresholdCents,
    wallet: walletView(agent),
    key: key && agentKeyView(key, "active"),
    createdBy: agent.createdBy,
    version: agent.policyVersion,
    createdAt: iso(agent.createdAt),
    updatedAt: iso(agent.updatedAt),
    archivedAt: isoOrNull(agent.archivedAt),
  };
}

export const agentKeyView = (key: AgentKeyRecord, status: "active" | "revoked") => ({
  id: key.id,
  last4: key.last4,
  status,
  ...(key.connection && { kind: "oauth" as const, ...key.connection }),
  createdAt: iso(key.createdAt),
  lastUsedAt: isoOrNull(key.lastUsedAt),
});

export const walletView = ({ wallet }: Pick<AgentDocument, "wallet">): AgentView["wallet"] =>
  // Agents created before wallets existed have no such field.
  wallet ? { address: wallet.address, chainCaip2: wallet.chainCaip2 } : null;

export const cardLedgerEntryView = (entry: CardLedgerDocument): CardLedgerEntryView => ({
  id: entry._id,
  transactionId: entry.transactionId,
  merchant: entry.merchant,
  amountCents: entry.amountCents,
  status: entry.status,
  createdAt: iso(entry.createdAt),
});

export const billingPaymentView = (payment: BillingPaymentRecord): BillingPaymentView => ({
  id: payment.id,
  plan: payment.plan,
  reason: payment.reason,
  failedAt: iso(payment.failedAt),
});

export function budgetPolicyView(view: AccountView): BudgetPolicyView {
  const { spentCents, reservedCents, remainingCents, todayCents, lastHourCount, todayCount } = view;
  const { increases, ...policy } = view.policy;
  return {
    ...policy,
    spendLimits: spendLimitsView(view.spendLimits),
    version: view.policyVersion,
    usage: {
      spentCents,
      reservedCents,
      remainingCents,
      todayCents,
      lastHourCount,
      todayCount,
      increases: increasesView(increases),
    },
  };
}

export function transactionView(transaction: TransactionSnapshot): TransactionView {
  return {
    id: transaction._id,
    createdAt: iso(transaction.createdAt),
    agentId: transaction.agentId,
    agentName: transaction.agentName,
    merchant: transaction.recipient,
    amountCents: transaction.amountCents,
    currency: transaction.currency,
    direction: "debit",
    rail: transaction.rail,
    status: transaction.status,
    purpose: transaction.purpose,
    ...(transaction.wouldHaveFlagged && { wouldHaveFlagged: transaction.wouldHaveFlagged }),
    denialReason: transaction.denialReason,
    denialCode: transaction.denialCode,
    denialDetails: denialDetailsView(transaction.denialDetails),
    onChainTxHash: transaction.onChainTxHash,
    chainCaip2: transaction.chainCaip2,
    amounts: recordedAmounts(transaction),
    stage: transaction.stage,
    breach: transaction.breach,
    amount: decimalOf(transaction.amountMc ?? mcOf(transaction.amountCents)),
    resource: transaction.resource ?? null,
    protocol: transaction.protocol ?? null,
    receipt: transaction.receipt ?? null,
  };
}

export function denialDetailsView(details: TransactionDocument["denialDetails"]) {
  if (details === null) return null;
  return { ...details, resetsAt: isoOrNull(details.resetsAt) };
}

export function approvalView(approval: ApprovalSnapshot): ApprovalView {
  const { resolution } = approval;
  return {
    id: approval._id,
    transactionId: approval.transactionId,
    agentId: approval.agentId,
    agentName: approval.agentName,
    teamId: approval.teamId,
    projectId: approval.projectId,
    amountCents: approval.amountCents,
    currency: approval.currency,
    rail: approval.rail,
    recipient: approval.recipient,
    resource: approval.resource ?? null,
    amount: decimalOf(approval.amountMc ?? mcOf(approval.amountCents)),
    purpose: approval.purpose,
    budgetContext: approval.budgetContext,
    flaggedByRuleTypes: approval.flaggedByRuleTypes,
    createdAt: iso(approval.createdAt),
    expiresAt: iso(approval.expiresAt),
    ...(resolution === null || approval.resolvedAt === null
      ? {}
      : {
          resolution,
          resolvedAt: iso(approval.resolvedAt),
          resolvedBy: approval.resolvedBy,
          feedback: approval.feedback,
        }),
  };
}

export type LogoLink = (logoHash: string | null) => string | null;

export const projectView = (project: ProjectDocument, link: LogoLink): ProjectView =>
  containerView(project, link);

export const teamView = (team: TeamDocument, link: LogoLink): TeamView => ({
  ...containerView(team, link),
  projectId: team.projectId,
});

const containerView = (container: ContainerDocument, link: LogoLink): ProjectView => ({
  id: container._id,
  name: container.name,
  description: container.description,
  color: container.color,
  logo: link(container.logoHash),
  createdAt: iso(container.createdAt),
  archivedAt: isoOrNull(container.archivedAt),
});

export function organizationKeyView(key: OrganizationKeyDocument, createdToday: number): OrganizationKeyView {
  return {
    id: key._id,
    name: key.name,
    last4: key.last4,
    scopes: key.scopes,
    binding: key.binding,
    dailyCreateLimit: key.dailyCreateLimit,
    createdToday,
    lineageId: key.lineageId,
    createdBy: key.createdBy,
    createdAt: iso(key.createdAt),
    lastUsedAt: isoOrNull(key.lastUsedAt),
    rotatedAt: isoOrNull(key.rotatedAt),
    revokedAt: isoOrNull(key.revokedAt),
  };
}

/** Returns an audit entry without its place in MongoDB; its hash can be recomputed from it. */
export function auditEntryView({ _id, at, ...entry }: AuditDocument): z.input<typeof records.auditEntry> {
  return { ...entry, at: at.toISOString() };
}
