import type { LedgerCommand, LedgerReply, RecordedCap } from "./commands.ts";
import type { Ledger, Level } from "./state.ts";

/**
 * The engine may bring an update again, after a roll-over as a new one. A payment is recognized by its idempotency key;
 * requests of people and backends by the request's id, under which the first reply is cached for a while.
 */
export type ReplyCache = Map<string, CachedReply>;

/** The reply; a large one is cached as a reference, and the rest is read again. */
export type CachedReply = readonly [at: number, reply: LedgerReply | PaymentReplyRef | CapsReplyRef];

interface PaymentReplyRef {
  readonly kind: "payment_ref";
  readonly agentId: string;
  readonly transactionId: string;
  readonly changed: boolean;
}

interface CapsReplyRef {
  readonly kind: "caps_ref";
  readonly version: number;
}

/** The engine repeats a call for some seconds. */
const REPLY_RETENTION_MS = 300_000;
/** Beyond so many the oldest are dropped sooner. */
const CACHED_REPLIES_MAX = 256;

export function cachedReply(ledger: Ledger, { requestId }: LedgerCommand): LedgerReply | null {
  const { accounts, replies } = ledger;
  const known = requestId === undefined ? undefined : replies.get(requestId);
  if (known === undefined) return null;
  const [, reply] = known;
  if (reply.kind === "caps_ref")
    return { kind: "replaced", version: reply.version, caps: unrecorded(ledger) };
  if (reply.kind !== "payment_ref") return reply;
  const open = accounts.get(reply.agentId)?.open.get(reply.transactionId);
  if (open === undefined) return { kind: "not_open" };
  return { kind: "payment", changed: reply.changed, payment: open.payment };
}

/** A reply to cache, and its request's id. */
interface NewReply {
  readonly requestId: string;
  readonly reply: CachedReply[1];
}

/** Made before anything is put into force, since nothing may fail after that; null: it is never repeated. */
export const replyToCache = (command: LedgerCommand, reply: LedgerReply): NewReply | null =>
  command.requestId === undefined ? null : { requestId: command.requestId, reply: cacheable(command, reply) };

export function cacheReply({ replies }: Ledger, { reply, requestId }: NewReply, now: number): void {
  replies.set(requestId, [now, reply]);
  for (const [id, [at]] of replies) {
    if (replies.size <= CACHED_REPLIES_MAX && at > now - REPLY_RETENTION_MS) return;
    replies.delete(id);
  }
}

/** A repeated request writes what is not in the records yet, and nothing else. */
function unrecorded({ project, teams }: Ledger): RecordedCap[] {
  const levels: (readonly [string | null, Level])[] = [[null, project], ...teams];
  return levels
    .filter(([, { cap, recordedCapVersion }]) => recordedCapVersion < cap.version)
    .map(([teamId, { cap }]) => ({ teamId, cap }));
}

function cacheable(command: LedgerCommand, reply: LedgerReply): CachedReply[1] {
  if (reply.kind === "replaced") return { kind: "caps_ref", version: reply.version };
  if (reply.kind !== "payment" || !("agentId" in command)) return reply;
  const { changed, payment } = reply;
  const { transactionId } = payment.request;
  return { kind: "payment_ref", agentId: command.agentId, transactionId, changed };
}
