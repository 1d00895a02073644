import { mcOf } from "../../../src/domain/money.ts";
import { must, mustEqual } from "../../../lab/simulation/audit/violation.ts";
import type { PaymentRequest } from "../../../src/domain/ledger/payment.ts";
import type { CommandOf, LedgerReply } from "../../../src/domain/ledger/commands.ts";
import type { TooManyOpen } from "../../../src/domain/ledger/capacity.ts";
import { decidedPayment } from "../../../src/domain/ledger/pay.ts";
import { ledgerBytes, weightOf } from "../../../src/domain/ledger/weight.ts";
import type { PaymentRules } from "../../../src/domain/rules/checks.ts";
import { APPROVAL_WINDOW_SECONDS } from "../support/actor.ts";
import type { ActionOf } from "./actions.ts";
import type { AccountModel, PaymentModel } from "./book.ts";
import { BOUNDS, leastBytes, type LedgerWorld } from "./world.ts";

/** A payment that is asked for, and what the book knows of its key. */
interface Asked {
  readonly action: ActionOf<"pay">;
  readonly agent: AccountModel;
  readonly keyId: string;
  readonly known: PaymentModel | undefined;
  readonly request: PaymentRequest;
  readonly taken: Taken;
}

/** The payments open before one more is asked for, and the bytes, which weighing anew can only lower. */
interface Taken {
  readonly ofAgent: number;
  readonly ofProject: number;
  readonly agentBytes: { readonly least: number; readonly most: number };
  readonly projectLeastBytes: number;
}

/** An agent pays, as a server asks for it: where the ledger wants a look-up it looks, and asks again. */
export function pay(world: LedgerWorld, action: ActionOf<"pay">): void {
  const agent = world.agent(action.agent);
  if (agent === undefined) return;
  const request = requestFor(world, agent, action);
  const keyId = action.key === "own" ? (agent.keyId ?? "none") : "key-of-somebody";
  const known = world.model.under(agent.agentId, request.keyHash);
  const asked = { action, agent, keyId, known, request, taken: takenIn(world, agent) };
  let reply = world.judge(payCommand(asked, 0));
  if (reply.kind === "records_check_required") reply = lookUp(world, asked, reply.closed);
  if (reply.kind === "decided") expectRoom(asked.taken);
  expectPaymentReply(world, asked, reply);
}

function takenIn(world: LedgerWorld, { agentId }: AccountModel): Taken {
  const account = world.account(agentId);
  const most = account?.weightBytes ?? 0;
  const least = account === undefined ? 0 : Math.min(most, weightOf(account, world.now));
  return {
    ofAgent: account?.open.size ?? 0,
    ofProject: world.openPayments().length,
    agentBytes: { least, most },
    projectLeastBytes: leastBytes(world),
  };
}

/** What an agent has open is less than its part of what its project has left. */
function expectRoom({ agentBytes, ofAgent, ofProject, projectLeastBytes }: Taken): void {
  const left = BOUNDS.openOfProject - ofProject;
  const leftBytes = BOUNDS.paidBelowBytes - projectLeastBytes;
  must(leftBytes > 0, "a payment beyond the ledger's weight");
  if (ofAgent === 0) return;
  must(left <= 0 || ofAgent < left / BOUNDS.partsOfRest, "a payment beyond the agent's share of its project");
  must(
    agentBytes.least < leftBytes / BOUNDS.partsOfRest,
    "a payment beyond the agent's share of the ledger's weight",
  );
}

function payCommand(
  { action, agent, keyId, request }: Asked,
  recordsCheckedThrough: number,
  similarAt?: number,
): CommandOf<"pay"> {
  const rules = CHECKS[action.rules];
  return {
    kind: "pay",
    agentId: agent.agentId,
    keyId,
    request,
    approvalWindowSeconds: APPROVAL_WINDOW_SECONDS,
    recordsCheckedThrough,
    ...(rules === undefined ? {} : { rules: similarAt === undefined ? rules : { ...rules, similarAt } }),
  };
}

const CHECKS: Partial<Record<ActionOf<"pay">["rules"], PaymentRules>> = {
  velocity: { checks: [{ type: "velocity", count: 3, windowSeconds: 7_200 }] },
  duplicate: { checks: [{ type: "duplicate", windowSeconds: 86_400 }] },
};

function requestFor(world: LedgerWorld, agent: AccountModel, action: ActionOf<"pay">): PaymentRequest {
  const { agentId, teamId } = agent;
  const own = world.model.payments.filter((each) => each.agentId === agentId);
  const earlier = action.replayOf === null ? undefined : own[action.replayOf % Math.max(1, own.length)];
  const number = world.number();
  const version = (id: string): number => world.model.rules.get(id) ?? 0;
  const aside = action.rules === "stale" ? -1 : action.rules === "newer" ? 1 : 0;
  return {
    transactionId: `txn-${number}`,
    approvalId: `apr-${number}`,
    keyHash: earlier?.request.keyHash ?? `hash-${number}`,
    payloadHash:
      earlier === undefined || action.otherPayload ? `payload-${number}` : earlier.request.payloadHash,
    proof: "",
    rail: "card",
    amountMc: earlier?.request.amountMc ?? mcOf(action.amountCents),
    currency: "USD",
    recipient: "shop",
    merchantCategory: null,
    // Some are heavy.
    purpose: "x".repeat(action.amountCents > 10 ? 500 : 5),
    fingerprint: `like-${action.like}`,
    rulesVersions: {
      project: Math.max(0, version("project") + aside),
      team: Math.max(0, version(teamId) + aside),
      agent: Math.max(0, version(agentId) + aside),
    },
  };
}

/** As a server does: every payment that was closed by then is in the records. */
function lookUp(world: LedgerWorld, asked: Asked, closed: number): LedgerReply {
  const { agent, request } = asked;
  world.note("look up");
  const account = world.account(agent.agentId);
  const recorded = world.model.payments.filter(
    (each) => each.agentId === agent.agentId && account?.open.has(each.request.transactionId) !== true,
  );
  const ofLost = world.closedBefore.get(agent.agentId) ?? 0;
  mustEqual(closed - ofLost, recorded.length, "payments closed, as they are looked up");
  if (recorded.some((each) => each.request.keyHash === request.keyHash)) return { kind: "recorded" };
  const like = recorded
    .filter((each) => each.payment.status !== "denied" && each.request.fingerprint === request.fingerprint)
    .map(({ payment }) => payment.createdAt);
  return world.judge(payCommand(asked, closed, like.length === 0 ? undefined : Math.max(...like)));
}

function expectPaymentReply(world: LedgerWorld, asked: Asked, reply: LedgerReply): void {
  const { agent, keyId, known, request } = asked;
  if (known !== undefined) return expectReplay(world, known, asked, reply);
  if (world.account(agent.agentId) === undefined || agent.status === "closed") {
    return mustEqual(reply, { kind: "no_account" }, "a payment without an account");
  }
  if (keyId !== agent.keyId) return mustEqual(reply, { kind: "inactive_key" }, "a payment by another key");
  if (areStale(world, agent, request)) {
    world.note("stale rules");
    return mustEqual(reply, { kind: "stale_rules" }, "a payment by old rules");
  }
  if (reply.kind === "too_many_open") return expectFull(world, asked, reply);
  must(reply.kind === "decided", () => `a payment was answered ${JSON.stringify(reply)}`);
  decided(world, asked, reply);
}

/** Whether it was judged by older rules than the ledger has received; newer ones it has received by now. */
function areStale(
  { model: { rules } }: LedgerWorld,
  { agentId, teamId }: AccountModel,
  { rulesVersions }: PaymentRequest,
): boolean {
  const judged = [
    ["project", rulesVersions?.project ?? 0],
    [teamId, rulesVersions?.team ?? 0],
    [agentId, rulesVersions?.agent ?? 0],
  ] as const;
  if (judged.some(([id, version]) => version < (rules.get(id) ?? 0))) return true;
  for (const [id, version] of judged) rules.set(id, version);
  return false;
}

function expectReplay(
  world: LedgerWorld,
  known: PaymentModel,
  { agent, keyId, request }: Asked,
  reply: LedgerReply,
): void {
  world.note("replayed");
  const { transactionId } = known.request;
  if (world.open(agent.agentId, transactionId) === undefined) {
    const answers = ["recorded"];
    // The ledger may have forgotten the idempotency key; then who asks comes first.
    if (agent.status === "closed") answers.push("no_account");
    if (agent.keyId !== keyId) answers.push("inactive_key");
    return must(answers.includes(reply.kind), () => `a replay was answered ${reply.kind}`);
  }
  const samePayload = known.request.payloadHash === request.payloadHash;
  const expected = { kind: "replayed", transactionId, samePayload, payment: known.payment };
  mustEqual(JSON.stringify(reply), JSON.stringify(expected), "a replay");
}

function expectFull(
  world: LedgerWorld,
  { taken: { agentBytes, ofAgent, ofProject } }: Asked,
  { bound, freesAt, of }: TooManyOpen,
): void {
  const left = BOUNDS.openOfProject - ofProject;
  const leftBytes = BOUNDS.paidBelowBytes - ledgerBytes(world.ledger);
  const isFull: Record<TooManyOpen["bound"], boolean> = {
    payments: ofAgent >= BOUNDS.openOfAgent || ofAgent >= left / BOUNDS.partsOfRest,
    bytes:
      leftBytes <= 0 ||
      (ofAgent > 0 &&
        (agentBytes.most >= BOUNDS.paidBelowBytesOfAgent ||
          agentBytes.most >= leftBytes / BOUNDS.partsOfRest)),
  };
  world.note(bound === "bytes" && of === "project" ? "too heavy to pay" : `too many open of the ${of}`);
  must(isFull[bound], `there is room for ${bound} of the ${of}`);
  mustEqual(of, ofAgent > 0 ? "agent" : "project", "whose ends make room");
  mustEqual(freesAt === null, ofProject === 0, "whether room is freed by itself");
}

function decided(
  world: LedgerWorld,
  { action, agent, request }: Asked,
  { decision, permit }: Extract<LedgerReply, { kind: "decided" }>,
): void {
  const { model, now } = world;
  const { agentId } = agent;
  const code = model.denialOf(agent, request.amountMc, now, { seen: decision.denial?.code ?? null });
  mustEqual(decision.denial?.code ?? null, code, `the denial of ${request.transactionId}`);
  const flagged = decision.approval?.flaggedByRuleTypes ?? [];
  const flagsOf = (longer: number): string[] =>
    code === null ? model.flagsOf(agent, request, CHECKS[action.rules], { longer, now }) : [];
  const [least, most] = [flagsOf(0), flagsOf(1 / 4)];
  const flags = most.filter((flag) => least.includes(flag) || flagged.includes(flag));
  mustEqual(flagged, flags, `what flags ${request.transactionId}`);
  mustEqual(decision.policyVersion, agent.policyVersion, "the policy it was judged by");
  const countedAt = model.countedAt(agentId, now);
  const day = model.dayOf(agentId, now);
  mustEqual(decision.day, day, `the day of ${request.transactionId}`);
  const passed = code === null;
  const payment = decidedPayment(request, decision);
  model.payments.push({
    agentId,
    request,
    countedAt,
    countedOn: day,
    passed,
    day,
    payment,
    isWithdrawn: false,
  });
  mustEqual(
    decision.sequence,
    model.payments.filter((each) => each.agentId === agentId).length,
    "a sequence",
  );
  if (passed) model.counted(agentId, now);
  mustEqual(permit !== null, payment.phase === "sending", "whether a decision permits to send");
  if (permit !== null) world.permitted(agentId, permit);
  world.note(code ?? (payment.phase === "held" ? "held" : "sending"));
}
