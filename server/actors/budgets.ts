import type { BudgetPlace, Caps, Heard } from "../../activities/ports.ts";
import { withDeliveries } from "../../src/domain/budget/deliveries-once.ts";
import type { BudgetCommand, BudgetReply } from "../../src/domain/budget/commands.ts";
import type { BudgetReport } from "../../src/domain/budget/report.ts";
import type { BudgetSubmitResult } from "../../src/messages/budget.ts";
import { BUDGET_BATCH_MAX } from "../../src/messages/budget.ts";
import { BatchRoom } from "./batch.ts";
import { CommandsRefused } from "./commands-refused.ts";
import { ActorUnavailable } from "./mailbox.ts";

/** Commands that may wait for one project's budget in this process. */
const WAITING_COMMANDS_MAX = 5_000;

/** Sends one update to a project's budget and waits for its result, to a bound. */
export type SubmitToBudget = (
  place: BudgetPlace,
  commands: readonly BudgetCommand[],
) => Promise<BudgetSubmitResult>;

interface Waiter {
  readonly resolve: (reply: BudgetReply) => void;
  readonly reject: (error: unknown) => void;
}

/** One command, and all who wait for its reply. */
interface Waiting {
  command: BudgetCommand;
  readonly waiters: Waiter[];
}

type Send = (commands: readonly BudgetCommand[]) => Promise<BudgetSubmitResult>;

/**
 * One project's budget as this process speaks to it: one update in flight, and what its agents ask meanwhile goes together
 * in the next, so that the caps over many busy agents cost few workflow tasks.
 */
class BudgetMailbox {
  readonly #submit: Send;
  readonly #retire: () => void;
  #waiting: Waiting[] = [];
  #inFlight = false;

  constructor(submit: Send, retire: () => void) {
    this.#submit = submit;
    this.#retire = retire;
  }

  /** Commands that wait for the update in flight. */
  get waiting(): number {
    return this.#waiting.length;
  }

  submit(command: BudgetCommand): Promise<BudgetReply> {
    if (this.#waiting.length >= WAITING_COMMANDS_MAX) {
      return Promise.reject(new ActorUnavailable("too many requests wait for this budget"));
    }
    return new Promise((resolve, reject) => {
      this.#entryFor(command).waiters.push({ resolve, reject });
      this.#pump();
    });
  }

  /** Of one agent's reports that wait only the newest goes: it has the asks of all of them that are still open. */
  #entryFor(command: BudgetCommand): Waiting {
    const same = command.kind === "report" ? this.#reportOf(command.report.agentId) : undefined;
    if (same === undefined) {
      const entry = { command, waiters: [] };
      this.#waiting.push(entry);
      return entry;
    }
    if (isNewer(command, same.command)) same.command = command;
    return same;
  }

  #reportOf(agentId: string): Waiting | undefined {
    return this.#waiting.find(
      ({ command }) => command.kind === "report" && command.report.agentId === agentId,
    );
  }

  #pump(): void {
    if (this.#inFlight) return;
    if (this.#waiting.length === 0) return this.#retire();
    this.#inFlight = true;
    void this.#exchange().finally(() => {
      this.#inFlight = false;
      this.#pump();
    });
  }

  async #exchange(): Promise<void> {
    const room = new BatchRoom(BUDGET_BATCH_MAX);
    const batch = room.takeSome(this.#waiting, ({ command }) => command, repliedBytesOf);
    try {
      const replies = withDeliveries(await this.#submit(batch.map(({ command }) => command)));
      if (replies.length < batch.length) throw new Error("the budget answered fewer commands than it got");
      replies.forEach((reply, index) => batch[index]?.waiters.forEach(({ resolve }) => resolve(reply)));
    } catch (error) {
      const places = error instanceof CommandsRefused ? error.places : new Set<number>();
      // Nothing of the batch was decided: what was not refused of it goes with the next, at its front.
      const isOver = (_one: Waiting, place: number) => places.size === 0 || places.has(place);
      this.#waiting.unshift(...batch.filter((one, place) => !isOver(one, place)));
      for (const { waiters } of batch.filter(isOver)) for (const { reject } of waiters) reject(error);
    }
  }
}

/** A denial names the cap that it is above, in words. */
const ANSWER_BYTES = 320;
/** A replacement's reply names the teams under a cap. */
const TEAMS_BYTES = 80_000;
const repliedBytesOf = (command: BudgetCommand): number => {
  if (command.kind === "report") return command.report.asks.length * ANSWER_BYTES;
  return command.kind === "replace_project" || command.kind === "replace_team" ? TEAMS_BYTES : 0;
};

const isNewer = (command: BudgetCommand, than: BudgetCommand): boolean =>
  command.kind === "report" && than.kind === "report" && command.report.revision > than.report.revision;

/** The way to the budgets of projects, for this process. */
export class Budgets implements Caps {
  readonly #mailboxes = new Map<string, BudgetMailbox>();
  readonly #submit: SubmitToBudget;

  constructor(submit: SubmitToBudget) {
    this.#submit = submit;
  }

  /** Commands that wait for their turn, of all projects. */
  get waiting(): number {
    let waiting = 0;
    for (const mailbox of this.#mailboxes.values()) waiting += mailbox.waiting;
    return waiting;
  }

  /** Puts one command to a project's budget. Throws `ActorUnavailable` when no answer came in time. */
  submit(place: BudgetPlace, command: BudgetCommand): Promise<BudgetReply> {
    const existing = this.#mailboxes.get(place.projectId);
    if (existing !== undefined) return existing.submit(command);
    const mailbox = new BudgetMailbox(
      (commands) => this.#submit(place, commands),
      () => this.#mailboxes.delete(place.projectId),
    );
    this.#mailboxes.set(place.projectId, mailbox);
    return mailbox.submit(command);
  }

  async hear(place: BudgetPlace, report: BudgetReport): Promise<Heard> {
    const reply = await this.submit(place, { kind: "report", report });
    if (reply.kind !== "reported") throw new Error(`a budget answered ${reply.kind} to a report`);
    return reply;
  }
}
