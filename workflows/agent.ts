import { WALLET_RAIL } from "../src/domain/ledger/payment.ts";
import {
  allHandlersFinished,
  condition,
  continueAsNew,
  defineQuery,
  defineUpdate,
  log,
  patched,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from "@temporalio/workflow";
import type { Activities } from "../activities/types.ts";
import type { AgentCommand } from "../src/domain/agent/commands.ts";
import { handle } from "../src/domain/agent/handle.ts";
import {
  type AgentState,
  followedOf,
  initialAgentState,
  isFinished,
  isUnfollowed,
  lifecycleOf,
  summarize,
} from "../src/domain/agent/state.ts";
import type { AgentInput, AgentSettings, AgentStateView, SubmitResult } from "../src/messages/agent.ts";
import { STATE_QUERY, SUBMIT_UPDATE } from "../src/messages/agent.ts";
import { agentRefusal } from "../src/messages/guards/batch-refusals.ts";
import { agentStateKey } from "../src/messages/search-attributes.ts";
import { sideTaskQueue } from "../src/messages/task-queues.ts";
import { describeAgent } from "./agent-details.ts";
import { refuse } from "./refusing.ts";

export const submit = defineUpdate<SubmitResult, [readonly AgentCommand[]]>(SUBMIT_UPDATE);
export const stateQuery = defineQuery<AgentStateView>(STATE_QUERY);

/** Marker that keeps the first task from ending without a command (see `FIRST_TASK` in ledger.ts). */
const FIRST_TASK = "first-task";

/** Kinds of work that an actor's sweep does. */
const SWEEPS = ["window", "ledger", "record", "wallet"] as const;
type Sweep = (typeof SWEEPS)[number];

/** Maximum doublings of the backoff after repeated failures: the longest pause is 2^8 times the first. */
const BACKOFF_DOUBLINGS_MAX = 8;

const ACTIVITY_OPTIONS = {
  startToCloseTimeout: "20 seconds",
  scheduleToCloseTimeout: "2 minutes",
  retry: { initialInterval: "1 second", backoffCoefficient: 2, maximumInterval: "1 minute" },
} as const;

const { closeDeliveryWindow, followInLedger, writeAgent } = proxyActivities<Activities>(ACTIVITY_OPTIONS);

/**
 * An agent's actor. It decides the agent's name, keys and archive in synchronous updates. Its sweep updates records and
 * the project's ledger if they have not followed in time. It ends once an archived agent has no work left.
 */
export async function agent(input: AgentInput): Promise<void> {
  patched(FIRST_TASK);
  const actor = new AgentActor(input);
  setHandler(submit, (commands) => actor.submit(commands), {
    validator: (commands) => refuse(agentRefusal(commands)),
  });
  setHandler(stateQuery, () => actor.state);
  actor.describe();
  await actor.run();
  if (actor.isOver) return;
  // The task that ends this run has already answered its updates, so none is lost between runs.
  await continueAsNew<typeof agent>({
    start: { kind: "resume", state: actor.state, isDiscarded: actor.isDiscarded },
    settings: input.settings,
  });
}

class AgentActor {
  readonly state: AgentState;
  readonly #settings: AgentSettings;
  readonly #running = new Set<Sweep>();
  /** Time of each sweep's last attempt in this run, and its number of failures since the last success. */
  readonly #attemptedAt = new Map<Sweep, number>();
  readonly #failures = new Map<Sweep, number>();
  #isDiscarded: boolean;

  constructor({ settings, start }: AgentInput) {
    this.#settings = settings;
    this.#isDiscarded = start.kind === "resume" && start.isDiscarded;
    this.state =
      start.kind === "resume" ? start.state : initialAgentState(start.profile, start.firstKey, Date.now());
  }

  /**
   * Whether the create, and with it the agent, was discarded: no response named the agent, and its record can no longer
   * be written.
   */
  get isDiscarded(): boolean {
    return this.#isDiscarded;
  }

  get isOver(): boolean {
    if (this.#running.size > 0) return false;
    return this.#isDiscarded ? !isUnfollowed(this.state) : isFinished(this.state);
  }

  /** Decides a batch. Synchronous, so nothing interleaves, and the reply is sent with the history of the decision. */
  submit(commands: readonly AgentCommand[]): SubmitResult {
    const before = lifecycleOf(this.state);
    const replies = commands.map((command) => handle(this.state, command, Date.now()));
    if (lifecycleOf(this.state) !== before) this.#showState();
    this.describe();
    const { confirmedRevision, profile, revision } = this.state;
    return {
      replies,
      unrecorded: confirmedRevision < revision ? summarize(this.state) : null,
      unfollowed: isUnfollowed(this.state) ? { agent: profile, followed: followedOf(this.state) } : null,
    };
  }

  /** Updates the search attribute. This also adds a command, since only an update's own task may end without one. */
  #showState(): void {
    upsertSearchAttributes([{ key: agentStateKey, value: lifecycleOf(this.state) }]);
  }

  describe(): void {
    setCurrentDetails(describeAgent(this.state));
  }

  /** Does the work that is due until this run ends. */
  async run(): Promise<void> {
    const isOver = () => this.isOver || this.#rollOverDue();
    while (!isOver()) {
      const dueAt = this.#nextDueAt();
      // Also if it is due later: cancelling a timer costs nothing, while one that fires costs a task.
      const isChanged = () => isOver() || this.#nextDueAt() !== dueAt;
      let isTimeUp = false;
      if (dueAt === Infinity) await condition(isChanged);
      else isTimeUp = !(await condition(isChanged, Math.max(1, dueAt - Date.now())));
      await condition(allHandlersFinished);
      if (isOver()) return;
      const now = Date.now();
      for (const sweep of SWEEPS) if (this.#dueAt(sweep) <= now) this.#start(sweep);
      if (isTimeUp) this.#showState();
    }
  }

  #rollOverDue(): boolean {
    const info = workflowInfo();
    return info.continueAsNewSuggested || info.historyLength >= this.#settings.rollOverAfterEvents;
  }

  #nextDueAt(): number {
    return Math.min(...SWEEPS.map((sweep) => this.#dueAt(sweep)));
  }

  /** Returns when a sweep is due if no confirmation arrives first; Infinity if it is done or running. */
  #dueAt(sweep: Sweep): number {
    if (this.#running.has(sweep)) return Infinity;
    const since = this.#openSince(sweep);
    if (since === Infinity || sweep === "window") return since;
    const pauseMs = this.#settings.sweepAfterSeconds * 1_000;
    const backoff = 2 ** Math.min(this.#failures.get(sweep) ?? 0, BACKOFF_DOUBLINGS_MAX);
    return Math.max(since, this.#attemptedAt.get(sweep) ?? 0) + pauseMs * backoff;
  }

  #openSince(sweep: Sweep): number {
    const { access, archivedAt, confirmedRevision, revision, updatedAt, walletDetached } = this.state;
    switch (sweep) {
      case "window":
        return access.bundled.erased ? Infinity : access.bundled.deliverableUntil;
      case "ledger":
        return isUnfollowed(this.state) ? updatedAt : Infinity;
      case "record":
        return confirmedRevision < revision && !this.#isDiscarded ? updatedAt : Infinity;
      case "wallet":
        return archivedAt === null || walletDetached || this.#isDiscarded ? Infinity : archivedAt;
    }
  }

  #start(sweep: Sweep): void {
    this.#running.add(sweep);
    this.#attemptedAt.set(sweep, Date.now());
    void this.#execute(sweep)
      .then(() => this.#failures.delete(sweep))
      .catch((error: unknown) => {
        this.#failures.set(sweep, (this.#failures.get(sweep) ?? 0) + 1);
        log.warn("a sweep failed and will be repeated", { sweep, error });
      })
      .finally(() => {
        this.#running.delete(sweep);
        this.#showState();
        this.describe();
      });
  }

  #execute(sweep: Sweep): Promise<void> {
    switch (sweep) {
      case "window":
        return this.#closeWindow();
      case "ledger":
        return this.#followInLedger();
      case "record":
        return this.#writeRecord();
      case "wallet":
        return this.#detachWallet();
    }
  }

  async #closeWindow(): Promise<void> {
    const { agentId } = this.state.profile;
    const { bundled } = this.state.access;
    const end = await closeDeliveryWindow({ agentId });
    bundled.erased = true;
    if (end === "committed") return;
    this.#isDiscarded = true;
    // Closes the agent's account. A key that was never delivered cannot pay.
    handle(this.state, { kind: "archive", by: { type: "user" } }, Date.now());
  }

  async #followInLedger(): Promise<void> {
    const { profile } = this.state;
    const followed = followedOf(this.state);
    await followInLedger({ agent: profile, followed });
    const { revision } = followed;
    handle(this.state, { kind: "confirm_followed", revision }, Date.now());
  }

  async #writeRecord(): Promise<void> {
    const summary = summarize(this.state);
    await writeAgent({ summary });
    handle(this.state, { kind: "confirm_record", revision: summary.revision }, Date.now());
  }

  async #detachWallet(): Promise<void> {
    const taskQueue = sideTaskQueue(workflowInfo().taskQueue, WALLET_RAIL);
    const { detachWallet } = proxyActivities<Activities>({ ...ACTIVITY_OPTIONS, taskQueue });
    await detachWallet({ profile: this.state.profile });
    handle(this.state, { kind: "confirm_detached" }, Date.now());
  }
}
