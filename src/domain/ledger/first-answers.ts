import type { LedgerCommand, LedgerReply } from "./commands.ts";
import type { Ledger } from "./state.ts";

/**
 * The engine may bring an update again, after a roll-over as a new one. A payment is recognized by its idempotency key; what people
 * and backends ask for by the request's id, under which its first answer is kept for a while.
 */
export type FirstAnswers = Map<string, FirstAnswer>;

/** The reply, or of a payment whether the command has changed it: the payment itself is read again. */
export type FirstAnswer = readonly [at: number, reply: LedgerReply | PaymentAnswer];

interface PaymentAnswer {
  readonly kind: "of_payment";
  readonly agentId: string;
  readonly transactionId: string;
  readonly changed: boolean;
}

/** The engine repeats a call for some seconds. */
const KEPT_MS = 300_000;
/** Beyond so many the oldest are dropped sooner. */
const KEPT_MAX = 256;

export function firstAnswer({ accounts, answers }: Ledger, { requestId }: LedgerCommand): LedgerReply | null {
  const known = requestId === undefined ? undefined : answers.get(requestId);
  if (known === undefined) return null;
  const [, reply] = known;
  if (reply.kind !== "of_payment") return reply;
  const open = accounts.get(reply.agentId)?.open.get(reply.transactionId);
  if (open === undefined) return { kind: "not_open" };
  return { kind: "payment", changed: reply.changed, payment: open.payment };
}

export function keepAnswer(
  { answers }: Ledger,
  command: LedgerCommand,
  reply: LedgerReply,
  now: number,
): void {
  const { requestId } = command;
  if (requestId === undefined) return;
  answers.set(requestId, [now, kept(command, reply)]);
  for (const [id, [at]] of answers) {
    if (answers.size <= KEPT_MAX && at > now - KEPT_MS) return;
    answers.delete(id);
  }
}

function kept(command: LedgerCommand, reply: LedgerReply): FirstAnswer[1] {
  if (reply.kind !== "payment" || !("agentId" in command)) return reply;
  const { changed, payment } = reply;
  const { transactionId } = payment.request;
  return { kind: "of_payment", agentId: command.agentId, transactionId, changed };
}
