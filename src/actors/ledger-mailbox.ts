import { withTimeout } from "../lib/with-timeout.ts";
import type { RecordAccount } from "./account-recorder.ts";
import type { CommandOf, LedgerCommand, LedgerReply } from "../domain/ledger/commands.ts";
import type { ProjectRef } from "../messages/ledger.ts";
import { LEDGER_BATCH_MAX, LEDGER_CONFIRMATIONS_MAX } from "../messages/ledger.ts";
import { AccountRecords } from "./account-records.ts";
import { ActorUnavailable } from "./actor-unavailable.ts";
import { BatchRoom } from "./batch.ts";
import { CommandsRefused } from "./commands-refused.ts";
import { FairQueue, type Urgency } from "./fair-queue.ts";
import { Gathering, type Release } from "./gathering.ts";
import type { Submitted } from "./ledger-revisions.ts";
import { realTimers, type Timers } from "../lib/timers.ts";

/** Commands that may wait in this process: for one agent, for one project, and stops beyond both. */
const WAITING_OF_AGENT_MAX = 1_000;
const WAITING_MAX = 5_000;
const WAITING_STOPS_MAX = 100;

/** How long who reads waits until what was carried out is written of, so that it can be confirmed. */
const PUBLISHED_MS = 1_000;

export interface LedgerMailboxDependencies {
  /** Sends one update to the project's ledger and waits for its result, to a bound. */
  readonly submit: (place: ProjectRef, commands: readonly LedgerCommand[]) => Promise<Submitted>;
  readonly recordAccount: RecordAccount;
  /** Writes at once what is being published about payments, instead of waiting for a larger batch. */
  readonly flushPublished: () => void;
  /** How long a confirmation waits for an update to ride along with. Well under the ledger's own sweep. */
  readonly confirmAfterMs: number;
  readonly timers?: Timers;
  readonly onError: (message: string, error: unknown) => void;
}

/** What a ledger said. */
export interface Answered {
  readonly reply: LedgerReply;
  /** The revision of the account that shows it; 0: what its record shows has not changed. */
  readonly revision: number;
  /** When it was asked, by `performance.now()`: what it allows for a while it allows from then on. */
  readonly askedMs: number;
  /** Once the records show how far the ledger had come with it: nobody is written of it before. */
  readonly kept: Promise<void>;
}

interface Waiting {
  readonly sender: string;
  readonly command: LedgerCommand;
  readonly resolve: (answered: Answered) => void;
  readonly reject: (error: unknown) => void;
}

type Confirmation = CommandOf<"confirm">;

/**
 * One project's ledger as this process speaks to it. At most one update is in flight; what arrives meanwhile goes together in the next,
 * in turn over the agents, so that a busy project costs one workflow task for each batch and the engine's bound on updates in flight is
 * never met. Confirmations ride along, or go by themselves after a short while; losing them costs the ledger a sweep.
 */
export class LedgerMailbox {
  readonly #place: ProjectRef;
  readonly #dependencies: LedgerMailboxDependencies;
  readonly #retire: () => void;
  readonly #waiting = new FairQueue<Waiting>(({ command }) => urgencyOf(command));
  readonly #records: AccountRecords;
  #confirmations: Confirmation[] = [];
  /** Confirmations of what is still being written of, by agent. None of them ever rejects. */
  readonly #unpublished = new Map<Promise<void>, string>();
  #inFlight: Promise<void> | null = null;
  readonly #timers: Timers;
  #cancelTimer: (() => void) | null = null;
  readonly #gathering: Gathering;
  #cancelGathering: (() => void) | null = null;
  /** Since when what is first waits. */
  #waitingSinceMs = 0;

  constructor(place: ProjectRef, dependencies: LedgerMailboxDependencies, retire: () => void) {
    this.#place = place;
    this.#dependencies = dependencies;
    this.#retire = retire;
    this.#timers = dependencies.timers ?? realTimers;
    this.#gathering = new Gathering(this.#timers, () => {
      this.#pump();
      this.#rest();
    });
    this.#records = new AccountRecords(dependencies, () => this.#rest());
  }

  /** Commands that wait for the update in flight. */
  get waiting(): number {
    return this.#waiting.size;
  }

  submit(command: LedgerCommand): Promise<Answered> {
    const sender = senderOf(command);
    const spare = urgencyOf(command) === "stop" ? WAITING_STOPS_MAX : 0;
    const isFull =
      this.#waiting.size >= WAITING_MAX + spare ||
      this.#waiting.sizeOf(sender) >= WAITING_OF_AGENT_MAX + spare;
    if (isFull) return Promise.reject(new ActorUnavailable("too many requests wait for this ledger"));
    return new Promise((resolve, reject) => {
      if (this.#waiting.size === 0) this.#waitingSinceMs = this.#timers.monotonicMs();
      this.#waiting.add(sender, { sender, command, resolve, reject });
      this.#pump();
    });
  }

  /** A request is about to ask: a batch waits a moment for it. Whoever says so calls the answer once it has asked, or will not. */
  expect(): Release {
    return this.#gathering.asking();
  }

  /** A request was decided: a batch waits a moment for its caller to come again. Called as above once it was answered. */
  answering(): Release {
    return this.#gathering.answering();
  }

  confirmLater(confirmation: Confirmation, published: Promise<void>): void {
    const confirming = this.#confirmOnce(confirmation, published).finally(() => {
      this.#unpublished.delete(confirming);
      this.#rest();
    });
    this.#unpublished.set(confirming, confirmation.agentId);
  }

  async #confirmOnce(confirmation: Confirmation, published: Promise<void>): Promise<void> {
    try {
      await published;
      this.#confirmations.push(confirmation);
    } catch (error) {
      this.#dependencies.onError("what became of a payment was not written; its ledger will", error);
    }
  }

  /** Sends what waits by now of an agent (null: of all), confirmations too, and waits until the records show it. */
  async flush(agentId: string | null): Promise<void> {
    await this.#allPublished(agentId);
    const isConcerned = () =>
      this.#confirmations.some((each) => agentId === null || each.agentId === agentId) ||
      (agentId === null ? this.#waiting.size : this.#waiting.sizeOf(agentId)) > 0;
    // One exchange takes as many confirmations as fit; the bound is on those that were there to begin with.
    for (
      let left = 2 + Math.ceil(this.#confirmations.length / LEDGER_CONFIRMATIONS_MAX);
      left > 0;
      left -= 1
    ) {
      await this.#inFlight;
      if (!isConcerned()) break;
      if (this.#inFlight === null) this.#send();
    }
    await this.#inFlight;
    await this.#records.write(agentId);
  }

  async #allPublished(agentId: string | null): Promise<void> {
    const unpublished = [...this.#unpublished].flatMap(([publication, of]) =>
      agentId === null || of === agentId ? [publication] : [],
    );
    if (unpublished.length === 0) return;
    this.#dependencies.flushPublished();
    // What takes longer is not waited for: its confirmation goes by itself, or the ledger tells it.
    await withTimeout(PUBLISHED_MS, Promise.all(unpublished)).catch(() => undefined);
  }

  /** Whether this process may know more of an agent than its record shows. */
  isBehind(agentId: string): boolean {
    return (
      this.#inFlight !== null ||
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
    if (this.#inFlight === null && this.#hasToConfirm()) this.#send();
  }

  /** Sends the next batch, a moment later where more is about to come. */
  #pump(): void {
    if (this.#inFlight !== null || this.#waiting.size === 0) return;
    this.#cancelGathering?.();
    this.#cancelGathering = null;
    const { size } = this.#waiting;
    const canWait = size < LEDGER_BATCH_MAX && !this.#waiting.hasStop;
    const leftMs = canWait ? this.#gathering.leftMs(size, this.#waitingSinceMs) : 0;
    if (leftMs <= 0) this.#send();
    else
      this.#cancelGathering = this.#timers.after(leftMs, () => {
        this.#cancelGathering = null;
        this.#pump();
      });
  }

  #send(): void {
    this.#clearTimer();
    this.#cancelGathering?.();
    this.#cancelGathering = null;
    this.#gathering.sent(this.#waiting.size);
    const sentMs = this.#timers.monotonicMs();
    this.#inFlight = this.#exchange().finally(() => {
      this.#inFlight = null;
      this.#gathering.updated(this.#timers.monotonicMs() - sentMs);
      this.#pump();
      this.#rest();
    });
  }

  /** Nothing is in flight: what is left to confirm goes shortly; a mailbox with nothing left is let go. */
  #rest(): void {
    if (this.#inFlight !== null || this.#waiting.size > 0) return;
    if (this.#hasToConfirm())
      this.#cancelTimer ??= this.#timers.after(this.#dependencies.confirmAfterMs, () => this.#confirmNow());
    else if (this.#unpublished.size === 0 && this.#gathering.isEmpty && !this.#records.hasToWrite)
      this.#retire();
  }

  async #exchange(): Promise<void> {
    const written = this.#records.confirmation();
    const confirmations = new BatchRoom(LEDGER_CONFIRMATIONS_MAX - 1).take(this.#confirmations);
    const before: LedgerCommand[] = written === null ? confirmations : [written, ...confirmations];
    const batch = this.#waiting.take(
      new BatchRoom(LEDGER_BATCH_MAX),
      ({ command }) => command,
      repliedBytesOf,
    );
    const askedMs = this.#timers.monotonicMs();
    try {
      const commands = [...before, ...batch.map(({ command }) => command)];
      const result = await this.#dependencies.submit(this.#place, commands);
      if (written !== null) this.#records.confirmed(written);
      this.#answer(batch, result, { askedMs, skipped: before.length });
    } catch (error) {
      if (error instanceof CommandsRefused && error.places.size > 0) {
        return this.#sayTheRest(error, { written, confirmations, batch });
      }
      if (batch.length === 0) this.#dependencies.onError("confirmations were lost; the ledger sweeps", error);
      for (const { reject } of batch) reject(error);
    }
  }

  #answer(
    batch: readonly Waiting[],
    { accounts, kept, replies }: Submitted,
    { askedMs, skipped }: { readonly askedMs: number; readonly skipped: number },
  ): void {
    const revisions = new Map(accounts.map(({ agentId, revision }) => [agentId, revision]));
    this.#records.learn(accounts);
    batch.forEach(({ reject, resolve, sender }, place) => {
      const reply = replies[skipped + place];
      if (reply === undefined) reject(new Error("the ledger answered fewer commands than it got"));
      else if (reply.kind === "failed") reject(new Error(`the ledger could not judge: ${reply.message}`));
      else resolve({ reply, revision: revisions.get(sender) ?? 0, askedMs, kept });
    });
  }

  /** Nothing of the batch was decided: what was not refused of it goes with the next, at its front. */
  #sayTheRest(refused: CommandsRefused, { batch, confirmations, written }: Sent): void {
    const { places } = refused;
    const first = written === null ? 0 : 1;
    if (written !== null && places.has(0)) this.#records.confirmed(written);
    const kept = confirmations.filter((_command, place) => !places.has(first + place));
    this.#confirmations.unshift(...kept);
    if (kept.length < confirmations.length || (written !== null && places.has(0)))
      this.#dependencies.onError("confirmations were refused; the ledger sweeps", refused);
    const waitingFrom = first + confirmations.length;
    const isRefused = (place: number): boolean => places.has(waitingFrom + place);
    for (const [place, waiting] of [...batch.entries()].toReversed()) {
      if (!isRefused(place)) this.#waiting.putBack(waiting.sender, [waiting]);
    }
    batch.forEach(({ reject }, place) => isRefused(place) && reject(refused));
  }

  #clearTimer(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
  }
}

interface Sent {
  readonly written: CommandOf<"confirm_records"> | null;
  readonly confirmations: readonly Confirmation[];
  readonly batch: readonly Waiting[];
}

/** Commands about a project or a team have turns of their own. */
const senderOf = (command: LedgerCommand): string => ("agentId" in command ? command.agentId : "");

function urgencyOf(command: LedgerCommand): Urgency {
  switch (command.kind) {
    case "pause":
      return "stop";
    case "resume":
      return "start";
    case "follow_agent":
      return command.isArchived || command.keyId === null ? "stop" : "start";
    default:
      return "none";
  }
}

/** What an account's summary takes in an answer. */
const SUMMARY_BYTES = 400;
/** A payment that is answered whole. */
const PAYMENT_BYTES = 2_000;

function repliedBytesOf(command: LedgerCommand): number {
  switch (command.kind) {
    case "replace_team":
      return command.agents.length * SUMMARY_BYTES;
    case "approve":
    case "deny":
    case "cancel":
    case "expire":
    case "read_payment":
      return PAYMENT_BYTES;
    default:
      return SUMMARY_BYTES;
  }
}
