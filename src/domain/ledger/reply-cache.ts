import type { LedgerCommand, LedgerReply, RecordedCap } from "./commands.ts";
import { fenceOf } from "./pausing.ts";
import type { AccountStatus, Ledger, Level } from "./state.ts";

/**
 * Cached replies. Temporal may deliver an update again, after a roll-over as a new one. Payments are recognized by
 * their idempotency key; requests of people and backends by their id, under which the first reply is cached for a
 * while.
 */
export type ReplyCache = Map<string, CachedReply>;

/** A reply, or for a large one a reference by which it is rebuilt. */
export type CachedReply = readonly [
  at: number,
  reply: LedgerReply | PaymentReplyRef | CapsReplyRef | StatusReplyRef | StopReplyRef,
];

interface PaymentReplyRef {
  readonly kind: "payment_ref";
  readonly agentId: string;
  readonly transactionId: string;
  readonly changed: boolean;
}

/** The fence is derived again, so that a repeated pause is not answered before its fence is laid either. */
interface StatusReplyRef {
  readonly kind: "status_ref";
  readonly agentId: string;
  readonly status: AccountStatus;
  readonly changed: boolean;
}

interface StopReplyRef {
  readonly kind: "stop_ref";
  readonly teamId: string | null;
  readonly paused: number;
  readonly revoked: number;
}

interface CapsReplyRef {
  readonly kind: "caps_ref";
  readonly version: number;
}

/** Retention of replies; Temporal repeats a call for some seconds. */
const REPLY_RETENTION_MS = 300_000;
/** Maximum cached replies; beyond it the oldest are dropped sooner. */
const CACHED_REPLIES_MAX = 256;

export function cachedReply(ledger: Ledger, { requestId }: LedgerCommand): LedgerReply | null {
  const { accounts, replies } = ledger;
  const known = requestId === undefined ? undefined : replies.get(requestId);
  if (known === undefined) return null;
  const [, reply] = known;
  if (reply.kind === "caps_ref")
    return { kind: "replaced", version: reply.version, caps: unrecorded(ledger) };
  if (reply.kind === "stop_ref") {
    const { paused, revoked, teamId } = reply;
    const fences = [...accounts.values()].flatMap((account) =>
      teamId === null || account.teamId === teamId ? (fenceOf(account) ?? []) : [],
    );
    return { kind: "stopped", paused, revoked, fences };
  }
  if (reply.kind === "status_ref") {
    const { agentId, changed, status } = reply;
    const account = accounts.get(agentId);
    return {
      kind: "account_status",
      status,
      changed,
      fence: account === undefined ? null : fenceOf(account),
    };
  }
  if (reply.kind !== "payment_ref") return reply;
  const open = accounts.get(reply.agentId)?.open.get(reply.transactionId);
  if (open === undefined) return { kind: "not_open" };
  return { kind: "payment", changed: reply.changed, payment: open.payment };
}

interface NewReply {
  readonly requestId: string;
  readonly reply: CachedReply[1];
}

/** Returns the reply to cache, before the commit, since nothing may fail after it; null if not repeated. */
export const replyToCache = (command: LedgerCommand, reply: LedgerReply): NewReply | null =>
  command.requestId === undefined ? null : { requestId: command.requestId, reply: cacheable(command, reply) };

export function cacheReply({ replies }: Ledger, { reply, requestId }: NewReply, now: number): void {
  replies.set(requestId, [now, reply]);
  for (const [id, [at]] of replies) {
    if (replies.size <= CACHED_REPLIES_MAX && at > now - REPLY_RETENTION_MS) return;
    replies.delete(id);
  }
}

/** Returns the caps that are not in the records yet, for the reply to a repeated request. */
function unrecorded({ project, teams }: Ledger): RecordedCap[] {
  const levels: (readonly [string | null, Level])[] = [[null, project], ...teams];
  return levels
    .filter(([, { cap, recordedCapVersion }]) => recordedCapVersion < cap.version)
    .map(([teamId, { cap }]) => ({ teamId, cap }));
}

function cacheable(command: LedgerCommand, reply: LedgerReply): CachedReply[1] {
  if (reply.kind === "replaced") return { kind: "caps_ref", version: reply.version };
  if (reply.kind === "stopped" && command.kind === "stop_accounts") {
    const { paused, revoked } = reply;
    return { kind: "stop_ref", teamId: command.teamId, paused, revoked };
  }
  if (!("agentId" in command)) return reply;
  const { agentId } = command;
  if (reply.kind === "account_status") {
    const { changed, status } = reply;
    return { kind: "status_ref", agentId, status, changed };
  }
  if (reply.kind !== "payment") return reply;
  const { changed, payment } = reply;
  return { kind: "payment_ref", agentId, transactionId: payment.request.transactionId, changed };
}
