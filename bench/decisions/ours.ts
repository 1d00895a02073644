import type { CommandOf, LedgerReply } from "../../src/domain/ledger/commands.ts";
import { judge } from "../../src/domain/ledger/judge.ts";
import { assess, decidedPayment } from "../../src/domain/ledger/pay.ts";
import type { Account, Ledger } from "../../src/domain/ledger/state.ts";
import { AGENTS, agentIdOf, amountOf, newProject, payOf, timeOf } from "./workload.ts";

/** What is decided between two readings of the clock. What comes before and after is not in the time. */
const BLOCK = 1_000;

export type Outcome = "approved" | "held" | "denied";

export interface Timed {
  readonly decisions: number;
  readonly ms: number;
}

type Pay = CommandOf<"pay">;

/** Payments judged by a project's ledger, at all levels. What they leave open is ended between the blocks. */
export class Paying {
  readonly ledger: Ledger;
  readonly outcomes: Record<Outcome, number> = { approved: 0, held: 0, denied: 0 };
  #number = 0;

  /** `isCapped`: caps over the project and each team, which no run reaches. */
  constructor(isCapped: boolean) {
    this.ledger = newProject(isCapped);
  }

  /** Decides for so long. */
  run(ms: number): Timed {
    const end = performance.now() + ms;
    let timed = 0;
    let decisions = 0;
    while (performance.now() < end) {
      const commands = decoded(Array.from({ length: BLOCK }, (_none, index) => payOf(this.#number + index)));
      for (const [index, command] of commands.entries()) {
        const now = timeOf(this.#number + index);
        const from = performance.now();
        const reply = judge(this.ledger, command, now);
        timed += performance.now() - from;
        this.#end(reply, command, now);
      }
      this.#number += BLOCK;
      decisions += BLOCK;
    }
    return { decisions, ms: timed };
  }

  /** As rail and person do: what was approved settles, what is held is denied. */
  #end(reply: LedgerReply, command: Pay, now: number): void {
    if (reply.kind !== "decided") throw new Error(`not decided: ${reply.kind}`);
    const { phase, request, revision } = decidedPayment(command.request, reply.decision);
    const { agentId } = command;
    const { transactionId } = request;
    const outcome = phase === "sending" ? "approved" : phase === "held" ? "held" : "denied";
    this.outcomes[outcome] += 1;
    const of = { agentId, transactionId };
    if (outcome === "held") {
      const by = { userId: "user-1", name: "Ada" };
      judge(this.ledger, { kind: "deny", ...of, by, feedback: "no", proof: "" }, now);
      judge(this.ledger, { kind: "confirm", ...of, revision: revision + 1, outcome: null }, now);
      return;
    }
    const settled = { result: { status: "settled", final: true } as const, at: now };
    const confirmed = outcome === "approved" ? revision + 3 : revision;
    const confirm = { kind: "confirm", ...of, revision: confirmed } as const;
    judge(this.ledger, { ...confirm, outcome: outcome === "approved" ? settled : null }, now);
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
        const account = accountIn(this.ledger, index);
        const verdict = assess(this.ledger, account, payment, timeOf(this.#number));
        if (verdict.denial !== null) denied += 1;
      }
      decisions += BLOCK;
    }
    if (denied === 0) throw new Error("nothing was denied, which can't be");
    return { decisions, ms: performance.now() - from };
  }
}

export function accountIn({ accounts }: Ledger, number: number): Account {
  const account = accounts.get(agentIdOf(number % AGENTS));
  if (account === undefined) throw new Error("no such account");
  return account;
}

/** What a verdict needs to know of a payment besides its amount. */
export const BENCH_PAYMENT = { rail: "card", recipient: "a shop", fingerprint: "like" } as const;

/** As a ledger has it: decoded from what came in, which is no part of the decision. */
const decoded = (commands: readonly Pay[]): readonly Pay[] => JSON.parse(JSON.stringify(commands)) as Pay[];
