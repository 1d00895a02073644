import { LRUCache } from "lru-cache";
import type { LedgerGateway } from "../payments/ports.ts";
import type { CommandOf, LedgerCommand, LedgerReply } from "../domain/ledger/commands.ts";
import type { ProjectRef } from "../messages/ledger.ts";
import type { LedgerRevisionRecords } from "../store/ledger-revisions.ts";
import type { Release } from "./gathering.ts";
import { type Answered, LedgerMailbox, type LedgerMailboxDependencies } from "./ledger-mailbox.ts";
import { LedgerRevisions, type SubmitKnowing } from "./ledger-revisions.ts";
import { realTimers } from "../lib/timers.ts";

/** Agents whose forgotten idempotency keys are known of; who is not known of costs one more question. */
const KNOWN_CLOSED_MAX = 10_000;

export interface LedgersDependencies extends Omit<LedgerMailboxDependencies, "submit"> {
  readonly submit: SubmitKnowing;
  readonly revisions: LedgerRevisionRecords;
}

/** The way to the ledgers of projects, for this process: a mailbox for each project that has something under way. */
export class Ledgers implements LedgerGateway {
  readonly #mailboxes = new Map<string, LedgerMailbox>();
  readonly #dependencies: LedgerMailboxDependencies;
  readonly #closed = new LRUCache<string, number>({ max: KNOWN_CLOSED_MAX });

  constructor(dependencies: LedgersDependencies) {
    const { revisions: records, submit, timers = realTimers } = dependencies;
    const revisions = new LedgerRevisions(records, submit, timers);
    this.#dependencies = {
      ...dependencies,
      submit: async (place, commands) => {
        const result = await revisions.submit(place, commands);
        for (const [agentId, closed] of Object.entries(result.closed)) this.#closed.set(agentId, closed);
        return result;
      },
    };
  }

  /** Commands that wait for their turn, of all projects. */
  get waiting(): number {
    let waiting = 0;
    for (const mailbox of this.#mailboxes.values()) waiting += mailbox.waiting;
    return waiting;
  }

  /** Puts one command to a project's ledger. Throws `ActorUnavailable` when no answer came in time. */
  async submit(place: ProjectRef, command: LedgerCommand): Promise<LedgerReply> {
    return (await this.answered(place, command)).reply;
  }

  /** The same, for who waits until the agent's record has come that far. */
  async answered(place: ProjectRef, command: LedgerCommand): Promise<Answered> {
    const answered = await this.decided(place, command);
    await answered.kept;
    return answered;
  }

  /** The same, for who does something before it tells anybody, and waits for `kept` then. */
  decided(place: ProjectRef, command: LedgerCommand): Promise<Answered> {
    return this.#of(place).submit(command);
  }

  /** A request is about to ask (see `LedgerMailbox.expect`). */
  expect(place: ProjectRef): Release {
    return this.#of(place).expect();
  }

  /** A request was decided, and is being answered (see `LedgerMailbox.answering`). */
  answering(place: ProjectRef): Release {
    return this.#of(place).answering();
  }

  /** Tells the ledger what was carried out once that is published of, with its next update after that or shortly after. */
  confirmLater(place: ProjectRef, confirmation: CommandOf<"confirm">, published: Promise<void>): void {
    this.#of(place).confirmLater(confirmation, published);
  }

  /** How many of the agent's payments were closed when its ledger last said so, if it has forgotten idempotency keys; else 0. */
  closedOf(agentId: string): number {
    return this.#closed.get(agentId) ?? 0;
  }

  /** After this, ledger and record show everything that this process has carried out for the agent. */
  async flush({ projectId }: Pick<ProjectRef, "projectId">, agentId: string): Promise<void> {
    await this.#mailboxes.get(projectId)?.flush(agentId);
  }

  /** The same for all agents of a project. */
  async flushProject(projectId: string): Promise<void> {
    await this.#mailboxes.get(projectId)?.flush(null);
  }

  async flushAll(): Promise<void> {
    await Promise.all([...this.#mailboxes.values()].map((mailbox) => mailbox.flush(null)));
  }

  /** Whether this process may know more of an agent than its record shows. */
  isBehind({ projectId }: Pick<ProjectRef, "projectId">, agentId: string): boolean {
    return this.#mailboxes.get(projectId)?.isBehind(agentId) ?? false;
  }

  #of(place: ProjectRef): LedgerMailbox {
    const { organizationId, projectId } = place;
    const existing = this.#mailboxes.get(projectId);
    if (existing !== undefined) return existing;
    const mailbox = new LedgerMailbox({ organizationId, projectId }, this.#dependencies, () => {
      if (this.#mailboxes.get(projectId) === mailbox) this.#mailboxes.delete(projectId);
    });
    this.#mailboxes.set(projectId, mailbox);
    return mailbox;
  }
}
