import type { AgentCommand, AgentReply } from "../../src/domain/agent/commands.ts";
import type { AgentSummary } from "../../src/domain/agent/state.ts";
import { within } from "../../activities/within.ts";
import type { BudgetReport } from "../../src/domain/budget/report.ts";
import type { BudgetShare, SubmitResult } from "../../src/messages/agent.ts";
import { SUBMIT_BATCH_MAX } from "../../src/messages/agent.ts";
import { BatchRoom } from "./batch.ts";
import { CommandsRefused } from "./commands-refused.ts";

/** Commands that may wait for one agent in this process. */
const WAITING_COMMANDS_MAX = 1_000;

/** What stops an agent goes before whatever it asks for, and has places of its own: an agent that runs wild can be stopped. */
const STOPS: ReadonlySet<AgentCommand["kind"]> = new Set(["pause", "revoke_key", "archive"]);
const WAITING_STOPS_MAX = 100;
/** What a stop that is asked for later must not go before, or it would be undone. */
const STARTS: ReadonlySet<AgentCommand["kind"]> = new Set(["resume", "mint_key"]);

/**
 * How far behind its actor an agent's record may be when nobody on this server reads it. All agents' are written at the
 * same moments, so that they go together.
 */
const SUMMARY_TICK_MS = 500;

/** How long who reads waits until what was carried out is told of, so that it can be confirmed. */
const TOLD_MS = 1_000;

/** How long answers wait until a project's budget knows what was released. */
const REPORTED_MS = 1_500;

/** The actor, or the engine beneath it, did not answer in time: the commands may or may not have been decided. */
export class ActorUnavailable extends Error {
  override readonly name = "ActorUnavailable";
}

export interface MailboxDependencies {
  /** Sends one update to the agent's actor and waits for its result, to a bound. */
  readonly submit: (agentId: string, commands: readonly AgentCommand[]) => Promise<SubmitResult>;
  /** Tells a project's budget what was released under its caps. */
  readonly report: (share: BudgetShare) => Promise<void>;
  readonly writeSummary: (agentId: string, summary: AgentSummary) => Promise<void>;
  /** What is being told of payments is not to wait for more to go with. */
  readonly hurry: () => void;
  /** How long a confirmation waits for an update to ride along with. Well under the actor's own sweep. */
  readonly confirmAfterMs: number;
  readonly onError: (message: string, error: unknown) => void;
}

/** What this process last heard of an actor's table of idempotency keys. */
export interface KeyHorizon {
  readonly forgottenThrough: number;
  readonly projectedThrough: number;
}

/** What an actor said, and the revision of the agent's record that shows it. */
export interface Answered {
  readonly reply: AgentReply;
  readonly revision: number;
  /** What is put to the project's budget of what was decided; null where it need not be asked. */
  readonly report: BudgetReport | null;
  /** When it was asked, by `performance.now()`: what it allows for a while it allows from then on. */
  readonly askedMs: number;
}

interface Waiting {
  readonly command: AgentCommand;
  readonly resolve: (answered: Answered) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * One agent's mailbox in this process. At most one update is in flight; what arrives meanwhile goes together in the
 * next, so that a hot agent costs one workflow task per batch and the engine's bound on updates in flight is never
 * met. Confirmations ride along, or go by themselves after a short while; losing them costs the actor a sweep.
 */
class Mailbox {
  readonly #agentId: string;
  readonly #dependencies: MailboxDependencies;
  readonly #retire: () => void;
  #waiting: Waiting[] = [];
  #confirmations: AgentCommand[] = [];
  /** Confirmations of what is still being told of. None of them ever rejects. */
  readonly #untold = new Set<Promise<void>>();
  #inFlight: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  /** The newest summary that is not written yet, and the revision that was written but not confirmed. */
  #summary: AgentSummary | null = null;
  #summaryTimer: NodeJS.Timeout | null = null;
  #summaryWrite: Promise<void> = Promise.resolve();
  #summaryWrites = 0;
  #writtenSummaryRevision = 0;
  #seenSummaryRevision = 0;
  /** The newest revision of the agent's money that its project's budget has heard of from here. */
  #reportedRevision = 0;
  horizon: KeyHorizon | null = null;

  constructor(agentId: string, dependencies: MailboxDependencies, retire: () => void) {
    this.#agentId = agentId;
    this.#dependencies = dependencies;
    this.#retire = retire;
  }

  /** Commands that wait for the update in flight. */
  get waiting(): number {
    return this.#waiting.length;
  }

  submit(command: AgentCommand): Promise<Answered> {
    const isStop = STOPS.has(command.kind);
    const max = WAITING_COMMANDS_MAX + (isStop ? WAITING_STOPS_MAX : 0);
    if (this.#waiting.length >= max) {
      return Promise.reject(new ActorUnavailable("too many requests wait for this agent"));
    }
    return new Promise((resolve, reject) => {
      const waiting = { command, resolve, reject };
      if (isStop) this.#waiting.splice(this.#placeOfStop(), 0, waiting);
      else this.#waiting.push(waiting);
      this.#pump();
    });
  }

  /** The place of a stop: behind what people asked for before it that starts the agent, or stops it. */
  #placeOfStop(): number {
    return 1 + this.#waiting.findLastIndex(({ command: { kind } }) => STOPS.has(kind) || STARTS.has(kind));
  }

  confirmLater(command: AgentCommand, told: Promise<void>): void {
    const confirming = this.#confirmOnce(command, told).finally(() => {
      this.#untold.delete(confirming);
      this.#rest();
    });
    this.#untold.add(confirming);
  }

  async #confirmOnce(command: AgentCommand, told: Promise<void>): Promise<void> {
    try {
      await told;
      this.#confirmations.push(command);
    } catch (error) {
      this.#dependencies.onError("what became of a payment was not told; its actor will", error);
    }
  }

  async #allTold(): Promise<void> {
    if (this.#untold.size === 0) return;
    this.#dependencies.hurry();
    // What takes longer is not waited for: its confirmation goes by itself, or the actor tells it.
    await within(TOLD_MS, Promise.all(this.#untold)).catch(() => undefined);
  }

  /** Sends what waits by now, confirmations too, and waits until the agent's record shows it. */
  async flush(): Promise<void> {
    await this.#allTold();
    const waiting = this.#waiting.length + this.#confirmations.length;
    const exchanges = (this.#inFlight === null ? 0 : 1) + Math.ceil(waiting / SUBMIT_BATCH_MAX) + 1;
    for (let exchange = 0; exchange < exchanges; exchange += 1) {
      this.#confirmNow();
      if (this.#inFlight === null) break;
      await this.#inFlight;
    }
    this.#writeSummary();
    await this.#summaryWrite;
  }

  #confirmNow(): void {
    this.#clearTimer();
    if (this.#inFlight === null && this.#hasToConfirm()) this.#send();
  }

  #hasToConfirm(): boolean {
    return this.#confirmations.length > 0 || this.#writtenSummaryRevision > 0;
  }

  #armTimer(): void {
    this.#timer ??= setTimeout(() => this.#confirmNow(), this.#dependencies.confirmAfterMs);
  }

  #pump(): void {
    if (this.#inFlight === null && this.#waiting.length > 0) this.#send();
  }

  #send(): void {
    this.#clearTimer();
    this.#inFlight = this.#exchange().finally(() => {
      this.#inFlight = null;
      this.#pump();
      if (this.#inFlight !== null) return;
      this.#rest();
    });
  }

  /** Nothing is in flight: what is left to confirm goes shortly; a mailbox with nothing left is let go. */
  #rest(): void {
    if (this.#inFlight !== null || this.#waiting.length > 0) return;
    if (this.#hasToConfirm()) this.#armTimer();
    else if (this.#untold.size > 0) return;
    else if (this.#summary === null && this.#summaryWrites === 0) this.#retire();
  }

  async #exchange(): Promise<void> {
    const toldRevision = this.#writtenSummaryRevision;
    const told: AgentCommand[] =
      toldRevision > 0 ? [{ kind: "confirm_summary", revision: toldRevision }] : [];
    const room = new BatchRoom(SUBMIT_BATCH_MAX - told.length);
    // Whoever waits is not kept waiting by confirmations alone.
    const spared = this.#waiting.length > 0 ? 1 : 0;
    const confirmations = room.take(this.#confirmations, (command) => command, undefined, spared);
    const batch = room.takeSome(this.#waiting, ({ command }) => command);
    const commands = [...told, ...confirmations, ...batch.map((waiting) => waiting.command)];
    const askedMs = performance.now();
    try {
      const result = await this.#dependencies.submit(this.#agentId, commands);
      if (toldRevision === this.#writtenSummaryRevision) this.#writtenSummaryRevision = 0;
      this.#learn(result);
      await this.#reportOwed(result.budget);
      const replies = result.replies.slice(told.length + confirmations.length);
      const report = result.budget?.report ?? null;
      batch.forEach((waiting, index) => {
        const reply = replies[index];
        if (reply === undefined) waiting.reject(new Error("the actor answered fewer commands than it got"));
        else waiting.resolve({ reply, revision: result.summary.revision, report, askedMs });
      });
    } catch (error) {
      if (error instanceof CommandsRefused && error.places.size > 0) {
        this.#sayTheRest(error, told.length, confirmations, batch);
        return;
      }
      if (batch.length === 0) this.#dependencies.onError("confirmations were lost; the actor sweeps", error);
      for (const waiting of batch) waiting.reject(error);
    }
  }

  /** Nothing of the batch was decided: what was not refused of it goes with the next, at its front. */
  #sayTheRest(
    refused: CommandsRefused,
    toldCount: number,
    confirmations: readonly AgentCommand[],
    batch: readonly Waiting[],
  ): void {
    const { places } = refused;
    const isRefusedAfter = (before: number) => (_command: unknown, index: number) =>
      places.has(before + index);
    const isConfirmationRefused = isRefusedAfter(toldCount);
    const isWaitingRefused = isRefusedAfter(toldCount + confirmations.length);
    const isSummaryRefused = toldCount > 0 && places.has(0);
    if (isSummaryRefused) this.#writtenSummaryRevision = 0;
    const kept = confirmations.filter((command, index) => !isConfirmationRefused(command, index));
    this.#confirmations.unshift(...kept);
    if (isSummaryRefused || kept.length < confirmations.length)
      this.#dependencies.onError("confirmations were refused; the actor sweeps", refused);
    this.#waiting.unshift(...batch.filter((waiting, index) => !isWaitingRefused(waiting, index)));
    for (const waiting of batch.filter(isWaitingRefused)) waiting.reject(refused);
  }

  /**
   * What was released is there for other agents before anybody hears of it. Where that can't be had in time, the actor sees
   * to it.
   */
  async #reportOwed(share: BudgetShare | undefined): Promise<void> {
    const owed = share?.owedRevision ?? null;
    if (share === undefined || owed === null || owed <= this.#reportedRevision) return;
    const { revision } = share.report;
    try {
      await within(REPORTED_MS, this.#dependencies.report(share));
      this.#reportedRevision = revision;
      this.#confirmations.push({ kind: "confirm_report", revision });
    } catch (error) {
      this.#dependencies.onError("a budget was not told what was released; the actor will", error);
    }
  }

  #learn(result: SubmitResult): void {
    const { forgottenThrough, projectedThrough, summary } = result;
    this.horizon = { forgottenThrough, projectedThrough };
    if (summary.revision <= this.#seenSummaryRevision) return;
    this.#seenSummaryRevision = summary.revision;
    this.#summary = summary;
    const untilTick = SUMMARY_TICK_MS - (performance.now() % SUMMARY_TICK_MS);
    this.#summaryTimer ??= setTimeout(() => this.#writeSummary(), untilTick);
  }

  /** The agent's record follows its actor a little behind, many changes in one write; a flush writes at once. */
  #writeSummary(): void {
    if (this.#summaryTimer !== null) clearTimeout(this.#summaryTimer);
    this.#summaryTimer = null;
    const summary = this.#summary;
    if (summary === null) return;
    this.#summary = null;
    this.#summaryWrite = this.#write(summary);
  }

  async #write(summary: AgentSummary): Promise<void> {
    this.#summaryWrites += 1;
    try {
      await this.#dependencies.writeSummary(this.#agentId, summary);
      this.#writtenSummaryRevision = Math.max(this.#writtenSummaryRevision, summary.revision);
    } catch (error) {
      this.#dependencies.onError("the agent's record was not written; its actor sweeps", error);
    }
    this.#summaryWrites -= 1;
    this.#rest();
  }

  #clearTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}

/** The mailboxes of this process, one for each agent that has something under way. */
export class AgentMailboxes {
  readonly #mailboxes = new Map<string, Mailbox>();
  readonly #dependencies: MailboxDependencies;

  constructor(dependencies: MailboxDependencies) {
    this.#dependencies = dependencies;
  }

  /** Commands that wait for their turn, of all agents. */
  get waiting(): number {
    let waiting = 0;
    for (const mailbox of this.#mailboxes.values()) waiting += mailbox.waiting;
    return waiting;
  }

  /** Puts one command to an agent's actor. Throws `ActorUnavailable` when no answer came in time. */
  async submit(agentId: string, command: AgentCommand): Promise<AgentReply> {
    return (await this.answered(agentId, command)).reply;
  }

  /** The same, for who waits until the agent's record has come that far. */
  answered(agentId: string, command: AgentCommand): Promise<Answered> {
    return this.#of(agentId).submit(command);
  }

  /** Tells the actor what was carried out once that is told of, with its next update after that or shortly after. */
  confirmLater(agentId: string, command: AgentCommand, told: Promise<void>): void {
    this.#of(agentId).confirmLater(command, told);
  }

  /** What is known of the actor's remembered keys; null when this process has not spoken to it lately. */
  horizonOf(agentId: string): KeyHorizon | null {
    return this.#mailboxes.get(agentId)?.horizon ?? null;
  }

  /** After this, actor and record show everything that this process has carried out for the agent. */
  async flush(agentId: string): Promise<void> {
    await this.#mailboxes.get(agentId)?.flush();
  }

  /** Whether this process may know more of an agent than its record shows. */
  isBehind(agentId: string): boolean {
    return this.#mailboxes.has(agentId);
  }

  async flushAll(): Promise<void> {
    await Promise.all([...this.#mailboxes.values()].map((mailbox) => mailbox.flush()));
  }

  #of(agentId: string): Mailbox {
    const existing = this.#mailboxes.get(agentId);
    if (existing !== undefined) return existing;
    const mailbox = new Mailbox(agentId, this.#dependencies, () => this.#mailboxes.delete(agentId));
    this.#mailboxes.set(agentId, mailbox);
    return mailbox;
  }
}
