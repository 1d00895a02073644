import type { Heard } from "../../activities/ports.ts";
import type { AgentCommand, AgentReply } from "../../src/domain/agent/commands.ts";
import type { AgentSummary } from "../../src/domain/agent/state.ts";
import type { BudgetReport } from "../../src/domain/budget/report.ts";
import type { BudgetShare, SubmitResult } from "../../src/messages/agent.ts";

/** As server/actors/mailbox.ts has it. */
const BATCH_MAX = 128;
const SUMMARY_AFTER_MS = 500;
const REPORTED_MS = 1_500;
const CONFIRM_AFTER_MS = 200;

interface Waiting<Command, Answer> {
  readonly command: Command;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** One exchange in flight; what arrives meanwhile goes together in the next. */
export class Mailbox<Command, Answer> {
  readonly #exchange: (commands: readonly Command[]) => Promise<readonly Answer[]>;
  #waiting: Waiting<Command, Answer>[] = [];
  #isInFlight = false;

  constructor(exchange: (commands: readonly Command[]) => Promise<readonly Answer[]>) {
    this.#exchange = exchange;
  }

  get isInFlight(): boolean {
    return this.#isInFlight;
  }

  submit(command: Command): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ command, resolve, reject });
      void this.#pump();
    });
  }

  async #pump(): Promise<void> {
    if (this.#isInFlight) return;
    this.#isInFlight = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, BATCH_MAX);
      try {
        const answers = await this.#exchange(batch.map(({ command }) => command));
        batch.forEach(({ reject, resolve }, index) => {
          const answer = answers[index];
          if (answer === undefined) reject(new Error("fewer answers than commands"));
          else resolve(answer);
        });
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#isInFlight = false;
  }
}

/** What an actor said, and what is put to the budget of it. */
export interface Answered {
  readonly reply: AgentReply;
  readonly report: BudgetReport | null;
}

export interface AgentMailboxDependencies {
  readonly submit: (commands: readonly AgentCommand[]) => Promise<SubmitResult>;
  readonly hear: (report: BudgetReport) => Promise<Heard>;
  readonly writeSummary: (summary: AgentSummary) => Promise<void>;
  readonly sleep: (ms: number) => Promise<void>;
}

/** An agent's mailbox in one process: confirmations ride along, and what was released is told before anybody hears of it. */
export class AgentMailbox {
  readonly #dependencies: AgentMailboxDependencies;
  readonly #mailbox: Mailbox<AgentCommand, Answered>;
  #confirmations: AgentCommand[] = [];
  #isArmed = false;
  #seenRevision = 0;
  #reportedRevision = 0;
  #summary: AgentSummary | null = null;

  constructor(dependencies: AgentMailboxDependencies) {
    this.#dependencies = dependencies;
    this.#mailbox = new Mailbox((commands) => this.#exchange(commands));
  }

  answered(command: AgentCommand): Promise<Answered> {
    return this.#mailbox.submit(command);
  }

  async submit(command: AgentCommand): Promise<AgentReply> {
    return (await this.answered(command)).reply;
  }

  confirmLater(command: AgentCommand): void {
    this.#confirmations.push(command);
    if (this.#isArmed) return;
    this.#isArmed = true;
    void this.#confirm();
  }

  async #confirm(): Promise<void> {
    await this.#dependencies.sleep(CONFIRM_AFTER_MS);
    this.#isArmed = false;
    const first = this.#confirmations.shift();
    // Who can't be told sweeps.
    if (first !== undefined) await this.submit(first).catch(() => null);
  }

  async #exchange(commands: readonly AgentCommand[]): Promise<Answered[]> {
    const confirmations = this.#confirmations.splice(0, BATCH_MAX);
    const result = await this.#dependencies.submit([...confirmations, ...commands]);
    this.#learn(result.summary);
    await this.#reportOwed(result.budget);
    const report = result.budget?.report ?? null;
    return result.replies.slice(confirmations.length).map((reply) => ({ reply, report }));
  }

  async #reportOwed(share: BudgetShare | undefined): Promise<void> {
    const owed = share?.owedRevision ?? null;
    if (share === undefined || owed === null || owed <= this.#reportedRevision) return;
    const { revision } = share.report;
    const heard = this.#dependencies.hear(share.report).then(
      () => true,
      () => false,
    );
    const isHeard = await Promise.race([heard, this.#dependencies.sleep(REPORTED_MS).then(() => false)]);
    if (!isHeard) return;
    this.#reportedRevision = revision;
    this.confirmLater({ kind: "confirm_report", revision });
  }

  #learn(summary: AgentSummary): void {
    if (summary.revision <= this.#seenRevision) return;
    this.#seenRevision = summary.revision;
    const isArmed = this.#summary !== null;
    this.#summary = summary;
    if (isArmed) return;
    void this.#dependencies
      .sleep(SUMMARY_AFTER_MS)
      .then(() => this.#write())
      .catch(() => null);
  }

  async #write(): Promise<void> {
    const summary = this.#summary;
    this.#summary = null;
    if (summary === null) return;
    await this.#dependencies.writeSummary(summary);
    this.confirmLater({ kind: "confirm_summary", revision: summary.revision });
  }
}
