import type { Db } from "mongodb";
import { auditValue } from "../domain/audit/canonical.ts";
import type { AuditRecord } from "../domain/audit/entry.ts";
import type { InviteMailEnd, InviteMailInput } from "../messages/mail.ts";
import type { AuditLog } from "../audit/chain/appender.ts";
import type { Clock } from "../payments/ports.ts";
import { mailCollections, type MailedInvite } from "../store/mail-documents.ts";
import { inviteText } from "./invite-text.ts";
import { type Mail, type MailMessage, MailUnsent } from "./mail.ts";

/** Outcome of an attempt; `unsent` is retried. */
export type MailOutcome = "sent" | "refused" | "unsent" | "expired";

export interface InviteMailDependencies {
  readonly db: Db;
  /** Null if this process has no mail server; another one may have. */
  readonly mail: Mail | null;
  /** Whether the invite is unchanged since the service wrote it. */
  readonly isGenuine: (invite: MailedInvite) => boolean;
  readonly openLink: (inviteId: string, sealed: string) => string;
  readonly auditLog: AuditLog;
  readonly clock: Clock;
  readonly onOutcome: (outcome: MailOutcome) => void;
  readonly onWarning: (message: string, details: Readonly<Record<string, unknown>>) => void;
}

/**
 * Mails an invite at least once: if a worker dies between the mail server's answer and recording it, the invite is sent
 * again under the same Message-ID. Throws `MailUnsent` if it should be retried.
 */
export async function mailInvite(
  dependencies: InviteMailDependencies,
  { inviteId }: InviteMailInput,
): Promise<InviteMailEnd> {
  const { auditLog, clock, db, isGenuine, onOutcome } = dependencies;
  const { invites } = mailCollections(db);
  const invite = await invites.findOne({ _id: inviteId });
  if (invite?.mail === undefined || invite.mail === null) return "gone";
  // A forged invite's link must not be mailed to another address.
  if (!isGenuine(invite)) return "gone";
  const { sealedLink, state } = invite.mail;
  // The worker that recorded the end may have died before writing the audit entry.
  if (state !== "mailing")
    return await recordEnd(auditLog, invite, state, invite.mail.endedAt ?? invite.createdAt);
  if (invite.expiresAt <= clock()) {
    onOutcome("expired");
    return await recordEnd(auditLog, invite, "expired", invite.expiresAt);
  }
  const sent = await send(dependencies, invite, sealedLink);
  const [end, endedAt] = [sent === "sent" ? "mailed" : "refused", clock()] as const;
  onOutcome(sent);
  // The link is no longer needed here.
  const mail = { state: end, sealedLink: null, endedAt };
  await invites.updateOne({ _id: inviteId, "mail.state": "mailing" }, { $set: { mail } });
  return await recordEnd(auditLog, invite, end, endedAt);
}

async function send(
  { db, mail, onWarning, openLink }: InviteMailDependencies,
  invite: MailedInvite,
  sealedLink: string | null,
): Promise<"sent" | "refused"> {
  if (mail === null) throw new MailUnsent("this worker has no SMTP_URL");
  if (sealedLink === null) throw new Error("the mail to be sent has no sealed link");
  const message = await messageOf(db, invite, openLink(invite._id, sealedLink));
  const sent = await mail.send(message);
  if (sent === "refused")
    onWarning("the mail server refuses an invite's mail for good", { inviteId: invite._id });
  return sent;
}

async function messageOf(db: Db, invite: MailedInvite, link: string): Promise<MailMessage> {
  const { _id, createdBy, email, expiresAt, organizationId, role } = invite;
  const { organizations, users } = mailCollections(db);
  const [organization, inviter] = await Promise.all([
    organizations.findOne({ _id: organizationId }),
    users.findOne({ _id: createdBy.id, organizationId }),
  ]);
  if (organization === null) throw new Error("the invite's organization has no record");
  const names = { organization: organization.name, inviter: inviter?.name ?? "A former member" };
  return { id: _id, to: email, ...inviteText({ ...names, role, link, expiresAt }) };
}

/** Records the audit entry of a mail's end, once. */
async function recordEnd<E extends Exclude<InviteMailEnd, "gone">>(
  auditLog: AuditLog,
  invite: MailedInvite,
  end: E,
  at: Date,
): Promise<E> {
  await auditLog.append(entryOf(invite, end, at));
  return end;
}

const entryOf = ({ _id, email, organizationId }: MailedInvite, delivery: string, at: Date): AuditRecord => ({
  organizationId,
  entryKey: `invite-mail/${_id}`,
  at: at.getTime(),
  action: "mailInvite",
  actor: { type: "system", id: "mail" },
  resource: { type: "invite", id: _id },
  from: null,
  result: { status: null, code: null },
  before: auditValue({ email, delivery: "mailing" }),
  after: auditValue({ email, delivery }),
  decision: null,
});
