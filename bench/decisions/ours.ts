import { decidedPayment } from "../../src/domain/agent/commands.ts";
import { assess, decide, handle } from "../../src/domain/agent/decide.ts";
import type { AgentState } from "../../src/domain/agent/state.ts";
import { handleBudget } from "../../src/domain/budget/budget.ts";
import type { Ask } from "../../src/domain/budget/report.ts";
import { type BudgetState, initialBudgetState } from "../../src/domain/budget/state.ts";
import { AGENTS, agentIdOf, amountOf, newAgents, type Pay, payOf, teamIdOf, timeOf } from "./workload.ts";

/** What is decided between two readings of the clock. What comes before and after is not in the time. */
const BLOCK = 1_000;

export type Outcome = "approved" | "held" | "denied";

export interface Timed {
  readonly decisions: number;
  readonly ms: number;
}

/** Payments decided by `handle`: keys, limits, threshold, reservation. What they leave open is ended between the blocks. */
export class Paying {
  readonly agents: AgentState[] = newAgents();
  readonly outcomes: Record<Outcome, number> = { approved: 0, held: 0, denied: 0 };
  #number = 0;

  /** Decides for so long. */
  run(ms: number): Timed {
    const end = performance.now() + ms;
    let timed = 0;
    let decisions = 0;
    while (performance.now() < end) {
      const commands = decoded(Array.from({ length: BLOCK }, (_none, index) => payOf(this.#number + index)));
      const from = performance.now();
      const replies = commands.map((command, index) => this.#handle(command, this.#number + index));
      timed += performance.now() - from;
      replies.forEach((reply, index) => this.#end(reply, commands[index], this.#number + index));
      this.#number += BLOCK;
      decisions += BLOCK;
    }
    return { decisions, ms: timed };
  }

  /** The pure decision, which `handle` then applies: what would happen, and the answer. Nothing is changed. */
  decide(ms: number): Timed {
    const end = performance.now() + ms;
    const now = timeOf(this.#number);
    let timed = 0;
    let decisions = 0;
    while (performance.now() < end) {
      const commands = decoded(Array.from({ length: BLOCK }, (_none, index) => payOf(this.#number + index)));
      const from = performance.now();
      const decided = commands.map((command, index) => decide(this.#agent(index), command, now));
      timed += performance.now() - from;
      if (decided.some(({ reply }) => reply.kind !== "decided")) throw new Error("not decided");
      decisions += BLOCK;
    }
    return { decisions, ms: timed };
  }

  #handle(command: Pay, number: number) {
    return handle(this.#agent(number), command, timeOf(number));
  }

  /** As rail and person do: what was approved settles, what is held is denied. */
  #end(reply: ReturnType<typeof handle>, command: Pay | undefined, number: number): void {
    if (command === undefined || reply.kind !== "decided") throw new Error(`not decided: ${reply.kind}`);
    const { phase, request, revision } = decidedPayment(command.request, reply.decision);
    const { transactionId } = request;
    const now = timeOf(number);
    const agent = this.#agent(number);
    const outcome = phase === "sending" ? "approved" : phase === "held" ? "held" : "denied";
    this.outcomes[outcome] += 1;
    if (outcome === "held") {
      const by = { userId: "user-1", name: "Ada" };
      handle(agent, { kind: "deny", transactionId, by, feedback: "no", proof: "" }, now);
      handle(agent, { kind: "confirm", transactionId, revision: revision + 1, outcome: null }, now);
      return;
    }
    const settled = { result: { status: "settled", final: true } as const, at: now };
    const told = outcome === "approved" ? revision + 3 : revision;
    const confirm = { kind: "confirm", transactionId, revision: told } as const;
    handle(agent, { ...confirm, outcome: outcome === "approved" ? settled : null }, now);
  }

  /** The verdict alone, as `check_payment` gets it. */
  assess(ms: number): Timed {
    const end = performance.now() + ms;
    const from = performance.now();
    let decisions = 0;
    let denied = 0;
    while (performance.now() < end) {
      for (let index = 0; index < BLOCK; index += 1) {
        const payment = { ...BENCH_PAYMENT, amountCents: amountOf(decisions + index) };
        const verdict = assess(this.#agent(index), payment, timeOf(this.#number));
        if (verdict.denial !== null) denied += 1;
      }
      decisions += BLOCK;
    }
    if (denied === 0) throw new Error("nothing was denied, which can't be");
    return { decisions, ms: performance.now() - from };
  }

  #agent(number: number): AgentState {
    const agent = this.agents[number % AGENTS];
    if (agent === undefined) throw new Error("no such agent");
    return agent;
  }
}

/** What a verdict needs to know of a payment besides its amount. */
export const BENCH_PAYMENT = { rail: "card", recipient: "a shop" } as const;

/** As an actor has it: decoded from what came in, which is no part of the decision. */
const decoded = (commands: readonly Pay[]): readonly Pay[] => JSON.parse(JSON.stringify(commands)) as Pay[];

/** More than any run spends. */
const CAP_CENTS = 1_000_000_000_000_000;

/** A project's budget that 50 agents of 5 teams ask in turn, each with its totals. */
export class Asking {
  readonly #budget: BudgetState = initialBudgetState("organization-1", "project-1");
  readonly #spent = new Float64Array(AGENTS);
  #number = 0;

  constructor() {
    const teams = [...new Set(Array.from({ length: AGENTS }, (_none, agent) => teamIdOf(agent)))];
    const command = {
      kind: "replace_project",
      version: 1,
      capCents: CAP_CENTS,
      teams: teams.map((teamId) => ({ teamId, capCents: CAP_CENTS })),
      complete: true,
    } as const;
    if (handleBudget(this.#budget, command, 0).kind !== "replaced") throw new Error("no caps were set");
  }

  run(ms: number): Timed {
    const end = performance.now() + ms;
    let timed = 0;
    let decisions = 0;
    while (performance.now() < end) {
      const reports = Array.from({ length: BLOCK }, (_none, index) => this.#report(this.#number + index));
      const from = performance.now();
      for (const report of reports) handleBudget(this.#budget, { kind: "report", report }, 0);
      timed += performance.now() - from;
      this.#number += BLOCK;
      decisions += BLOCK;
    }
    return { decisions, ms: timed };
  }

  /** All that was granted before is spent by now. */
  #report(number: number) {
    const agent = number % AGENTS;
    const spentCents = this.#spent[agent] ?? 0;
    const amountCents = amountOf(number);
    this.#spent[agent] = spentCents + amountCents;
    const transactionId = `txn_${String(number).padStart(26, "0")}`;
    const asks: Ask[] = [{ transactionId, kind: "reserve", amountCents }];
    const revision = 1 + Math.floor(number / AGENTS);
    return {
      agentId: agentIdOf(agent),
      teamId: teamIdOf(agent),
      revision,
      spentCents,
      reservedCents: 0,
      asks,
    };
  }
}
