import { tracedBatch } from "../lib/tracing.ts";
import type { AgentGateway, LedgerGateway, Projections } from "../payments/ports.ts";
import type { AgentCommand, AgentReply } from "../domain/agent/commands.ts";
import type { AgentProfile, AgentSummary, FollowedAgent } from "../domain/agent/state.ts";
import { SUBMIT_BATCH_MAX, type SubmitResult } from "../messages/agent.ts";
import { ActorUnavailable } from "./actor-unavailable.ts";
import { BatchCapacity } from "./batch-capacity.ts";
import { realTimers, type Timers } from "../lib/timers.ts";

/** Maximum waiting commands per agent in this process. */
const WAITING_COMMANDS_MAX = 1_000;

/** Maximum wait of a confirmation for an update to join. Well below the actor's own sweep interval. */
const CONFIRM_AFTER_MS = 250;

export interface AgentActorsDependencies {
  /** Sends one update to the agent's actor and awaits its result, up to a timeout. May throw `NoSuchActor`. */
  readonly submit: (agentId: string, commands: readonly AgentCommand[]) => Promise<SubmitResult>;
  readonly ledgers: LedgerGateway;
  readonly writeAgent: Projections["writeAgent"];
  readonly onError: (message: string, error: unknown) => void;
  readonly timers?: Timers;
}

interface Waiting {
  readonly command: AgentCommand;
  readonly resolve: (reply: AgentReply) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Mailbox of this process for one agent's actor. At most one update is in flight; commands that arrive meanwhile are
 * batched into the next.
 */
class AgentMailbox {
  readonly #agentId: string;
  readonly #dependencies: AgentActorsDependencies;
  readonly #retire: () => void;
  readonly #waiting: Waiting[] = [];
  #confirmations: AgentCommand[] = [];
  #inFlight: Promise<void> | null = null;
  readonly #timers: Timers;
  #cancelTimer: (() => void) | null = null;

  constructor(agentId: string, dependencies: AgentActorsDependencies, retire: () => void) {
    this.#agentId = agentId;
    this.#dependencies = dependencies;
    this.#retire = retire;
    this.#timers = dependencies.timers ?? realTimers;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  submit(command: AgentCommand): Promise<AgentReply> {
    if (this.#waiting.length >= WAITING_COMMANDS_MAX)
      return Promise.reject(new ActorUnavailable("too many requests wait for this agent"));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ command, resolve, reject });
      this.#pump();
    });
  }

  async flush(): Promise<void> {
    await this.#inFlight;
    if (this.#confirmations.length > 0) this.#send();
    await this.#inFlight;
  }

  #pump(): void {
    if (this.#inFlight === null && this.#waiting.length > 0) this.#send();
  }

  #send(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    this.#inFlight ??= this.#exchange().finally(() => {
      this.#inFlight = null;
      this.#pump();
      this.#rest();
    });
  }

  #rest(): void {
    if (this.#inFlight !== null) return;
    if (this.#confirmations.length > 0)
      this.#cancelTimer ??= this.#timers.after(CONFIRM_AFTER_MS, () => this.#send());
    else this.#retire();
  }

  async #exchange(): Promise<void> {
    const confirmations = this.#confirmations.splice(0, 2);
    const capacity = new BatchCapacity(SUBMIT_BATCH_MAX - confirmations.length);
    let count = 0;
    while (
      capacity.tryReserve(this.#waiting[count]?.command ?? null, 0, count === 0) &&
      count < this.#waiting.length
    )
      count += 1;
    const batch = this.#waiting.splice(0, count);
    try {
      const commands = [...confirmations, ...batch.map(({ command }) => command)];
      const { replies, unfollowed, unrecorded } = await tracedBatch("agent update", commands, () =>
        this.#dependencies.submit(this.#agentId, commands),
      );
      await this.#follow(unfollowed, unrecorded);
      batch.forEach(({ reject, resolve }, index) => {
        const reply = replies[confirmations.length + index];
        if (reply === undefined) reject(new Error("the actor returned fewer replies than commands"));
        else resolve(reply);
      });
    } catch (error) {
      if (batch.length === 0) this.#dependencies.onError("confirmations were lost; the actor sweeps", error);
      for (const { reject } of batch) reject(error);
    }
  }

  /**
   * Waits until ledger and record have followed the actor's decision, before a response. If that takes too long, the
   * actor's sweep completes it, and the caller gets an error instead of a success.
   */
  async #follow(unfollowed: SubmitResult["unfollowed"], unrecorded: AgentSummary | null): Promise<void> {
    await Promise.all([
      unfollowed === null ? null : this.#notifyLedger(unfollowed.agent, unfollowed.followed),
      unrecorded === null ? null : this.#record(unrecorded),
    ]);
  }

  async #notifyLedger(agent: AgentProfile, followed: FollowedAgent): Promise<void> {
    const command = { kind: "follow_agent", agentId: this.#agentId, ...followed } as const;
    await this.#dependencies.ledgers.submit(agent, command);
    this.#confirmations.push({ kind: "confirm_followed", revision: followed.revision });
  }

  async #record(summary: AgentSummary): Promise<void> {
    await this.#dependencies.writeAgent(summary);
    this.#confirmations.push({ kind: "confirm_record", revision: summary.revision });
  }
}

export class AgentActors implements AgentGateway {
  readonly #mailboxes = new Map<string, AgentMailbox>();
  readonly #dependencies: AgentActorsDependencies;

  constructor(dependencies: AgentActorsDependencies) {
    this.#dependencies = dependencies;
  }

  get waiting(): number {
    let waiting = 0;
    for (const mailbox of this.#mailboxes.values()) waiting += mailbox.waiting;
    return waiting;
  }

  /**
   * Submits a command to an agent's actor and resolves once the agent's record and its project's ledger match the
   * actor's decision. Throws `ActorUnavailable` if that takes too long, `NoSuchActor` if there is no actor.
   */
  submit(agentId: string, command: AgentCommand): Promise<AgentReply> {
    const existing = this.#mailboxes.get(agentId);
    if (existing !== undefined) return existing.submit(command);
    const mailbox = new AgentMailbox(agentId, this.#dependencies, () => {
      if (this.#mailboxes.get(agentId) === mailbox) this.#mailboxes.delete(agentId);
    });
    this.#mailboxes.set(agentId, mailbox);
    return mailbox.submit(command);
  }

  async flushAll(): Promise<void> {
    await Promise.all([...this.#mailboxes.values()].map((mailbox) => mailbox.flush()));
  }
}
