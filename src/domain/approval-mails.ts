/**
 * Decides when a person is mailed about held payments. Each payment gets a mail of its own while the hour's limit has
 * room for all that wait; otherwise they are collected into one digest, sent as soon as there is room for one mail.
 * Pure: a workflow keeps the state and sends the mails.
 */

const HOUR_MS = 3_600_000;

/** Maximum mails to one person within any hour. */
export const MAILS_PER_HOUR_MAX = 10;

/** Maximum people of one organization who are mailed: each costs a signal for every batch of held payments. */
export const MAILED_PEOPLE_MAX = 50;

/** Pauses after failed attempts; the last one repeats. */
const RETRY_PAUSES_MS = [5_000, 15_000, 45_000, 135_000, 405_000, 900_000] as const;

/** Maximum failed attempts in a row before waiting mails are dropped: about a day. */
export const MAIL_TRIES_MAX = 100;

export interface HeldPayment {
  readonly approvalId: string;
  readonly heldAt: number;
}

/** A period in epoch milliseconds, both ends inclusive. */
export interface Period {
  readonly since: number;
  readonly through: number;
}

/** A mail about one payment, or about all payments held in a period that are undecided when the mail is sent. */
export type ApprovalMail =
  ({ readonly kind: "single" } & HeldPayment) | ({ readonly kind: "digest" } & Period);

/**
 * `withdrawn`: everything in the mail has been decided. `refused`: the mail server accepts no mail for the address.
 * `unwanted`: the person has left, may not decide, or has switched mails off. `unsent`: to be retried.
 */
export const APPROVAL_MAIL_ENDS = ["sent", "refused", "withdrawn", "unwanted", "unsent"] as const;
export type ApprovalMailEnd = (typeof APPROVAL_MAIL_ENDS)[number];

interface CountedMail {
  readonly at: number;
  /** Null for a digest. */
  readonly approvalId: string | null;
}

export interface ApprovalMailState {
  /** Payments to be mailed one by one, no more than the hour has room for. */
  readonly waiting: readonly HeldPayment[];
  /** Period that the next digest covers; null if none is collected. */
  readonly digest: Period | null;
  /** Mails of the last hour, oldest first, including the one being sent. */
  readonly counted: readonly CountedMail[];
  /** Failed attempts in a row. */
  readonly failures: number;
  /** Epoch milliseconds before which nothing is sent. */
  readonly pausedUntil: number;
}

export const NOTHING_TO_MAIL: ApprovalMailState = {
  waiting: [],
  digest: null,
  counted: [],
  failures: 0,
  pausedUntil: 0,
};

export type NextStep =
  | { readonly kind: "send"; readonly mail: ApprovalMail }
  | { readonly kind: "wait"; readonly until: number }
  /** Ends the workflow: nothing waits, and no mail counts any more. */
  | { readonly kind: "end" };

/** Adds held payments, except those that already wait or were mailed within the hour. */
export function withHeld(
  state: ApprovalMailState,
  held: readonly HeldPayment[],
  now: number,
): ApprovalMailState {
  const mailed = new Set(recentMails(state, now).map(({ approvalId }) => approvalId));
  const waiting = new Map([...state.waiting, ...held].map((each) => [each.approvalId, each]));
  for (const approvalId of waiting.keys()) if (mailed.has(approvalId)) waiting.delete(approvalId);
  return collected({ ...state, waiting: [...waiting.values()] }, now);
}

export function nextStep(state: ApprovalMailState, now: number): NextStep {
  const recent = recentMails(state, now);
  const mail = nextMail(state);
  if (mail === null) {
    const newest = recent.at(-1);
    return newest === undefined ? { kind: "end" } : { kind: "wait", until: newest.at + HOUR_MS };
  }
  const oldest = recent.length < MAILS_PER_HOUR_MAX ? undefined : recent[0];
  const until = Math.max(state.pausedUntil, oldest === undefined ? 0 : oldest.at + HOUR_MS);
  return until > now ? { kind: "wait", until } : { kind: "send", mail };
}

/** Returns the state while a mail is being sent, which counts from now on. */
export function withMailInFlight(
  state: ApprovalMailState,
  mail: ApprovalMail,
  now: number,
): ApprovalMailState {
  const isSingle = mail.kind === "single";
  return {
    ...state,
    waiting: isSingle ? state.waiting.slice(1) : state.waiting,
    digest: isSingle ? state.digest : null,
    counted: [...recentMails(state, now), { at: now, approvalId: isSingle ? mail.approvalId : null }],
  };
}

/** Returns the state after the mail being sent has ended with `end`. */
export function ended(
  state: ApprovalMailState,
  mail: ApprovalMail,
  end: ApprovalMailEnd,
  now: number,
): ApprovalMailState {
  const counts = end === "sent" || end === "refused";
  const counted = counts ? state.counted : state.counted.slice(0, -1);
  const failures = end === "unsent" ? state.failures + 1 : 0;
  if (end === "unwanted" || failures === MAIL_TRIES_MAX) return { ...NOTHING_TO_MAIL, counted };
  if (end !== "unsent") return { ...state, counted, failures, pausedUntil: 0 };
  const pauseMs = RETRY_PAUSES_MS[Math.min(failures, RETRY_PAUSES_MS.length) - 1] ?? 0;
  const putBack =
    mail.kind === "single"
      ? { waiting: [{ approvalId: mail.approvalId, heldAt: mail.heldAt }, ...state.waiting] }
      : { digest: spanning([mail, ...(state.digest === null ? [] : [state.digest])]) };
  return collected({ ...state, ...putBack, counted, failures, pausedUntil: now + pauseMs }, now);
}

function nextMail({ digest, waiting }: ApprovalMailState): ApprovalMail | null {
  const [first] = waiting;
  if (first !== undefined) return { kind: "single", ...first };
  return digest === null ? null : { kind: "digest", ...digest };
}

/** Moves waiting payments into the digest if there is one, or if the hour has no room for all of them. */
function collected(state: ApprovalMailState, now: number): ApprovalMailState {
  const { digest, waiting } = state;
  const room = MAILS_PER_HOUR_MAX - recentMails(state, now).length;
  if (waiting.length === 0 || (digest === null && waiting.length <= room)) return state;
  const instants = waiting.map(({ heldAt }) => ({ since: heldAt, through: heldAt }));
  return { ...state, waiting: [], digest: spanning([...instants, ...(digest === null ? [] : [digest])]) };
}

const spanning = (periods: readonly Period[]): Period => ({
  since: Math.min(...periods.map(({ since }) => since)),
  through: Math.max(...periods.map(({ through }) => through)),
});

const recentMails = ({ counted }: ApprovalMailState, now: number): readonly CountedMail[] =>
  counted.filter(({ at }) => at > now - HOUR_MS);
