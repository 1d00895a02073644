import {
  condition,
  continueAsNew,
  defineSignal,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from "@temporalio/workflow";
import type { Activities } from "../activities/types.ts";
import {
  type ApprovalMailEnd,
  type ApprovalMailState,
  ended,
  type HeldPayment,
  nextStep,
  NOTHING_TO_MAIL,
  withMailInFlight,
  withHeld,
} from "../src/domain/approval-mails.ts";
import { type ApprovalMailsInput, HELD_SIGNAL } from "../src/messages/mail.ts";
import { sideTaskQueue } from "../src/messages/task-queues.ts";

export const held = defineSignal<[readonly HeldPayment[]]>(HELD_SIGNAL);

/** History length after which the workflow continues as new. Each signal adds four events. */
const HISTORY_EVENTS_MAX = 500;

/**
 * Mails one person about payments on hold, by the rules of `src/domain/approval-mails.ts`. Ends when nothing waits and
 * no mail of the last hour counts against the limit. The signal of a new payment on hold starts it again.
 */
export async function approvalMails({
  organizationId,
  userId,
  ...before
}: ApprovalMailsInput): Promise<void> {
  const person = { organizationId, userId };
  let state = before.state ?? NOTHING_TO_MAIL;
  setHandler(held, (payments) => void (state = withHeld(state, payments, Date.now())));
  for (;;) {
    const step = nextStep(state, Date.now());
    if (step.kind === "end") return;
    if (isLong()) await continueAsNew<typeof approvalMails>({ ...person, state });
    if (step.kind === "wait") {
      setCurrentDetails(describe(state, step.until));
      const isSooner = (): boolean => {
        const next = nextStep(state, Date.now());
        return next.kind !== "wait" || next.until < step.until;
      };
      await condition(() => isLong() || isSooner(), step.until - Date.now());
    } else {
      const { mail } = step;
      state = withMailInFlight(state, mail, Date.now());
      const end = await mailed({ ...person, mail });
      state = ended(state, mail, end, Date.now());
    }
  }
}

const isLong = (): boolean => workflowInfo().historyLength > HISTORY_EVENTS_MAX;

async function mailed(input: Parameters<Activities["mailApprovals"]>[0]): Promise<ApprovalMailEnd> {
  const { mailApprovals } = proxyActivities<Activities>({
    taskQueue: sideTaskQueue(workflowInfo().taskQueue, "webhooks"),
    startToCloseTimeout: "1 minute",
    scheduleToCloseTimeout: "15 minutes",
    retry: { initialInterval: "1 second", backoffCoefficient: 2, maximumInterval: "1 minute" },
  });
  try {
    return await mailApprovals(input);
  } catch (error) {
    if (isCancellation(error)) throw error;
    return "unsent";
  }
}

const describe = ({ digest, failures, waiting }: ApprovalMailState, until: number): string => {
  const next = new Date(until).toISOString();
  if (digest === null && waiting.length === 0)
    return `Nothing waits to be mailed; mails are counted until ${next}.`;
  return `**${failures > 0 ? `Failed ${failures} times` : "Waiting"}**: the next mail is due at ${next}.`;
};
