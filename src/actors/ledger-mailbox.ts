import { withTimeout } from "../lib/with-timeout.ts";
import type { Projections } from "../payments/ports.ts";
import type { CommandOf, LedgerCommand, LedgerReply } from "../domain/ledger/commands.ts";
import type { StoredPayment } from "../domain/ledger/payment.ts";
import type { ProjectRef } from "../messages/ledger.ts";
import { LEDGER_BATCH_MAX, LEDGER_CONFIRMATIONS_MAX } from "../messages/ledger.ts";
import { AccountRecords } from "./account-records.ts";
import { ActorUnavailable, CallerGone } from "./actor-unavailable.ts";
import { BatchCapacity } from "./batch-capacity.ts";
import { failureOf, type Forwarded } from "./forwarding.ts";
import { type LedgerPeer, type LedgerRoute, NotForwarded } from "./ledger-peers.ts";
import { CommandsRefused } from "./commands-refused.ts";
import { FairQueue } from "../lib/fair-queue.ts";
import { isConfirmation, repliedBytesOf, senderOf, urgencyOf } from "./queued-commands.ts";
import { BatchLinger, type Release, RETURNED_WITHIN_MS } from "./batch-linger.ts";
import type { Submitted } from "./known-revisions.ts";
import { realTimers, type Timers } from "../lib/timers.ts";

/** Maximum waiting commands in this process: per agent, per project, and additional stops. */
const WAITING_OF_AGENT_MAX = 1_000;
const WAITING_MAX = 5_000;
const WAITING_STOPS_MAX = 100;

/** Time for which commands are collected before they are forwarded, and maximum forwarding requests in flight. */
const FORWARD_LINGER_MS = 1;
const FORWARDS_MAX = 16;

/**
 * Age of a decision from which payments are shed. A request is answered within 3.5 s, and its decision may have to wait
 * for an earlier one.
 */
const OVERLOAD_CUTOFF_MS = 1_000;

/** Commands accepted even then, as probes: they show when a stalled engine recovers, and cost it nothing. */
const PROBES_MAX = 8;

/** Maximum wait of a read until executed payments are published and can be confirmed. */
const PUBLICATION_TIMEOUT_MS = 1_000;

export interface LedgerMailboxDependencies {
  /** Sends one update to the project's ledger and waits for its result, up to a timeout. */
  readonly submit: (project: ProjectRef, commands: readonly LedgerCommand[]) => Promise<Submitted>;
  readonly route: LedgerRoute;
  readonly recordAccount: Projections["writeAccount"];
  /** Writes lingering publications at once. */
  readonly flushPublished: () => void;
  /** Maximum wait of a confirmation for an update to join. Well below the ledger's own sweep interval. */
  readonly confirmAfterMs: number;
  readonly timers?: Timers;
  readonly onError: (message: string, error: unknown) => void;
}

export interface LedgerAnswer<P extends StoredPayment = StoredPayment> {
  readonly reply: LedgerReply<P>;
  /** Account revision that reflects the command; 0 if nothing that the record shows has changed. */
  readonly revision: number;
  /** Time of the request by `performance.now()`, from which the decision's age counts. */
  readonly requestedMs: number;
  /** Resolves once the records show the ledger's revision; no response is sent before. */
  readonly revisionRecorded: Promise<void>;
}

/** The ledger's response to one command of another server, with the parts of its update's response. */
export interface AcceptedAnswer extends LedgerAnswer {
  readonly update: Pick<Forwarded, "accounts" | "closed" | "fill">;
}

interface Waiting {
  /** Sender in whose turn the command is sent. */
  readonly sender: string;
  readonly command: LedgerCommand;
  /** Whether the command came from another server, which then writes the records that it changes. */
  readonly isAccepted: boolean;
  readonly isAwaited: () => boolean;
  readonly sinceMs: number;
  readonly resolve: (answered: AcceptedAnswer) => void;
  readonly reject: (error: unknown) => void;
}

/** Response to an update, from the ledger or through another server. */
type Exchanged = (Submitted | Forwarded) & Partial<Pick<Submitted, "revisionRecorded">>;

type Confirmation = CommandOf<"confirm">;

/**
 * Mailbox of this process for one project's ledger. At most one update is in flight. Commands that arrive meanwhile are
 * batched into the next, round robin over the agents, so that a busy project costs one workflow task per batch.
 *
 * If another server batches the ledger's commands, they are forwarded to that server as they arrive; a command that it
 * can't answer is sent to the ledger from here. Confirmations join the next update, or are sent alone after a short
 * while; a lost confirmation costs the ledger a sweep.
 */
export class LedgerMailbox {
  readonly #project: ProjectRef;
  readonly #dependencies: LedgerMailboxDependencies;
  readonly #retire: () => void;
  readonly #waiting: FairQueue<Waiting>;
  readonly #records: AccountRecords;
  #confirmations: Confirmation[] = [];
  /** Confirmations of payments that are still being published, by agent. The promises never reject. */
  readonly #unpublished = new Map<Promise<void>, string>();
  /** Exchanges in flight, and the time at which each began. */
  readonly #inFlight = new Map<Promise<void>, number>();
  /** Whether an update is in flight, and whether an exchange in flight confirms records. */
  #isUpdating = false;
  #isConfirming = false;
  /** Number of waiting commands of other servers, which are not forwarded again. */
  #accepted = 0;
  /** Callers of other servers that were just answered and may pay again. */
  readonly #returning: Release[] = [];
  readonly #timers: Timers;
  #cancelTimer: (() => void) | null = null;
  readonly #linger: BatchLinger;
  #cancelLinger: (() => void) | null = null;
  #waitingSinceMs = 0;

  constructor(project: ProjectRef, dependencies: LedgerMailboxDependencies, retire: () => void) {
    this.#project = project;
    this.#dependencies = dependencies;
    this.#retire = retire;
    this.#timers = dependencies.timers ?? realTimers;
    this.#waiting = new FairQueue(
      ({ command }) => urgencyOf(command),
      () => this.#timers.monotonicMs(),
    );
    this.#linger = new BatchLinger(this.#timers, () => {
      this.#pump();
      this.#onIdle();
    });
    this.#records = new AccountRecords(dependencies, () => this.#onIdle());
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Whether one more payment of the agent would come too late: the update in flight, the next turn or the agent's own
   * oldest command is over a second old. A few commands must already wait, since they show when the overload ends. An
   * agent that sends more than its share delays only itself.
   */
  isOverloaded(agentId: string): boolean {
    if (this.#waiting.size < PROBES_MAX) return false;
    const since = [
      this.#inFlight.size === 0 ? null : Math.min(...this.#inFlight.values()),
      this.#waiting.dueSinceMs,
      this.#waiting.nextOf(agentId)?.sinceMs ?? null,
    ].filter((ms) => ms !== null);
    return this.#timers.monotonicMs() - Math.min(...since) > OVERLOAD_CUTOFF_MS;
  }

  /** Rejects with `CallerGone` if nothing awaits the command any more when its turn comes. */
  submit(command: LedgerCommand, isAwaited = () => true): Promise<LedgerAnswer> {
    return this.#put(command, { sender: senderOf(command), isAccepted: false, isAwaited });
  }

  /** Submits a command that another server has forwarded. Confirmations take no turns of the agent's other commands. */
  accept(command: LedgerCommand): Promise<AcceptedAnswer> {
    const own = senderOf(command);
    const sender = isConfirmation(command) ? `confirm ${own}` : own;
    const answered = this.#put(command, { sender, isAccepted: true, isAwaited: () => true });
    if (command.kind === "pay") {
      this.#returning.shift()?.();
      answered.then(
        () => this.#awaitReturn(),
        () => undefined,
      );
    }
    return answered;
  }

  /**
   * Lets a batch wait for the next payment of another server's caller, or of another caller if that is forwarded first.
   */
  #awaitReturn(): void {
    const release = this.answering();
    this.#returning.push(release);
    this.#timers.after(RETURNED_WITHIN_MS, () => {
      const index = this.#returning.indexOf(release);
      if (index >= 0) this.#returning.splice(index, 1);
      release();
    });
  }

  #put(
    command: LedgerCommand,
    { isAccepted, isAwaited, sender }: Pick<Waiting, "isAccepted" | "isAwaited" | "sender">,
  ): Promise<AcceptedAnswer> {
    const spare = urgencyOf(command) === "stop" ? WAITING_STOPS_MAX : 0;
    const isFull =
      this.#waiting.size >= WAITING_MAX + spare ||
      this.#waiting.sizeOf(sender) >= WAITING_OF_AGENT_MAX + spare;
    if (isFull) return Promise.reject(new ActorUnavailable("too many requests wait for this ledger"));
    return new Promise((resolve, reject) => {
      const sinceMs = this.#timers.monotonicMs();
      if (this.#waiting.size === 0) this.#waitingSinceMs = sinceMs;
      this.#waiting.add(sender, { sender, command, isAccepted, isAwaited, sinceMs, resolve, reject });
      if (isAccepted) this.#accepted += 1;
      this.#pump();
    });
  }

  /** Makes a batch wait a moment for a request about to submit. Released once it has submitted, or will not. */
  announceCommand(): Release {
    return this.#linger.expecting();
  }

  /**
   * Makes a batch wait a moment for the next request of a caller that is being answered. Released after the response.
   */
  answering(): Release {
    return this.#linger.answering();
  }

  confirmLater(confirmation: Confirmation, published: Promise<void>): void {
    const { agentId, outcome, transactionId } = confirmation;
    if (outcome?.result.status === "settled") this.#records.charged(agentId, transactionId);
    const confirming = this.#confirmOnce(confirmation, published).finally(() => {
      this.#unpublished.delete(confirming);
      this.#onIdle();
    });
    this.#unpublished.set(confirming, agentId);
  }

  async #confirmOnce(confirmation: Confirmation, published: Promise<void>): Promise<void> {
    try {
      await published;
      this.#confirmations.push(confirmation);
    } catch (error) {
      this.#dependencies.onError("a payment's outcome was not published; its ledger will publish it", error);
    }
  }

  /**
   * Sends everything that waits for an agent (null: for all), with confirmations, and waits until the records show it.
   */
  async flush(agentId: string | null): Promise<void> {
    await this.#allPublished(agentId);
    // Before the exchange, which then confirms foreseen charges with their records.
    await this.#records.write(agentId);
    const isUnfinished = () =>
      this.#confirmations.some((each) => agentId === null || each.agentId === agentId) ||
      (agentId === null ? this.#waiting.size : this.#waiting.sizeOf(agentId)) > 0;
    // One exchange takes a limited number of confirmations. The number of rounds is bounded by those present at the
    // start.
    for (
      let left = 2 + Math.ceil(this.#confirmations.length / LEDGER_CONFIRMATIONS_MAX);
      left > 0;
      left -= 1
    ) {
      await Promise.all(this.#inFlight.keys());
      if (!isUnfinished()) break;
      if (this.#inFlight.size === 0) this.#send();
    }
    await Promise.all(this.#inFlight.keys());
    await this.#records.write(agentId);
  }

  async #allPublished(agentId: string | null): Promise<void> {
    const unpublished = [...this.#unpublished].flatMap(([publication, of]) =>
      agentId === null || of === agentId ? [publication] : [],
    );
    if (unpublished.length === 0) return;
    this.#dependencies.flushPublished();
    // Slower publications are not awaited: their confirmations are sent later, or the ledger's sweep publishes them.
    await withTimeout(PUBLICATION_TIMEOUT_MS, Promise.all(unpublished)).catch(() => undefined);
  }

  /** Whether this process may know more about an agent than its record shows. */
  isBehind(agentId: string): boolean {
    return (
      this.#inFlight.size > 0 ||
      this.#waiting.sizeOf(agentId) > 0 ||
      this.#records.isBehind(agentId) ||
      this.#confirmations.some((each) => each.agentId === agentId) ||
      [...this.#unpublished.values()].includes(agentId)
    );
  }

  #hasToConfirm(): boolean {
    return this.#confirmations.length > 0 || this.#records.hasToConfirm;
  }

  #confirmNow(): void {
    this.#clearTimer();
    if (this.#inFlight.size === 0 && this.#hasToConfirm()) this.#send();
  }

  #peer(): LedgerPeer | null {
    return this.#accepted > 0 ? null : this.#dependencies.route.peerFor(this.#project);
  }

  /** Sends the next batch, or waits a moment if more commands are about to come. */
  #pump(): void {
    const { size } = this.#waiting;
    if (size === 0) return;
    const peer = this.#peer();
    if (peer === null ? this.#isUpdating : this.#inFlight.size >= FORWARDS_MAX) return;
    this.#cancelLinger?.();
    this.#cancelLinger = null;
    const canWait = size < LEDGER_BATCH_MAX && !this.#waiting.hasStop;
    const leftMs = canWait ? this.#lingerMs(peer) : 0;
    if (leftMs <= 0) this.#send(peer);
    else
      this.#cancelLinger = this.#timers.after(leftMs, () => {
        this.#cancelLinger = null;
        this.#pump();
      });
  }

  #lingerMs(peer: LedgerPeer | null): number {
    if (peer === null) return this.#linger.leftMs(this.#waiting.size, this.#waitingSinceMs);
    return this.#waitingSinceMs + FORWARD_LINGER_MS - this.#timers.monotonicMs();
  }

  #send(peer = this.#peer()): void {
    this.#clearTimer();
    this.#cancelLinger?.();
    this.#cancelLinger = null;
    const isUpdate = peer === null;
    if (isUpdate) {
      this.#isUpdating = true;
      this.#linger.sent(this.#waiting.size);
    }
    const sentMs = this.#timers.monotonicMs();
    const exchange = this.#exchange(peer).finally(() => {
      this.#inFlight.delete(exchange);
      if (isUpdate) {
        this.#isUpdating = false;
        this.#linger.updated(this.#timers.monotonicMs() - sentMs);
      }
      this.#pump();
      this.#onIdle();
    });
    this.#inFlight.set(exchange, sentMs);
  }

  /** Schedules remaining confirmations when nothing is in flight; retires an empty mailbox. */
  #onIdle(): void {
    if (this.#inFlight.size > 0 || this.#waiting.size > 0) return;
    if (this.#hasToConfirm())
      this.#cancelTimer ??= this.#timers.after(this.#dependencies.confirmAfterMs, () => this.#confirmNow());
    else if (this.#unpublished.size === 0 && this.#linger.isEmpty && !this.#records.hasToWrite)
      this.#retire();
  }

  async #exchange(peer: LedgerPeer | null): Promise<void> {
    const { confirmations, written, batch } = this.#nextBatch();
    // A foreseen charge is confirmed before the record that shows it.
    const before: LedgerCommand[] = written === null ? confirmations : [...confirmations, written];
    if (before.length + batch.length === 0) return;
    const requestedMs = this.#timers.monotonicMs();
    try {
      const commands = [...before, ...batch.map(({ command }) => command)];
      const exchanged: Exchanged = await (peer === null
        ? this.#dependencies.submit(this.#project, commands)
        : peer.submit(commands));
      if (written !== null) this.#records.confirmed(written);
      this.#answer(batch, exchanged, { requestedMs, skipped: before.length });
    } catch (error) {
      if (error instanceof NotForwarded || (error instanceof CommandsRefused && error.indexes.size > 0))
        return this.#requeueUnrefused(error, { written, confirmations, batch });
      if (batch.length === 0) this.#dependencies.onError("confirmations were lost; the ledger sweeps", error);
      for (const { reject } of batch) reject(error);
    } finally {
      if (written !== null) this.#isConfirming = false;
    }
  }

  #nextBatch(): Sent {
    const written = this.#isConfirming ? null : this.#records.confirmation();
    if (written !== null) this.#isConfirming = true;
    const confirming = new BatchCapacity(LEDGER_CONFIRMATIONS_MAX - 1);
    const confirmations = confirming.take(this.#confirmations);
    for (const { reject } of this.#waiting.remove(({ isAwaited }) => !isAwaited()))
      reject(new CallerGone("the caller left before the command was sent"));
    const capacity = new BatchCapacity(LEDGER_BATCH_MAX);
    const batch = this.#waiting.take(({ command }, isFirst) =>
      isConfirmation(command)
        ? confirming.tryReserve(command)
        : capacity.tryReserve(command, repliedBytesOf(command), isFirst),
    );
    this.#accepted -= batch.filter(({ isAccepted }) => isAccepted).length;
    if (this.#waiting.size > 0) this.#waitingSinceMs = this.#timers.monotonicMs();
    return { written, confirmations, batch };
  }

  #answer(
    batch: readonly Waiting[],
    exchanged: Exchanged,
    { requestedMs, skipped }: { readonly requestedMs: number; readonly skipped: number },
  ): void {
    const { accounts, closed, fill, replies, revisionRecorded = Promise.resolve() } = exchanged;
    const revisions = new Map(accounts.map(({ agentId, revision }) => [agentId, revision]));
    const own = new Set(batch.flatMap(({ isAccepted, sender }) => (isAccepted ? [] : sender)));
    const others = new Set(batch.flatMap(({ isAccepted, command }) => (isAccepted ? senderOf(command) : [])));
    this.#records.add(accounts.filter(({ agentId }) => own.has(agentId) || !others.has(agentId)));
    batch.forEach(({ reject, resolve, sender }, index) => {
      const reply = replies[skipped + index];
      if (reply === undefined) reject(new Error("the ledger returned fewer replies than commands"));
      else if ("failure" in reply) reject(failureOf(reply));
      else if (reply.kind === "failed") reject(new Error(`the ledger could not judge: ${reply.message}`));
      else
        resolve({
          reply,
          revision: revisions.get(sender) ?? 0,
          requestedMs,
          revisionRecorded,
          update: { accounts, closed, fill },
        });
    });
  }

  /** Puts the commands that were not refused at the front again, since none is known to be decided. */
  #requeueUnrefused(refused: CommandsRefused | NotForwarded, { batch, confirmations, written }: Sent): void {
    const indexes: ReadonlySet<number> = refused instanceof CommandsRefused ? refused.indexes : new Set();
    const isWrittenRefused = written !== null && indexes.has(confirmations.length);
    if (isWrittenRefused) this.#records.confirmed(written);
    const retained = confirmations.filter((_command, index) => !indexes.has(index));
    this.#confirmations.unshift(...retained);
    if (retained.length < confirmations.length || isWrittenRefused)
      this.#dependencies.onError("confirmations were refused; the ledger sweeps", refused);
    const waitingFrom = confirmations.length + (written === null ? 0 : 1);
    const isRefused = (index: number): boolean => indexes.has(waitingFrom + index);
    for (const [index, waiting] of [...batch.entries()].toReversed()) {
      if (isRefused(index)) continue;
      this.#waiting.requeue(waiting.sender, [waiting]);
      if (waiting.isAccepted) this.#accepted += 1;
    }
    batch.forEach(({ reject }, index) => isRefused(index) && reject(refused));
  }

  #clearTimer(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
  }
}

interface Sent {
  readonly written: CommandOf<"confirm_records"> | null;
  readonly confirmations: Confirmation[];
  readonly batch: readonly Waiting[];
}
