import { activityInfo, ApplicationFailure } from "@temporalio/activity";
import { ApplicationFailureCategory } from "@temporalio/common";
import type { Activities } from "../../activities/types.ts";
import { Gate } from "../lib/gate.ts";
import { mailApprovals } from "./approval-mail.ts";
import { type InviteMailDependencies, mailInvite } from "./invite-mail.ts";
import { MailUnsent } from "./mail.ts";

/** Maximum mails in flight to the mail server from one process. */
const AT_ONCE_MAX = 5;
/** Maximum mails in flight of one organization. */
const OF_ORGANIZATION_MAX = 3;
/** First and longest retry delay of a mail over the limit; it grows, so that many do not keep the worker busy. */
const BUSY_RETRY_MS = 1_000;
const BUSY_RETRY_MAX_MS = 60_000;

export interface MailDependencies extends InviteMailDependencies {
  /** Address of the dashboard, without a trailing slash. */
  readonly baseUrl: string;
}

export type MailActivities = Pick<Activities, "mailInvite" | "mailApprovals">;

/** Returns the activities of the mailing workflows, which share the process's limits. */
export function mailActivities(dependencies: MailDependencies): MailActivities {
  const { mail, onOutcome, onWarning } = dependencies;
  const sending = new Gate(AT_ONCE_MAX);
  const inPlace = async <T>(organizationId: string, work: () => Promise<T>): Promise<T> => {
    const place = sending.enter({ name: organizationId, max: OF_ORGANIZATION_MAX });
    if (place === null) throw later("too many mails are in flight", busyMs(activityInfo().attempt));
    try {
      return await work();
    } finally {
      place.release();
    }
  };
  const onUnsent = (
    error: unknown,
    message: string,
    details: Readonly<Record<string, unknown>>,
  ): MailUnsent => {
    if (!(error instanceof MailUnsent)) throw error;
    onOutcome("unsent");
    onWarning(message, { ...details, reason: error.message });
    return error;
  };
  return {
    mailInvite: (input) =>
      inPlace(input.organizationId, async () => {
        try {
          return await mailInvite(dependencies, input);
        } catch (error) {
          const { inviteId } = input;
          const unsent = onUnsent(error, "an invite was not mailed and is tried again", { inviteId });
          throw later(unsent.message);
        }
      }),

    mailApprovals: (input) =>
      inPlace(input.organizationId, async () => {
        const { userId } = input;
        try {
          if (mail === null) throw new MailUnsent("this worker has no SMTP_URL");
          const end = await mailApprovals(dependencies, mail, input);
          if (end === "sent" || end === "refused") onOutcome(end);
          if (end === "refused")
            onWarning("the mail server refuses a mail about approvals for good", { userId });
          return end;
        } catch (error) {
          onUnsent(error, "a mail about approvals was not sent and is tried again", { userId });
          return "unsent";
        }
      }),
  };
}

/** Jittered, so that mails refused together do not return together. */
const busyMs = (attempt: number): number =>
  Math.min(attempt * BUSY_RETRY_MS, BUSY_RETRY_MAX_MS) * (0.5 + Math.random());

/** Returns a failure that is retried; the service's own log has the reason. */
const later = (message: string, afterMs?: number): ApplicationFailure =>
  ApplicationFailure.create({
    message,
    category: ApplicationFailureCategory.BENIGN,
    ...(afterMs === undefined ? {} : { nextRetryDelay: afterMs }),
  });
