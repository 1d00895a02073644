import type { Db } from "mongodb";
import type { AuditLog } from "../src/audit/chain/appender.ts";
import { type MailActivities, mailActivities } from "../src/mail/activities.ts";
import { noticeHeld } from "../src/mail/approval-notices.ts";
import type { Mail } from "../src/mail/mail.ts";
import { InviteOutbox } from "../src/mail/invite-outbox.ts";
import type { TemporalCalls } from "../src/actors/calls.ts";
import { signalHeld, startInviteMail } from "../src/actors/mails.ts";
import { authoritiesIn } from "../src/identity/authorities.ts";
import type { Logger } from "../src/lib/logger.ts";
import { isUnavailable } from "../src/lib/unavailable.ts";
import type { MailSettings } from "../src/mail/settings.ts";
import type { Metrics } from "../src/metrics/metrics.ts";
import type { AccessProofs } from "../src/secrets/access-proofs.ts";
import type { Sealer } from "../src/secrets/sealer.ts";
import { INVITE_LINK_PURPOSE } from "../src/identity/invite-link.ts";
import type { MailedPerson } from "../src/messages/mail.ts";
import type { NoticeHeld } from "../src/webhooks/delivery/ports.ts";
import type { HeldPayment } from "../src/domain/approval-mails.ts";

export interface MailOptions {
  readonly db: Db;
  /** Null disables mail. */
  readonly settings: MailSettings | null;
  readonly sealer: Sealer;
  readonly accessProofs: AccessProofs;
  readonly auditLog: AuditLog;
  readonly calls: TemporalCalls;
  readonly clock: () => Date;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

export interface MailParts {
  readonly activities: MailActivities;
  /** Null if invites are not mailed; the response then contains the link. */
  readonly outbox: InviteOutbox | null;
  /** Null if nobody is mailed about payments on hold. */
  readonly noticeHeld: NoticeHeld | null;
}

/** Assembles mail. Throws `ConfigError` if the trusted authorities cannot be read. */
export async function openMail(options: MailOptions): Promise<MailParts> {
  const { accessProofs, auditLog, calls, clock, db, logger, metrics, sealer, settings } = options;
  const activities = mailActivities({
    db,
    mail: settings === null ? null : await mailServer(settings),
    baseUrl: settings?.baseUrl ?? "",
    openLink: (inviteId, sealed) => sealer.open(INVITE_LINK_PURPOSE, inviteId, sealed),
    isGenuine: (invite) => accessProofs.genuine("invite", invite) !== null,
    auditLog,
    clock,
    onOutcome: (outcome) => metrics.mailed(outcome),
    onWarning: (message, details) => logger.warn(details, message),
  });
  if (settings === null) return { activities, outbox: null, noticeHeld: null };
  const outbox = new InviteOutbox({
    db,
    start: (input) => startInviteMail(calls, input),
    clock,
    onWarning: (message, err) => logger.warn({ err }, message),
  });
  const tell = async (person: MailedPerson, held: readonly HeldPayment[]): Promise<void> => {
    try {
      await signalHeld(calls, person, held);
    } catch (err) {
      // A signal that can never be sent must not block the events after it.
      if (isUnavailable(err)) throw err;
      logger.error({ err, userId: person.userId }, "a person can't be mailed about payments on hold");
    }
  };
  return { activities, outbox, noticeHeld: (events) => noticeHeld({ db, tell }, events) };
}

/** Loads the mail client only if mail is configured. */
async function mailServer({ baseUrl: _links, caFile, ...settings }: MailSettings): Promise<Mail> {
  const { smtpMail } = await import("../src/mail/smtp.ts");
  return smtpMail(settings, await authoritiesIn("SMTP_CA_FILE", caFile));
}
