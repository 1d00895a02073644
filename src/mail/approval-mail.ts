import type { Db } from "mongodb";
import type { ApprovalMailEnd } from "../domain/approval-mails.ts";
import type { ApprovalMailInput, MailedPerson } from "../messages/mail.ts";
import type { Clock } from "../payments/ports.ts";
import { reachOf } from "../domain/binding.ts";
import type { UserDocument } from "../store/identity-documents.ts";
import { conditions } from "../store/newest-reads.ts";
import { mailCollections } from "../store/mail-documents.ts";
import { approvalText, digestText, type MailedApproval } from "./approval-text.ts";
import type { Mail, MailMessage } from "./mail.ts";

/** Maximum number of payments that a digest lists; it counts the others. */
const LISTED_MAX = 50;
/** More payments on hold are counted as this many. */
const COUNTED_MAX = 10_000;

export interface ApprovalMailDependencies {
  readonly db: Db;
  readonly baseUrl: string;
  readonly clock: Clock;
}

/** Sends one mail about what is still undecided of its payments. Throws `MailUnsent` as `Mail.send` does. */
export async function mailApprovals(
  { baseUrl, clock, db }: ApprovalMailDependencies,
  mail: Mail,
  { mail: about, ...person }: ApprovalMailInput,
): Promise<Exclude<ApprovalMailEnd, "unsent">> {
  const { organizationId } = person;
  const recipient = await recipientOf(db, person);
  if (recipient === null) return "unwanted";
  const { approvals, organizations } = mailCollections(db);
  const undecided = {
    organizationId,
    state: "pending" as const,
    ...(about.kind === "single"
      ? { _id: about.approvalId }
      : { createdAt: { $gte: new Date(about.since), $lte: new Date(about.through) } }),
    expiresAt: { $gt: clock() },
    ...conditions({ ...reachOf(recipient.binding ?? { type: "organization" }).bindingFilter }),
  };
  const [organization, listed, count] = await Promise.all([
    organizations.findOne({ _id: organizationId }),
    approvals.find(undecided).sort({ createdAt: 1 }).limit(LISTED_MAX).toArray(),
    approvals.countDocuments(undecided, { limit: COUNTED_MAX }),
  ]);
  const [first] = listed;
  if (organization === null || first === undefined) return "withdrawn";
  const place = { baseUrl, organization: organization.name };
  const said =
    listed.length === 1
      ? { id: singleId(first, person), ...approvalText(first, place) }
      : { id: digestId(about, person), ...digestText(listed, count, place) };
  return await mail.send({ to: recipient.email, ...said });
}

/** Stable per approval and person, so that a mail that is sent again is recognized as the same. */
const singleId = ({ _id }: MailedApproval, { userId }: MailedPerson): MailMessage["id"] => `${_id}-${userId}`;

const digestId = (about: ApprovalMailInput["mail"], { userId }: MailedPerson): MailMessage["id"] =>
  about.kind === "single"
    ? `${about.approvalId}-${userId}`
    : `approvals-${about.since}-${about.through}-${userId}`;

/**
 * The person; null: they have left, have switched mails off, or may decide nothing, as an
 * auditor or for want of a second factor.
 */
async function recipientOf(
  db: Db,
  { organizationId, userId }: MailedPerson,
): Promise<Pick<UserDocument, "binding" | "email"> | null> {
  const { factors, users } = mailCollections(db);
  const user = await users.findOne({ _id: userId, organizationId, approvalMails: true });
  if (user === null || user.role === "auditor") return null;
  if (user.secondFactorRequired !== true) return user;
  const inForce = { userId, $or: [{ kind: "passkey" as const }, { confirmed: { $ne: null } }] };
  return (await factors.findOne(inForce)) === null ? null : user;
}
