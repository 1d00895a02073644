import { randomUUID } from "node:crypto";
import type { Db } from "mongodb";
import type { Role } from "../../src/contract/types.ts";
import type { MailedPerson } from "../../src/messages/mail.ts";
import type { ApprovalDocument } from "../../src/store/documents.ts";
import type { UserDocument } from "../../src/store/identity-documents.ts";
import { mailCollections } from "../../src/store/mail-documents.ts";

/** The record of a payment on hold. */
export const approvalRecord = (fields: Partial<ApprovalDocument>): ApprovalDocument => ({
  _id: `apr_${randomUUID()}`,
  transactionId: `txn_${randomUUID()}`,
  organizationId: "organization",
  projectId: "project",
  teamId: "team",
  agentId: "agent",
  agentName: "Buyer",
  amountCents: 123_456,
  currency: "USD",
  rail: "card",
  recipient: "Conference Inc",
  purpose: "Two tickets",
  budgetContext: { budgetCents: 1, spentCents: 0, reservedCents: 1, remainingCents: 0 },
  flaggedByRuleTypes: ["agent_threshold"],
  createdAt: new Date(),
  expiresAt: new Date(Date.now() + 3_600_000),
  state: "pending",
  resolution: null,
  resolvedAt: null,
  resolvedBy: null,
  feedback: null,
  revision: 1,
  ledgerState: { proof: null, policyVersion: null },
  ...fields,
});

/** Writes the records of a person who is mailed about approvals, and of their organization. */
export async function mailedPerson(
  db: Db,
  {
    organizationId,
    ...fields
  }: Pick<UserDocument, "binding" | "secondFactorRequired"> & {
    readonly organizationId: string;
    readonly role?: Role;
  },
): Promise<MailedPerson & { readonly email: string }> {
  const { organizations, users } = mailCollections(db);
  const [userId, email] = [randomUUID(), `${randomUUID()}@example.com`];
  await organizations.updateOne({ _id: organizationId }, { $set: { name: "Acme" } }, { upsert: true });
  const person = {
    organizationId,
    name: "Ada",
    email,
    role: "member" as const,
    approvalMails: true as const,
  };
  await users.insertOne({ _id: userId, ...person, ...fields });
  return { organizationId, userId, email };
}
