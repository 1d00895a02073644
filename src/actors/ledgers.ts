import { tracedBatch, tracedCommand } from "../lib/tracing.ts";
import { LRUCache } from "lru-cache";
import type { AgentProfile } from "../domain/agent/state.ts";
import type { BatchingLedgers, SubmitOptions } from "../payments/ports.ts";
import type { Fill } from "../domain/ledger/capacity.ts";
import type { AccountSummary } from "../domain/ledger/state.ts";
import type { CommandOf, LedgerCommand, LedgerReply } from "../domain/ledger/commands.ts";
import type { Payment, PaymentTexts, StoredPayment } from "../domain/ledger/payment.ts";
import type { ProjectRef } from "../messages/ledger.ts";
import type { LedgerRevisionRecords } from "../store/ledger-revisions.ts";
import type { Release } from "./batch-linger.ts";
import { failureFor, type Forwarded, type ForwardedCommands } from "./forwarding.ts";
import { ALONE, type LedgerRoute } from "./ledger-peers.ts";
import {
  type AcceptedAnswer,
  type LedgerAnswer,
  LedgerMailbox,
  type LedgerMailboxDependencies,
} from "./ledger-mailbox.ts";
import { type BlockedProject, BlockedProjects } from "./blocked-projects.ts";
import { KnownLedgerRevisions, type SubmitWithRevisions } from "./known-revisions.ts";
import { wholeReply } from "./whole-payment.ts";
import type { Zone } from "../domain/ledger/calendar.ts";
import { isZoneStale, zoneAround } from "./calendar-zone.ts";
import { realTimers } from "../lib/timers.ts";

/**
 * Maximum agents whose number of closed payments is cached; for others, the ledger requests one check of the records.
 */
const KNOWN_CLOSED_MAX = 10_000;

const KNOWN_FILLS_MAX = 10_000;

export interface LedgersDependencies extends Omit<LedgerMailboxDependencies, "route" | "submit"> {
  readonly submit: SubmitWithRevisions;
  /** If missing, this process sends all commands to the ledgers itself. */
  readonly route?: LedgerRoute;
  readonly revisions: LedgerRevisionRecords;
  /** Completes a payment with its texts (see `wholePayment`). */
  readonly wholePayment: (
    payer: Pick<AgentProfile, "organizationId" | "agentId">,
    payment: StoredPayment,
    read?: PaymentTexts,
  ) => Promise<Payment>;
}

/** Access to the ledgers of projects from this process: a mailbox for each project with pending commands. */
export class Ledgers implements BatchingLedgers {
  readonly #mailboxes = new Map<string, LedgerMailbox>();
  readonly #dependencies: LedgerMailboxDependencies;
  readonly #wholePayment: LedgersDependencies["wholePayment"];
  readonly #closed = new LRUCache<string, number>({ max: KNOWN_CLOSED_MAX });
  readonly #fills = new LRUCache<string, Fill>({ max: KNOWN_FILLS_MAX });
  readonly #blocked: BlockedProjects;
  /** Projects to whose ledgers offsets are being sent. */
  readonly #refreshing = new Set<string>();

  constructor(dependencies: LedgersDependencies) {
    const { revisions: records, route = ALONE, submit, timers = realTimers } = dependencies;
    const revisions = new KnownLedgerRevisions(records, submit, timers);
    this.#wholePayment = dependencies.wholePayment;
    const submitNoted: LedgerMailboxDependencies["submit"] = async (project, commands) => {
      try {
        const submitting = () => revisions.submit(project, commands);
        const result = this.#learn(project, await tracedBatch("ledger update", commands, submitting));
        if (result.zone !== undefined) this.#refreshZone(project, result.zone);
        this.#blocked.answered(project);
        return result;
      } catch (error) {
        this.#blocked.failed(project, error);
        throw error;
      }
    };
    this.#dependencies = {
      ...dependencies,
      submit: submitNoted,
      route: {
        peerFor: (project) => {
          const peer = route.peerFor(project);
          if (peer === null) return null;
          const forward = (commands: readonly LedgerCommand[]) =>
            tracedBatch("forwarded commands", commands, () => peer.submit(commands));
          return { submit: async (commands) => this.#learn(project, await forward(commands)) };
        },
      },
    };
    this.#blocked = new BlockedProjects(
      (project) => submitNoted(project, []),
      () => timers.monotonicMs(),
    );
  }

  /** Returns the projects that decide nothing until an operator acts, as this process last saw them. */
  blockedProjects(): readonly BlockedProject[] {
    return this.#blocked.list();
  }

  #learn<T extends Pick<Forwarded, "closed" | "fill">>({ projectId }: ProjectRef, answered: T): T {
    const { closed, fill } = answered;
    if (fill !== null) this.#fills.set(projectId, fill);
    for (const [agentId, count] of Object.entries(closed)) this.#closed.set(agentId, count);
    return answered;
  }

  /** Sends a ledger newer offsets of its calendar's zone. After a failure, they are sent after the next response. */
  #refreshZone(project: ProjectRef, zone: Omit<Zone, "segments">): void {
    const now = new Date();
    if (!isZoneStale(zone, now) || this.#refreshing.has(project.projectId)) return;
    this.#refreshing.add(project.projectId);
    void this.#of(project)
      .submit({ kind: "follow_zone", ...zoneAround(zone.timezone, now) })
      .catch(() => undefined)
      .finally(() => this.#refreshing.delete(project.projectId));
  }

  get waiting(): number {
    let waiting = 0;
    for (const mailbox of this.#mailboxes.values()) waiting += mailbox.waiting;
    return waiting;
  }

  /** Fill of each ledger that has recently answered this process, by project. */
  get fills(): Iterable<[projectId: string, fill: Fill]> {
    return this.#fills.entries();
  }

  /** Submits a command to a project's ledger. Throws `ActorUnavailable` without a response in time. */
  async submit(
    project: ProjectRef,
    command: LedgerCommand,
    options: SubmitOptions = {},
  ): Promise<LedgerReply<Payment>> {
    return (await this.submitRecorded(project, command, options)).reply;
  }

  /** Submits a command and resolves once the records show the ledger's revision. */
  async submitRecorded(
    project: ProjectRef,
    command: LedgerCommand,
    options: SubmitOptions = {},
  ): Promise<LedgerAnswer<Payment>> {
    const answered = await this.submitUnrecorded(project, command, options);
    await answered.revisionRecorded;
    return answered;
  }

  /** Submits a command for a caller that does other work first and awaits `revisionRecorded` before it responds. */
  async submitUnrecorded(
    project: ProjectRef,
    command: LedgerCommand,
    { isAwaited, texts }: SubmitOptions = {},
  ): Promise<LedgerAnswer<Payment>> {
    const { reply, ...answered } = await tracedCommand("ledger command", command, () =>
      this.#of(project).submit(command, isAwaited),
    );
    const agentId = "agentId" in command ? command.agentId : "";
    const payer = { organizationId: project.organizationId, agentId };
    return {
      ...answered,
      reply: await wholeReply(reply, (payment) => this.#wholePayment(payer, payment, texts)),
    };
  }

  /** Submits commands that another server has forwarded, and resolves once their revision is recorded. */
  async accept({ commands, project }: ForwardedCommands): Promise<Forwarded> {
    const mailbox = this.#of(project);
    const answered = await Promise.allSettled(
      commands.map(async (command) => {
        const answer = await mailbox.accept(command);
        await answer.revisionRecorded;
        return { command, answer };
      }),
    );
    const accounts = new Map<string, AccountSummary>();
    const closed: Record<string, number> = {};
    let fill: Fill | null = null;
    for (const each of answered) {
      if (each.status === "rejected") continue;
      const { answer, command } = each.value;
      ({ fill } = answer.update);
      for (const account of changedBy(command, answer)) {
        const { agentId, revision } = account;
        if ((accounts.get(agentId)?.revision ?? 0) < revision) accounts.set(agentId, account);
        const count = answer.update.closed[agentId];
        if (count !== undefined) closed[agentId] = Math.max(closed[agentId] ?? 0, count);
      }
    }
    const replies = answered.map((each) =>
      each.status === "fulfilled" ? each.value.answer.reply : failureFor(each.reason),
    );
    return { replies, accounts: [...accounts.values()], closed, fill };
  }

  /** Whether the project's decisions are too slow for one more payment (see `LedgerMailbox.isOverloaded`). */
  isOverloaded({ projectId }: ProjectRef, agentId: string): boolean {
    return this.#mailboxes.get(projectId)?.isOverloaded(agentId) ?? false;
  }

  /** Announces a request that is about to submit (see `LedgerMailbox.announceCommand`). */
  announceCommand(project: ProjectRef): Release {
    return this.#of(project).announceCommand();
  }

  /** Announces a decided request that is being answered (see `LedgerMailbox.answering`). */
  answering(project: ProjectRef): Release {
    return this.#of(project).answering();
  }

  confirmLater(project: ProjectRef, confirmation: CommandOf<"confirm">, published: Promise<void>): void {
    this.#of(project).confirmLater(confirmation, published);
  }

  /** Returns how many of the agent's payments were closed as of the last reply; 0 unless keys were evicted. */
  closedOf(agentId: string): number {
    return this.#closed.get(agentId) ?? 0;
  }

  /** Brings ledger and record up to everything that this process has executed for the agent. */
  async flush({ projectId }: Pick<ProjectRef, "projectId">, agentId: string): Promise<void> {
    await this.#mailboxes.get(projectId)?.flush(agentId);
  }

  async flushProject(projectId: string): Promise<void> {
    await this.#mailboxes.get(projectId)?.flush(null);
  }

  async flushAll(): Promise<void> {
    await Promise.all([...this.#mailboxes.values()].map((mailbox) => mailbox.flush(null)));
  }

  /** Whether this process may know more about an agent than its record shows. */
  isBehind({ projectId }: Pick<ProjectRef, "projectId">, agentId: string): boolean {
    return this.#mailboxes.get(projectId)?.isBehind(agentId) ?? false;
  }

  #of(project: ProjectRef): LedgerMailbox {
    const { organizationId, projectId } = project;
    const existing = this.#mailboxes.get(projectId);
    if (existing !== undefined) return existing;
    const mailbox = new LedgerMailbox({ organizationId, projectId }, this.#dependencies, () => {
      if (this.#mailboxes.get(projectId) === mailbox) this.#mailboxes.delete(projectId);
    });
    this.#mailboxes.set(projectId, mailbox);
    return mailbox;
  }
}

/** Returns the accounts of an update whose records the command may have changed. */
function changedBy(
  command: LedgerCommand,
  { update: { accounts } }: AcceptedAnswer,
): readonly AccountSummary[] {
  if ("agentId" in command) return accounts.filter(({ agentId }) => agentId === command.agentId);
  return command.kind.startsWith("confirm") ? [] : accounts;
}
