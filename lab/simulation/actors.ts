import type { Activities } from "../../activities/types.ts";
import { StaleRecords } from "../../src/actors/actor-unavailable.ts";
import type { AgentCommand } from "../../src/domain/agent/commands.ts";
import {
  type AgentState,
  followedOf,
  isFinished,
  isUnfollowed,
  summarize,
} from "../../src/domain/agent/state.ts";
import type { LedgerCommand, LedgerReply } from "../../src/domain/ledger/commands.ts";
import { staleBackupOf } from "../../src/domain/ledger/stale-backup.ts";
import { withoutEnded } from "../../src/domain/ledger/increases.ts";
import { boundsNow } from "../../src/domain/ledger/windows.ts";
import type { Ledger } from "../../src/domain/ledger/state.ts";
import type { SubmitResult } from "../../src/messages/agent.ts";
import { type LedgerSubmitResult, NOTHING_KNOWN } from "../../src/messages/ledger.ts";
import { LedgerActor } from "../../workflows/ledger-actor.ts";
import { accountView, capsView } from "../../workflows/ledger-views.ts";
import type { Observer } from "./audit/observer.ts";
import type { Domain } from "./domain.ts";
import type { Timeline } from "./timeline.ts";

/** Delay after which an actor executes by itself what was not confirmed. */
const SWEEP_AFTER_MS = 10_000;

/** Activities of actors, in some process, retried after a failure and given up after a while. */
export type ActorActivities = Pick<
  Activities,
  | "executePayments"
  | "mirrorLimits"
  | "tellActors"
  | "writeAccounts"
  | "writeCaps"
  | "writeAgent"
  | "followInLedger"
  | "detachWallet"
  | "closeDeliveryWindow"
>;

export interface ActorDependencies {
  readonly domain: Domain;
  readonly timeline: Timeline;
  readonly observer: Observer;
  readonly activities: ActorActivities;
  /** The engine's clock, which may go back. */
  readonly now: () => number;
}

/** A project's ledger as workflows/ledger.ts runs it, over the same code; only the engine is simulated. */
export class SimulatedLedger {
  readonly #dependencies: ActorDependencies;
  #actor: LedgerActor;
  /** Raised by continue-as-new: what an earlier run waited for is nothing to this one. */
  #run = 0;
  #armedAt = Infinity;
  sweeps = 0;

  constructor(dependencies: ActorDependencies, ledger: Ledger) {
    this.#dependencies = dependencies;
    this.#actor = this.#actorOf(ledger);
    this.#arm();
  }

  get ledger(): Ledger {
    return this.#actor.ledger;
  }

  submit(commands: readonly LedgerCommand[], known = NOTHING_KNOWN): LedgerSubmitResult {
    const stale = staleBackupOf(this.ledger, known);
    // Another process has written them, and said so, since they were read; nothing is ever from a backup.
    if (stale === "records") throw new StaleRecords("the records were read too early");
    if (stale === "ledger") throw new Error("the ledger would be from a backup");
    const result = this.#actor.submit(commands, known);
    this.#arm();
    return result;
  }

  /** The clock was put right: something may be due sooner. */
  recheck(): void {
    this.#arm();
  }

  /** The ledger goes on as it was packed, and the sweeps of the run before are dropped. */
  continueAsNew(): void {
    const { domain, now, observer } = this.#dependencies;
    const before = this.ledger;
    before.touched.clear();
    const after = domain.rollOverLedger(before, now());
    observer.rolledOver("the ledger", shownOf(before, now()), shownOf(after, now()));
    this.#run += 1;
    this.#armedAt = Infinity;
    this.#actor = this.#actorOf(after);
    this.#arm();
  }

  #actorOf(ledger: Ledger): LedgerActor {
    const { activities, now } = this.#dependencies;
    const run = this.#run;
    const judge = (command: LedgerCommand): LedgerReply =>
      // Of a run that is over nothing counts any more.
      run === this.#run ? this.#judge(ledger, command) : { kind: "confirmed" };
    return new LedgerActor(
      ledger,
      { sweepAfterMs: SWEEP_AFTER_MS },
      {
        activities: { ...activities, executePayments: (_rail, input) => activities.executePayments(input) },
        judge,
        now,
        onFailed: () => undefined,
        isEnding: () => run !== this.#run,
        emitCommand: () => run === this.#run && this.#arm(),
      },
    );
  }

  #judge(ledger: Ledger, command: LedgerCommand): LedgerReply {
    const { domain, now, observer } = this.#dependencies;
    const at = now();
    const reply = domain.judge(ledger, command, at);
    const account =
      "agentId" in command ? accountView(ledger, { agentId: command.agentId, now: at }, at) : null;
    observer.ledgerAnswered(command, reply, {
      now: at,
      bounds: ledger.bounds,
      caps: capsView(ledger, at),
      account,
    });
    return reply;
  }

  /** A timer for what is due next; an earlier one that fires in vain does no harm. */
  #arm(): void {
    const { sweeps } = this.#actor;
    const { now, timeline } = this.#dependencies;
    if (sweeps.nextAt === Infinity) return;
    const waitMs = Math.max(1, sweeps.nextAt - now());
    const at = timeline.now + waitMs;
    if (at >= this.#armedAt) return;
    this.#armedAt = at;
    const run = this.#run;
    // A wait for hours (windows that close, paused agents) does not prevent rest.
    const isIdle = waitMs > 2 * SWEEP_AFTER_MS + 1_000;
    timeline.after(
      waitMs,
      () => {
        if (run !== this.#run) return;
        this.#armedAt = Infinity;
        this.sweeps += 1;
        sweeps.sweep(now());
        this.#arm();
      },
      isIdle,
    );
  }
}

/** But for what only makes it faster, and counts that are too old to matter: those show in its answers. */
const shownOf = (ledger: Ledger, now: number): unknown => ({
  caps: capsView(ledger, now),
  keys: ledger.keys.byAgent,
  openPayments: ledger.openPayments,
  accounts: Object.fromEntries(
    [...ledger.accounts].map(([agentId, { policy, usage: _usage, weightBytes: _weight, ...account }]) => [
      agentId,
      { ...account, policy: withoutEnded(policy, boundsNow(ledger, now).at) },
    ]),
  ),
});

const DUTIES = ["window", "ledger", "record", "wallet"] as const;
type Duty = (typeof DUTIES)[number];

/** An agent's actor as workflows/agent.ts runs it: decides about the agent's life, and sees to what is unconfirmed. */
export class SimulatedAgent {
  readonly #dependencies: ActorDependencies;
  readonly #onEnded: () => void;
  state: AgentState;
  readonly #running = new Set<Duty>();
  #run = 0;
  #armedAt = Infinity;
  hasEnded = false;

  constructor(dependencies: ActorDependencies, state: AgentState, onEnded: () => void) {
    this.#dependencies = dependencies;
    this.#onEnded = onEnded;
    this.state = state;
    this.#arm();
  }

  submit(commands: readonly AgentCommand[]): SubmitResult {
    const replies = commands.map((command) => this.#handle(command));
    this.#after();
    const { confirmedRevision, profile, revision } = this.state;
    return {
      replies,
      unrecorded: confirmedRevision < revision ? summarize(this.state) : null,
      unfollowed: isUnfollowed(this.state) ? { agent: profile, followed: followedOf(this.state) } : null,
    };
  }

  continueAsNew(): void {
    const before = this.state;
    this.state = this.#dependencies.domain.rollOverAgent(before);
    this.#dependencies.observer.rolledOver(before.profile.agentId, before, this.state);
    this.#running.clear();
    this.#run += 1;
    this.#armedAt = Infinity;
    this.#arm();
  }

  /** The clock was put right: something may be due sooner. */
  recheck(): void {
    this.#arm();
  }

  #handle(command: AgentCommand) {
    const { domain, now, observer } = this.#dependencies;
    const at = now();
    const reply = domain.handle(this.state, command, at);
    const { agentId } = this.state.profile;
    observer.agentAnswered({ agentId, command, reply, summary: summarize(this.state), now: at });
    return reply;
  }

  #after(): void {
    if (!this.hasEnded && this.#running.size === 0 && isFinished(this.state)) {
      this.hasEnded = true;
      this.#run += 1;
      this.#onEnded();
    } else this.#arm();
  }

  #dueAt(duty: Duty): number {
    if (this.#running.has(duty) || this.hasEnded) return Infinity;
    const { access, archivedAt, confirmedRevision, revision, updatedAt, walletDetached } = this.state;
    switch (duty) {
      case "window":
        return access.bundled.erased ? Infinity : access.bundled.deliverableUntil;
      case "ledger":
        return isUnfollowed(this.state) ? updatedAt + SWEEP_AFTER_MS : Infinity;
      case "record":
        return confirmedRevision < revision ? updatedAt + SWEEP_AFTER_MS : Infinity;
      case "wallet":
        return archivedAt === null || walletDetached ? Infinity : archivedAt + SWEEP_AFTER_MS;
    }
  }

  #arm(): void {
    const { now, timeline } = this.#dependencies;
    const dueAt = Math.min(...DUTIES.map((duty) => this.#dueAt(duty)));
    if (dueAt === Infinity) return;
    const waitMs = Math.max(1, dueAt - now());
    if (timeline.now + waitMs >= this.#armedAt) return;
    this.#armedAt = timeline.now + waitMs;
    const run = this.#run;
    timeline.after(waitMs, () => {
      if (run !== this.#run) return;
      this.#armedAt = Infinity;
      for (const duty of DUTIES) if (this.#dueAt(duty) <= now()) void this.#see(run, duty);
      this.#arm();
    });
  }

  async #see(run: number, duty: Duty): Promise<void> {
    this.#running.add(duty);
    try {
      await this.#done(run, duty);
    } catch {
      // It comes again, after the usual pause.
      if (run === this.#run) this.state.updatedAt = this.#dependencies.now();
    }
    if (run !== this.#run) return;
    this.#running.delete(duty);
    this.#after();
  }

  async #done(run: number, duty: Duty): Promise<void> {
    const { activities } = this.#dependencies;
    const { profile } = this.state;
    const tell = (command: AgentCommand): void => {
      if (run === this.#run) this.#handle(command);
    };
    switch (duty) {
      case "window":
        await activities.closeDeliveryWindow({ agentId: profile.agentId });
        if (run === this.#run) this.state.access.bundled.erased = true;
        return;
      case "ledger": {
        const followed = followedOf(this.state);
        await activities.followInLedger({ agent: profile, followed });
        return tell({ kind: "confirm_followed", revision: followed.revision });
      }
      case "record": {
        const summary = summarize(this.state);
        await activities.writeAgent({ summary });
        return tell({ kind: "confirm_record", revision: summary.revision });
      }
      case "wallet":
        await activities.detachWallet({ profile });
        return tell({ kind: "confirm_detached" });
    }
  }
}
