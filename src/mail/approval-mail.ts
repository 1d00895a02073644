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

/** Maximum payments listed in a digest; the others are only counted. */
const LISTED_MAX = 50;
/** Maximum payments on hold that are counted. */
const COUNTED_MAX = 10_000;

export interface ApprovalMailDependencies {
  readonly db: Db;
  readonly baseUrl: string;
  readonly clock: Clock;
}

/** Sends one mail about its payments that are still undecided. Throws `MailUnsent` like `Mail.send`. */
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

/** Stable per approval and person, so that a mail sent again is recognized as a duplicate. */
const singleId = ({ _id }: MailedApproval, { userId }: MailedPerson): MailMessage["id"] => `${_id}-${userId}`;

const digestId = (about: ApprovalMailInput["mail"], { userId }: MailedPerson): MailMessage["id"] =>
  about.kind === "single"
    ? `${about.approvalId}-${userId}`
    : `approvals-${about.since}-${about.through}-${userId}`;

/**
 * Returns the recipient; null if they have left, have switched mails off, or may not decide, as an auditor or for lack
 * of a second factor.
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
