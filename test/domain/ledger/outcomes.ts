import { isDeepStrictEqual } from "node:util";
import { must, mustEqual } from "../../../lab/simulation/audit/violation.ts";
import { isInFlight } from "../../../src/domain/ledger/permission.ts";
import {
  moneyOf,
  type StoredPayment,
  type RailOutcome,
  settle,
  withoutTexts,
  withoutPublished,
} from "../../../src/domain/ledger/payment.ts";
import { ledgerBytes } from "../../../src/domain/ledger/weight.ts";
import type { CommandOf, LedgerCommand } from "../../../src/domain/ledger/commands.ts";
import { human } from "../support/actor.ts";
import type { ActionOf, Fate } from "./actions.ts";
import { BOUNDS, type LedgerWorld } from "./world.ts";

/** What becomes of payments: by their rails, by people, and by who asks whether to send them. */

const OUTCOMES: Readonly<Record<Fate, RailOutcome>> = {
  settled: { status: "settled" },
  pending: { status: "pending" },
  failed: { status: "failed", code: "CARD_DECLINED", reason: "no" },
  withheld: { status: "withheld" },
};

const isAtItsRail = (payment: StoredPayment): boolean => isInFlight(payment) || payment.phase === "following";

/** The rail says what became of a payment; said too late, or of what was never sent, it changes nothing. */
export function rail(world: LedgerWorld, { confirms, fate, isAny, pick }: ActionOf<"rail">): void {
  const booked = world.pick(pick, isAny ? undefined : isAtItsRail);
  if (booked === undefined) return;
  const { agentId, request } = booked;
  const before = booked.payment;
  const outcome = { result: OUTCOMES[fate], at: world.now };
  const confirmation = { kind: "confirm", agentId, transactionId: request.transactionId, outcome } as const;
  // What its effects are is known only once it is confirmed: a revision beyond its own confirms what it becomes.
  mustEqual(
    world.judge({ ...confirmation, revision: confirms ? 99 : 0 }),
    { kind: "confirmed" },
    "a confirmation",
  );
  booked.payment = world.open(agentId, request.transactionId) ?? settle(before, outcome.result, outcome.at);
  world.note(`rail: ${booked.payment.status}`);
  const { transactionId } = request;
  if (confirms) booked.payment = withoutTexts(withoutPublished(booked.payment));
  mustEqual(booked.payment.status, statusAfter(before, fate), `what ${fate} makes of ${transactionId}`);
  if (!isDeepStrictEqual(moneyOf(before), moneyOf(booked.payment))) world.model.counted(agentId, world.now);
}

/** What a payment's status is once its rail has said so. */
function statusAfter({ phase, status }: StoredPayment, fate: Fate): StoredPayment["status"] {
  if (phase !== "sending" && phase !== "following") return status;
  if (fate === "settled") return "approved";
  if (status !== "pending" || fate === "pending") return status;
  return fate === "failed" ? "failed" : "denied";
}

export function confirm(world: LedgerWorld, { pick }: ActionOf<"confirm">): void {
  const booked = world.pick(pick);
  if (booked === undefined) return;
  const { agentId, payment, request } = booked;
  const { transactionId } = request;
  world.judge({ kind: "confirm", agentId, transactionId, revision: payment.revision, outcome: null });
  booked.payment = withoutTexts(withoutPublished(payment));
  const isOpen = world.open(agentId, transactionId) !== undefined;
  mustEqual(isOpen, payment.phase !== "done", `whether ${transactionId} is open once it is confirmed`);
}

export function resolve(world: LedgerWorld, { how, pick }: ActionOf<"resolve">): void {
  const { model, now } = world;
  const booked = world.pick(pick, ({ phase }) => phase === "held");
  const agent = booked && model.agents.get(booked.agentId);
  if (booked === undefined || agent === undefined) return;
  const { agentId, request } = booked;
  const before = booked.payment;
  const place = { agentId, transactionId: request.transactionId, requestId: world.requestId() };
  const versionOf = (id: string): number => model.rules.get(id) ?? 0;
  const rulesVersions = {
    project: versionOf("project"),
    team: versionOf(agent.teamId),
    agent: versionOf(agentId),
  };
  const isHeavy = ledgerBytes(world.ledger) >= BOUNDS.resolvedBelowBytes && ["approve", "deny"].includes(how);
  const reply = world.judge(resolutionOf(how, { ...place, rulesVersions }));
  if (isHeavy) {
    world.note("too heavy to resolve");
    must(reply.kind === "too_many_open", "a resolution without room for it");
    return mustEqual([reply.of, reply.bound], ["project", "bytes"], "a resolution without room for it");
  }
  must(reply.kind === "payment", () => `${how} was answered ${JSON.stringify(reply)}`);
  const isLate = now >= (before.approval?.expiresAt ?? 0);
  const seen = reply.payment.denial?.code ?? null;
  const code = model.denialOf(agent, request.amountMc, now, { own: booked, seen });
  booked.payment = reply.payment;
  booked.day = reply.payment.day;
  const { denial, status } = reply.payment;
  world.note(isLate ? "too late" : how);
  mustEqual(reply.changed, !isLate, `whether ${how} came in time`);
  if (isLate || how === "expire") mustEqual(status, "expired", "what comes too late");
  else if (how === "approve") {
    mustEqual(denial?.code ?? null, code, "what is approved, by its limits");
    mustEqual(status, code === null ? "pending" : "failed", "what is approved");
    if (code === null) mustEqual(reply.payment.day, model.dayOf(agentId, now), "the day it counts on");
  } else mustEqual(status, "denied", how);
  model.counted(agentId, now);
}

function resolutionOf(
  how: ActionOf<"resolve">["how"],
  {
    rulesVersions,
    ...place
  }: Required<Pick<CommandOf<"approve">, "agentId" | "transactionId" | "requestId" | "rulesVersions">>,
): LedgerCommand {
  if (how === "approve") return { kind: how, ...place, by: human, proof: "", rulesVersions };
  return how === "deny"
    ? { kind: how, ...place, by: human, feedback: "no", proof: "" }
    : { kind: how, ...place };
}

/** A process is about to send a payment. */
export function ask(world: LedgerWorld, { pick }: ActionOf<"ask">): void {
  const booked = world.pick(pick);
  if (booked === undefined) return;
  const { agentId, payment, request } = booked;
  const reply = world.judge({ kind: "request_permission", agentId, transactionId: request.transactionId });
  if (!isInFlight(payment)) return mustEqual(reply.kind, "payment", "permission for what is not to be sent");
  const isPaused = world.model.agents.get(agentId)?.status === "paused";
  const kind = booked.isWithdrawn ? "withdraw" : isPaused ? "wait" : "send";
  const what = `permission to send ${request.transactionId}`;
  if (reply.kind !== "permission") return mustEqual(reply.kind, "permission", what);
  const { permission } = reply;
  mustEqual(permission.kind, kind, what);
  if (permission.kind === "send") world.permitted(agentId, permission.permit);
  if (permission.kind === "wait") world.fenced(agentId, permission.fence);
  world.note(`permission: ${kind}`);
}
