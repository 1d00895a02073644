import type { Db } from "mongodb";
import type { AuditLog } from "../src/audit/chain/appender.ts";
import { type MailActivities, mailActivities } from "../src/mail/invite-mail.ts";
import type { Mail } from "../src/mail/mail.ts";
import { InviteOutbox } from "../src/mail/outbox.ts";
import type { TemporalCalls } from "../src/actors/calls.ts";
import { startInviteMail } from "../src/actors/mails.ts";
import { authoritiesIn } from "../src/identity/authorities.ts";
import type { Logger } from "../src/lib/logger.ts";
import type { MailSettings } from "../src/mail/settings.ts";
import type { Metrics } from "../src/metrics/metrics.ts";
import type { Sealer } from "../src/secrets/sealer.ts";
import { INVITE_LINK_PURPOSE } from "../src/identity/invite-link.ts";

export interface MailOptions {
  readonly db: Db;
  /** Null: nothing is mailed. */
  readonly settings: MailSettings | null;
  readonly sealer: Sealer;
  readonly auditLog: AuditLog;
  readonly calls: TemporalCalls;
  readonly clock: () => Date;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** What a process has for mail, whichever of its parts it plays. */
export interface MailParts {
  readonly activities: MailActivities;
  /** Null: invites are not mailed; their links are answered. */
  readonly outbox: InviteOutbox | null;
}

/** Puts mail together. Throws `ConfigError` where the authorities that are to be trusted can't be read. */
export async function openMail(options: MailOptions): Promise<MailParts> {
  const { auditLog, calls, clock, db, logger, metrics, sealer, settings } = options;
  const activities = mailActivities({
    db,
    mail: settings === null ? null : await mailServer(settings),
    openLink: (inviteId, sealed) => sealer.open(INVITE_LINK_PURPOSE, inviteId, sealed),
    auditLog,
    clock,
    onOutcome: (outcome) => metrics.mailed(outcome),
    onWarning: (message, details) => logger.warn(details, message),
  });
  if (settings === null) return { activities, outbox: null };
  const outbox = new InviteOutbox({
    db,
    start: (input) => startInviteMail(calls, input),
    clock,
    onWarning: (message, err) => logger.warn({ err }, message),
  });
  return { activities, outbox };
}

/** Who mails nothing does not load what does it. */
async function mailServer({ caFile, ...settings }: MailSettings): Promise<Mail> {
  const { smtpMail } = await import("../src/mail/smtp.ts");
  return smtpMail(settings, await authoritiesIn("SMTP_CA_FILE", caFile));
}
