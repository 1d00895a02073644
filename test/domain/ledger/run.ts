import { must, mustEqual } from "../../../scripts/simulation/audit/violation.ts";
import type { FollowedAgent } from "../../../src/domain/agent/state.ts";
import { isOnItsWay } from "../../../src/domain/agent/leave.ts";
import {
  moneyOf,
  type Payment,
  type PaymentRequest,
  type RailOutcome,
} from "../../../src/domain/agent/payment.ts";
import type {
  CommandOf,
  LedgerCommand,
  LedgerReply,
  RecordedCap,
} from "../../../src/domain/ledger/commands.ts";
import { judge } from "../../../src/domain/ledger/judge.ts";
import { packLedger, unpackLedger } from "../../../src/domain/ledger/pack.ts";
import { decidedPayment } from "../../../src/domain/ledger/pay.ts";
import { type Ledger, newLedger } from "../../../src/domain/ledger/state.ts";
import type { PaymentRules } from "../../../src/domain/rules/checks.ts";
import { APPROVAL_WINDOW_SECONDS, human, NOON, openPolicy, SECOND } from "../support/actor.ts";
import type { Action, ActionOf, Fate } from "./actions.ts";
import { type BookedAgent, type BookedPayment, LedgerBook } from "./book.ts";

/** Low, so that short runs come to them. */
const BOUNDS = { accounts: 12, openOfAgent: 3, openOfProject: 7, closedKeys: 5 };

/** What a run drives: the domain, or a faulty one. */
export interface LedgerDomain {
  readonly judge: typeof judge;
  readonly pack: typeof packLedger;
  readonly unpack: typeof unpackLedger;
}
export const SOUND: LedgerDomain = { judge, pack: packLedger, unpack: unpackLedger };

const OUTCOMES: Readonly<Record<Fate, RailOutcome>> = {
  settled: { status: "settled", final: true },
  settled_not_final: { status: "settled", final: false },
  pending: { status: "pending" },
  failed: { status: "failed", code: "CARD_DECLINED", reason: "no" },
  reversed: { status: "reversed" },
  withheld: { status: "withheld" },
};

/** One random life of a project's ledger, with its book beside it. Throws `Violation` where the two differ. */
export class LedgerRun {
  readonly tally = new Map<string, number>();
  readonly #domain: LedgerDomain;
  readonly #book = new LedgerBook();
  #ledger: Ledger = newLedger("org-1", "project-1", BOUNDS);
  #now = NOON;
  #numbered = 0;
  /** The agents' actors' revisions. */
  #revision = 0;
  #last: { readonly command: LedgerCommand; readonly reply: LedgerReply; readonly at: number } | null = null;

  constructor(domain: LedgerDomain = SOUND) {
    this.#domain = domain;
    for (const team of [0, 0, 1, 1]) this.#open(team);
  }

  play(actions: readonly Action[]): void {
    for (const action of actions) {
      this.#do(action);
      this.#book.audit(this.#ledger);
    }
  }

  #note(what: string): void {
    this.tally.set(what, (this.tally.get(what) ?? 0) + 1);
  }

  #judge(command: LedgerCommand): LedgerReply {
    const reply = this.#domain.judge(this.#ledger, command, this.#now);
    must(reply.kind !== "failed", () => `${command.kind} failed: ${JSON.stringify(reply)}`);
    if (command.requestId !== undefined) this.#last = { command, reply, at: this.#now };
    return reply;
  }

  #do(action: Action): void {
    switch (action.kind) {
      case "pay":
        return this.#pay(action);
      case "rail":
        return this.#rail(action);
      case "confirm":
        return this.#confirm(action);
      case "resolve":
        return this.#resolve(action);
      case "policy":
        return this.#policy(action);
      case "life":
        return this.#life(action);
      case "open":
        return this.#open(action.team);
      case "project_cap":
        return this.#projectCap(action);
      case "team_cap":
        return this.#teamCap(action);
      case "rules":
        return this.#rules(action);
      case "ask":
        return this.#ask(action);
      case "record":
        return this.#record(action);
      case "wait":
        this.#now += action.ms;
        return;
      case "again":
        return this.#again();
      case "roll_over":
        return this.#rollOver();
    }
  }

  #agent(place: number): BookedAgent | undefined {
    return [...this.#book.agents.values()][place % Math.max(1, this.#book.agents.size)];
  }

  #open(team: number): void {
    const number = this.#book.agents.size + 1;
    const opened = {
      agentId: `agent-${number}`,
      teamId: `team-${team}`,
      policy: { ...openPolicy, budgetCents: 60, autoApprovalThresholdCents: 8 },
      keyId: `key-${number}-1`,
    };
    const reply = this.#judge({ kind: "open_account", name: `Agent ${number}`, ...opened });
    const live = this.#ledger.accounts.size;
    if (reply.kind === "project_full") return mustEqual(live, BOUNDS.accounts, "accounts where it is full");
    mustEqual(reply, { kind: "opened", changed: true }, "an account");
    must(live <= BOUNDS.accounts, "more accounts than there may be");
    this.#book.agents.set(opened.agentId, { ...opened, policyVersion: 1, standing: "active" });
  }

  #pay(action: ActionOf<"pay">): void {
    const agent = this.#agent(action.agent);
    if (agent === undefined) return;
    const request = this.#requestFor(agent, action);
    const keyId = action.key === "own" ? (agent.keyId ?? "none") : "key-of-somebody";
    const known = this.#book.under(agent.agentId, request.keyHash);
    let reply = this.#judge(this.#payCommand(agent, request, keyId, action, 0));
    if (reply.kind === "look_up") reply = this.#lookUp(agent, request, keyId, action, reply.closed);
    this.#heardOfPayment({ action, agent, known, keyId, request }, reply);
  }

  #payCommand(
    { agentId }: BookedAgent,
    request: PaymentRequest,
    keyId: string,
    { rules }: ActionOf<"pay">,
    lookedUpThrough: number,
    likeAt?: number,
  ): CommandOf<"pay"> {
    const ruled = rulesOf(rules);
    return {
      kind: "pay",
      agentId,
      keyId,
      request,
      approvalWindowSeconds: APPROVAL_WINDOW_SECONDS,
      lookedUpThrough,
      ...(ruled === undefined ? {} : { rules: likeAt === undefined ? ruled : { ...ruled, likeAt } }),
    };
  }

  #requestFor({ agentId, teamId }: BookedAgent, action: ActionOf<"pay">): PaymentRequest {
    const own = this.#book.payments.filter((each) => each.agentId === agentId);
    const earlier = action.replayOf === null ? undefined : own[action.replayOf % Math.max(1, own.length)];
    const number = (this.#numbered += 1);
    const version = (id: string): number => this.#book.rules.get(id) ?? 0;
    const aside = action.rules === "stale" ? -1 : action.rules === "newer" ? 1 : 0;
    return {
      transactionId: `txn-${number}`,
      approvalId: `apr-${number}`,
      keyHash: earlier?.request.keyHash ?? `hash-${number}`,
      payloadHash:
        earlier === undefined || action.otherPayload ? `payload-${number}` : earlier.request.payloadHash,
      proof: "",
      rail: "card",
      amountCents: earlier?.request.amountCents ?? action.amountCents,
      currency: "USD",
      recipient: "shop",
      merchantCategory: null,
      purpose: "a test",
      likenessHash: `like-${action.like}`,
      rulesVersions: {
        project: Math.max(0, version("project") + aside),
        team: Math.max(0, version(teamId) + aside),
      },
    };
  }

  /** As a server does: every payment that was closed by then is in the records. */
  #lookUp(
    agent: BookedAgent,
    request: PaymentRequest,
    keyId: string,
    action: ActionOf<"pay">,
    closed: number,
  ): LedgerReply {
    this.#note("look up");
    const account = this.#ledger.accounts.get(agent.agentId);
    const recorded = this.#book.payments.filter(
      (each) => each.agentId === agent.agentId && account?.open.has(each.request.transactionId) !== true,
    );
    mustEqual(closed, recorded.length, "payments closed, as they are looked up");
    if (recorded.some((each) => each.request.keyHash === request.keyHash)) return { kind: "recorded" };
    const like = recorded
      .filter(
        (each) => each.payment.status !== "denied" && each.request.likenessHash === request.likenessHash,
      )
      .map(({ payment }) => payment.createdAt);
    const likeAt = like.length === 0 ? undefined : Math.max(...like);
    return this.#judge(this.#payCommand(agent, request, keyId, action, closed, likeAt));
  }

  #heardOfPayment({ action, agent, keyId, known, request }: Asked, reply: LedgerReply): void {
    const account = this.#ledger.accounts.get(agent.agentId);
    if (known !== undefined) return this.#heardOfReplay(agent, known, { keyId, request }, reply);
    if (account === undefined || agent.standing === "closed") {
      return mustEqual(reply, { kind: "no_account" }, "a payment without an account");
    }
    if (keyId !== agent.keyId) return mustEqual(reply, { kind: "dead_key" }, "a payment by another key");
    const { project, team } = request.rulesVersions ?? { project: 0, team: 0 };
    const versions = [this.#book.rules.get("project") ?? 0, this.#book.rules.get(agent.teamId) ?? 0] as const;
    const isStale = (project ?? 0) < versions[0] || (team ?? 0) < versions[1];
    if (isStale) {
      this.#note("stale rules");
      return mustEqual(reply, { kind: "stale_rules" }, "a payment by old rules");
    }
    this.#book.rules.set("project", Math.max(versions[0], project ?? 0));
    this.#book.rules.set(agent.teamId, Math.max(versions[1], team ?? 0));
    if (reply.kind === "too_many_open") return this.#heardFull(agent, reply.of);
    must(reply.kind === "decided", () => `a payment was answered ${JSON.stringify(reply)}`);
    this.#decided(agent, request, rulesOf(action.rules), reply);
  }

  #heardOfReplay(
    agent: BookedAgent,
    known: BookedPayment,
    { keyId, request }: Pick<Asked, "keyId" | "request">,
    reply: LedgerReply,
  ): void {
    this.#note("replayed");
    const { transactionId } = known.request;
    const isOpen = this.#ledger.accounts.get(agent.agentId)?.open.has(transactionId) === true;
    if (!isOpen) {
      const answers = ["recorded"];
      // The ledger may have forgotten the idempotency key; then who asks comes first.
      if (agent.standing === "closed") answers.push("no_account");
      if (agent.keyId !== keyId) answers.push("dead_key");
      return must(answers.includes(reply.kind), () => `a replay was answered ${reply.kind}`);
    }
    const samePayload = known.request.payloadHash === request.payloadHash;
    const expected = { kind: "replayed", transactionId, samePayload, payment: known.payment };
    mustEqual(JSON.stringify(reply), JSON.stringify(expected), "a replay");
  }

  #heardFull({ agentId }: BookedAgent, of: "agent" | "project"): void {
    const ofAgent = this.#ledger.accounts.get(agentId)?.open.size ?? 0;
    const ofProject = [...this.#ledger.accounts.values()].reduce((sum, { open }) => sum + open.size, 0);
    this.#note(`too many open of the ${of}`);
    must(
      of === "agent" ? ofAgent >= BOUNDS.openOfAgent : ofProject >= BOUNDS.openOfProject,
      `the ${of} is not full`,
    );
  }

  #decided(
    agent: BookedAgent,
    request: PaymentRequest,
    rules: PaymentRules | undefined,
    { decision }: Extract<LedgerReply, { kind: "decided" }>,
  ): void {
    const { agentId } = agent;
    const code = this.#book.denialOf(agent, request.amountCents, this.#now);
    mustEqual(decision.denial?.code ?? null, code, `the denial of ${request.transactionId}`);
    const flags = code === null ? this.#book.flagsOf(agent, request, rules, this.#now) : [];
    mustEqual(decision.approval?.flaggedByRuleTypes ?? [], flags, `what flags ${request.transactionId}`);
    mustEqual(decision.policyVersion, agent.policyVersion, "the policy it was judged by");
    const countedAt = this.#book.countedAt(agentId, this.#now);
    const day = this.#book.dayOf(agentId, this.#now);
    mustEqual(decision.day, day, `the day of ${request.transactionId}`);
    const passed = code === null;
    const payment = decidedPayment(request, decision);
    this.#book.payments.push({ agentId, request, countedAt, passed, day, payment });
    if (passed) this.#book.counted(agentId, this.#now);
    this.#note(code ?? (payment.phase === "held" ? "held" : "sending"));
  }

  /** Payments that are open in the ledger, in the order of the book. */
  #openPayments(): BookedPayment[] {
    return this.#book.payments.filter(
      ({ agentId, request }) => this.#ledger.accounts.get(agentId)?.open.has(request.transactionId) === true,
    );
  }

  #pick(place: number, isMeant: (payment: Payment) => boolean = () => true): BookedPayment | undefined {
    const open = this.#openPayments().filter(({ payment }) => isMeant(payment));
    return open[place % Math.max(1, open.length)];
  }

  /** The rail says what became of a payment; said too late it changes nothing. */
  #rail({ confirms, fate, pick }: ActionOf<"rail">): void {
    const booked = this.#pick(pick, (payment) => isOnItsWay(payment) || payment.phase === "following");
    if (booked === undefined) return;
    const { agentId, request } = booked;
    const before = booked.payment;
    const outcome = { result: OUTCOMES[fate], at: this.#now };
    const told = { kind: "confirm", agentId, transactionId: request.transactionId, outcome } as const;
    // What its effects are is known only once it is told: a revision beyond its own confirms what it becomes.
    mustEqual(this.#judge({ ...told, revision: confirms ? 99 : 0 }), { kind: "confirmed" }, "a confirmation");
    const after = this.#ledger.accounts.get(agentId)?.open.get(request.transactionId)?.payment;
    booked.payment = after ?? ended(before, fate);
    this.#note(`rail: ${booked.payment.status}`);
    mustEqual(
      booked.payment.status,
      statusAfter(before, fate),
      `what ${fate} makes of ${request.transactionId}`,
    );
    if (moneyOf(before) !== moneyOf(booked.payment)) this.#book.counted(agentId, this.#now);
  }

  #confirm({ pick }: ActionOf<"confirm">): void {
    const booked = this.#pick(pick);
    if (booked === undefined) return;
    const { agentId, payment, request } = booked;
    const { transactionId } = request;
    this.#judge({ kind: "confirm", agentId, transactionId, revision: payment.revision, outcome: null });
    const isOpen = this.#ledger.accounts.get(agentId)?.open.has(transactionId) === true;
    mustEqual(isOpen, payment.phase !== "done", `whether ${transactionId} is open once it is confirmed`);
  }

  #resolve({ how, pick }: ActionOf<"resolve">): void {
    const booked = this.#pick(pick, ({ phase }) => phase === "held");
    if (booked === undefined) return;
    const { agentId, request } = booked;
    const agent = this.#book.agents.get(agentId);
    if (agent === undefined) return;
    const before = booked.payment;
    const place = {
      agentId,
      transactionId: request.transactionId,
      requestId: `req-${(this.#numbered += 1)}`,
    };
    const reply = this.#judge(resolutionOf(how, place));
    must(reply.kind === "payment", () => `${how} was answered ${JSON.stringify(reply)}`);
    const isLate = this.#now >= (before.approval?.expiresAt ?? 0);
    const code = this.#book.denialOf(agent, request.amountCents, this.#now, booked);
    booked.payment = reply.payment;
    booked.day = reply.payment.day;
    const { denial, status } = reply.payment;
    this.#note(isLate ? "too late" : how);
    mustEqual(reply.changed, !isLate, `whether ${how} came in time`);
    if (isLate || how === "expire") mustEqual(status, "expired", "what comes too late");
    else if (how === "approve") {
      mustEqual(denial?.code ?? null, code, "what is approved, by its limits");
      mustEqual(status, code === null ? "pending" : "failed", "what is approved");
      if (code === null)
        mustEqual(reply.payment.day, this.#book.dayOf(agentId, this.#now), "the day it counts on");
    } else mustEqual(status, "denied", how);
    this.#book.counted(agentId, this.#now);
  }

  #policy({ agent: place, patch, stale }: ActionOf<"policy">): void {
    const agent = this.#agent(place);
    if (agent === undefined) return;
    const version = stale ? agent.policyVersion - 1 : agent.policyVersion;
    const requestId = `req-${(this.#numbered += 1)}`;
    const reply = this.#judge({ kind: "change_policy", agentId: agent.agentId, patch, version, requestId });
    if (agent.standing === "closed") return mustEqual(reply, { kind: "no_account" }, "a policy of none");
    if (stale)
      return mustEqual(reply, { kind: "version_conflict", version: agent.policyVersion }, "a stale policy");
    agent.policy = { ...agent.policy, ...patch };
    agent.policyVersion += 1;
    mustEqual(reply.kind, "policy", "a changed policy");
  }

  #life({ agent: place, change, kind }: ActionOf<"life">): void {
    const agent = this.#agent(place);
    if (agent === undefined) return;
    if (change === "stop") {
      this.#life({ kind, agent: place, change: "pause" });
      return this.#life({ kind, agent: place, change: "revoke" });
    }
    const { agentId } = agent;
    const isClosed = agent.standing === "closed";
    this.#note(`${change}${isClosed ? " of a closed one" : ""}`);
    switch (change) {
      case "pause":
      case "resume": {
        const reply = this.#judge({ kind: change, agentId, requestId: `req-${(this.#numbered += 1)}` });
        if (isClosed) return mustEqual(reply, { kind: "no_account" }, `${change} of none`);
        const standing = change === "pause" ? "paused" : "active";
        must(
          reply.kind === "standing" && reply.changed === (agent.standing !== standing),
          `${change} was not answered`,
        );
        agent.standing = standing;
        return;
      }
      case "revoke":
      case "mint": {
        const keyId = change === "mint" ? `key-${(this.#numbered += 1)}` : null;
        this.#follow(agentId, { keyId, isArchived: false });
        if (!isClosed) agent.keyId = keyId;
        return;
      }
      case "old_mint":
        // Comes late, and is older than what the ledger has heard.
        this.#follow(agentId, { keyId: "key-of-old", isArchived: false, revision: 0 });
        return;
      case "close":
        return this.#close(agent);
    }
  }

  #follow(agentId: string, change: Pick<FollowedAgent, "keyId" | "isArchived"> & Partial<FollowedAgent>) {
    const revision = (this.#revision += 1);
    return this.#judge({ kind: "follow_agent", agentId, name: "An agent", revision, ...change });
  }

  #close(agent: BookedAgent): void {
    const { agentId } = agent;
    const held = this.#openPayments().filter(
      (each) => each.agentId === agentId && each.payment.phase === "held",
    );
    const reply = this.#follow(agentId, { keyId: null, isArchived: true });
    const ended = agent.standing === "closed" ? [] : held.map(({ request }) => request.transactionId);
    mustEqual(reply, { kind: "followed", ended }, "a closed account");
    if (agent.standing === "closed") return;
    agent.standing = "closed";
    agent.keyId = null;
    for (const booked of held) {
      const { approval } = booked.payment;
      const isLate = this.#now >= (approval?.expiresAt ?? 0);
      const now = this.#ledger.accounts.get(agentId)?.open.get(booked.request.transactionId)?.payment;
      must(now !== undefined, "what is on hold of a closed account is gone");
      mustEqual(now.status, isLate ? "expired" : "denied", "what was on hold of a closed account");
      booked.payment = now;
    }
    if (held.length > 0) this.#book.counted(agentId, this.#now);
  }

  #projectCap({ capCents, stale, teamCapCents }: ActionOf<"project_cap">): void {
    const { version } = this.#book.capOf("project");
    const teams = ["team-0", "team-1"].map((teamId) => ({ teamId, capCents: teamCapCents }));
    const requestId = `req-${(this.#numbered += 1)}`;
    const asked = stale ? version - 1 : version;
    const reply = this.#judge({ kind: "replace_project", version: asked, capCents, teams, requestId });
    if (stale) return mustEqual(reply, { kind: "version_conflict", version }, "a stale budget");
    must(reply.kind === "replaced" && reply.version === version + 1, "a budget was not replaced");
    this.#recordCaps(reply.caps);
    this.#book.caps.set("project", { capCents, version: version + 1 });
    for (const { teamId } of teams) {
      const before = this.#book.capOf(teamId);
      if (before.capCents === teamCapCents) continue;
      this.#book.caps.set(teamId, { capCents: teamCapCents, version: before.version + 1 });
    }
  }

  #teamCap({ budgetCents, capCents, stale, team }: ActionOf<"team_cap">): void {
    const teamId = `team-${team}`;
    const { version } = this.#book.capOf(teamId);
    const members = [...this.#book.agents.values()].filter((each) => each.teamId === teamId);
    const agents = members.map(({ agentId }) => ({ agentId, budgetCents }));
    const requestId = `req-${(this.#numbered += 1)}`;
    const asked = stale ? version - 1 : version;
    const reply = this.#judge({ kind: "replace_team", teamId, version: asked, capCents, agents, requestId });
    if (stale) return mustEqual(reply, { kind: "version_conflict", version }, "a stale budget");
    must(reply.kind === "replaced" && reply.version === version + 1, "a budget was not replaced");
    this.#recordCaps(reply.caps);
    this.#book.caps.set(teamId, { capCents, version: version + 1 });
    for (const agent of members) {
      if (agent.standing === "closed" || agent.policy.budgetCents === budgetCents) continue;
      agent.policy = { ...agent.policy, budgetCents };
      agent.policyVersion += 1;
    }
  }

  #recordCaps(caps: readonly RecordedCap[]): void {
    const recorded = caps.map(({ teamId, cap: { version } }) => ({ teamId, version }));
    this.#judge({ kind: "confirm_caps", caps: recorded });
    for (const { teamId } of caps) {
      const level = teamId === null ? this.#ledger.project : this.#ledger.teams.get(teamId);
      mustEqual(level?.recordedCapVersion, level?.cap.version, "a cap that is in its record");
    }
  }

  #rules({ team }: ActionOf<"rules">): void {
    const id = team === null ? "project" : `team-${team}`;
    const version = (this.#book.rules.get(id) ?? 0) + 1;
    this.#judge({ kind: "follow_rules", teamId: team === null ? null : id, version });
    // Told late, or twice.
    this.#judge({ kind: "follow_rules", teamId: team === null ? null : id, version: version - 1 });
    this.#book.rules.set(id, version);
  }

  #ask({ pick }: ActionOf<"ask">): void {
    const booked = this.#pick(pick);
    if (booked === undefined) return;
    const { agentId, payment, request } = booked;
    const agent = this.#book.agents.get(agentId);
    const reply = this.#judge({ kind: "ask_to_send", agentId, transactionId: request.transactionId });
    if (!isOnItsWay(payment)) return mustEqual(reply.kind, "payment", "leave for what is not to be sent");
    must(
      reply.kind === "leave",
      () => `a process that asked for leave was answered ${JSON.stringify(reply)}`,
    );
    this.#note(`leave: ${reply.leave}`);
    if (agent?.standing === "paused")
      must(reply.leave !== "send", "leave to send was given for a paused agent");
  }

  #record({ agent: place }: ActionOf<"record">): void {
    const agent = this.#agent(place);
    const account = agent && this.#ledger.accounts.get(agent.agentId);
    if (account === undefined) return;
    const { agentId, revision } = account;
    this.#judge({ kind: "confirm_records", records: [{ agentId, revision }] });
    const now = this.#ledger.accounts.get(agentId);
    if (now === undefined) this.#note("dropped");
    must(now === undefined || now.outbox.length === 0, "what was told of is kept");
  }

  /** It gets its first answer again, or of a payment that is closed by now where to look. */
  #again(): void {
    if (this.#last === null) return;
    const { at, command, reply: first } = this.#last;
    // Later it is no repeat of the engine's.
    if (Math.abs(this.#now - at) > 60 * SECOND) return void (this.#last = null);
    const reply = this.#domain.judge(this.#ledger, command, this.#now);
    this.#note("again");
    if (reply.kind === "not_open") return;
    if (first.kind === "payment" && reply.kind === "payment") {
      return mustEqual(reply.changed, first.changed, "what comes again of a payment");
    }
    mustEqual(JSON.stringify(reply), JSON.stringify(first), "what comes again");
  }

  #rollOver(): void {
    this.#note("roll-over");
    const { pack, unpack } = this.#domain;
    this.#ledger = unpack(JSON.parse(JSON.stringify(pack(this.#ledger, this.#now))), BOUNDS);
  }
}

interface Asked {
  readonly action: ActionOf<"pay">;
  readonly agent: BookedAgent;
  readonly keyId: string;
  readonly known: BookedPayment | undefined;
  readonly request: PaymentRequest;
}

const CHECKS: Partial<Record<ActionOf<"pay">["rules"], PaymentRules>> = {
  velocity: { checks: [{ type: "velocity", count: 3, windowSeconds: 7_200 }] },
  duplicate: { checks: [{ type: "duplicate", windowSeconds: 86_400 }] },
};
const rulesOf = (rules: ActionOf<"pay">["rules"]): PaymentRules | undefined => CHECKS[rules];

function resolutionOf(
  how: ActionOf<"resolve">["how"],
  place: { readonly agentId: string; readonly transactionId: string; readonly requestId: string },
): LedgerCommand {
  if (how === "approve") return { kind: how, ...place, by: human, proof: "" };
  return how === "deny"
    ? { kind: how, ...place, by: human, feedback: "no", proof: "" }
    : { kind: how, ...place };
}

/** What a payment's status is once its rail has said so. */
function statusAfter({ phase, status }: Payment, fate: Fate): Payment["status"] {
  if (phase !== "sending" && phase !== "following") return status;
  if (fate === "settled" || fate === "settled_not_final") return "approved";
  if (fate === "reversed") return "reversed";
  if (status !== "pending" || fate === "pending") return status;
  return fate === "failed" ? "failed" : "denied";
}

/** A payment that was closed with what its rail said. */
const ended = (payment: Payment, fate: Fate): Payment => ({
  ...payment,
  status: statusAfter(payment, fate),
  phase: "done",
});
