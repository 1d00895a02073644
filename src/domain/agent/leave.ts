import { type Command, type Decided, none, one } from "./decided.ts";
import type { Payment } from "./payment.ts";
import type { AgentState, OpenPayment } from "./state.ts";

/**
 * Who may send what was decided. A payment is handed to its rail for the first time only with its agent's leave: the
 * decision gives it, and the actor gives it again to whoever asks. It is good for a moment; who has paused the agent is
 * answered once that is over. So nothing is begun after that answer, though no process is asked what it is about to do.
 */
export type Leave =
  | "send"
  /** The agent is paused: what the rail has already goes on, and nothing else. */
  | "wait"
  /** It is released, unless the rail has it already. */
  | "withdraw";

/** Whoever has leave begins to send within so long, counted from before it asked. */
export const LEAVE_MS = 1_000;

/** The actor waits so much longer than the leave is good for: its engine's clocks may differ by that. */
const CLOCKS_APART_MAX_MS = 250;

/** Until when leave that is given now may be made use of, as the actor counts. */
export const leaveUntil = (now: number): number => now + LEAVE_MS + CLOCKS_APART_MAX_MS;

/** Decided and on its way to its end: it may be sent, or sent again, by whoever comes next. */
export const isOnItsWay = ({ phase, status }: Payment): boolean =>
  status === "pending" && (phase === "sending" || phase === "following");

/** Answers a process that is about to send a payment, or to send it again after its rail has undone it. */
export function decideAskToSend(state: AgentState, { transactionId }: Command<"ask_to_send">): Decided {
  const open = state.open[transactionId];
  if (open === undefined) return none({ kind: "not_open" });
  const { payment } = open;
  if (!isOnItsWay(payment)) return none({ kind: "payment", changed: false, payment });
  const leave = leaveOf(state, open);
  const reply = { kind: "leave", leave } as const;
  return leave === "send" ? one({ type: "leave_given" }, reply) : none(reply);
}

function leaveOf({ lifecycle }: AgentState, { isWithdrawn }: OpenPayment): Leave {
  if (isWithdrawn === true) return "withdraw";
  return lifecycle === "paused" ? "wait" : "send";
}

/** How long it takes until no process begins to send any more of what it was given leave to. */
export function quietAfterMs({ leaveUntil: until = 0, open }: AgentState, now: number): number {
  const isAnyOnItsWay = Object.values(open).some(({ payment }) => isOnItsWay(payment));
  return isAnyOnItsWay ? Math.max(0, until - now) : 0;
}

/** Whether the agent has a key that is good; an actor that does not know of keys has. */
export const hasLiveKey = ({ access }: AgentState): boolean =>
  access === undefined || access.activeKeyId !== null;

/** What was decided and not sent is not to be sent any more. */
export function withdrawOpen({ open }: AgentState, now: number): void {
  for (const each of Object.values(open)) {
    if (!isOnItsWay(each.payment)) continue;
    each.isWithdrawn = true;
    wake(each, now);
  }
}

/** What waited for the agent to be resumed is seen to at once. */
export function wakeOpen({ open }: AgentState, now: number): void {
  for (const each of Object.values(open)) wake(each, now);
}

function wake(open: OpenPayment, now: number): void {
  if (open.payment.phase === "sending") open.dueAt = now;
}
