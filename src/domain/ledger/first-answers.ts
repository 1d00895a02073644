import type { LedgerCommand, LedgerReply, RecordedCap } from "./commands.ts";
import type { Ledger, Level } from "./state.ts";

/**
 * The engine may bring an update again, after a roll-over as a new one. A payment is recognized by its idempotency key; what people
 * and backends ask for by the request's id, under which its first answer is kept for a while.
 */
export type FirstAnswers = Map<string, FirstAnswer>;

/** The reply; of what may be large only what was new in it, and the rest is read again. */
export type FirstAnswer = readonly [at: number, reply: LedgerReply | PaymentAnswer | CapsAnswer];

interface PaymentAnswer {
  readonly kind: "of_payment";
  readonly agentId: string;
  readonly transactionId: string;
  readonly changed: boolean;
}

interface CapsAnswer {
  readonly kind: "of_caps";
  readonly version: number;
}

/** The engine repeats a call for some seconds. */
const KEPT_MS = 300_000;
/** Beyond so many the oldest are dropped sooner. */
const KEPT_MAX = 256;

export function firstAnswer(ledger: Ledger, { requestId }: LedgerCommand): LedgerReply | null {
  const { accounts, answers } = ledger;
  const known = requestId === undefined ? undefined : answers.get(requestId);
  if (known === undefined) return null;
  const [, reply] = known;
  if (reply.kind === "of_caps") return { kind: "replaced", version: reply.version, caps: unrecorded(ledger) };
  if (reply.kind !== "of_payment") return reply;
  const open = accounts.get(reply.agentId)?.open.get(reply.transactionId);
  if (open === undefined) return { kind: "not_open" };
  return { kind: "payment", changed: reply.changed, payment: open.payment };
}

/** What is kept of an answer, and under which request's id. */
export interface KeptAnswer {
  readonly requestId: string;
  readonly reply: FirstAnswer[1];
}

/** Made before anything is put into force, since nothing may fail after that; null: nobody asks for this again. */
export const answerToKeep = (command: LedgerCommand, reply: LedgerReply): KeptAnswer | null =>
  command.requestId === undefined ? null : { requestId: command.requestId, reply: kept(command, reply) };

export function keepAnswer({ answers }: Ledger, { reply, requestId }: KeptAnswer, now: number): void {
  answers.set(requestId, [now, reply]);
  for (const [id, [at]] of answers) {
    if (answers.size <= KEPT_MAX && at > now - KEPT_MS) return;
    answers.delete(id);
  }
}

/** Whoever asks again writes what is not in the records yet, and nothing else. */
function unrecorded({ project, teams }: Ledger): RecordedCap[] {
  const levels: (readonly [string | null, Level])[] = [[null, project], ...teams];
  return levels
    .filter(([, { cap, recordedCapVersion }]) => recordedCapVersion < cap.version)
    .map(([teamId, { cap }]) => ({ teamId, cap }));
}

function kept(command: LedgerCommand, reply: LedgerReply): FirstAnswer[1] {
  if (reply.kind === "replaced") return { kind: "of_caps", version: reply.version };
  if (reply.kind !== "payment" || !("agentId" in command)) return reply;
  const { changed, payment } = reply;
  const { transactionId } = payment.request;
  return { kind: "of_payment", agentId: command.agentId, transactionId, changed };
}
