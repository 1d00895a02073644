import { tracedBatch, tracedCommand } from "../lib/tracing.ts";
import { LRUCache } from "lru-cache";
import type { AgentProfile } from "../domain/agent/state.ts";
import type { LedgerGateway } from "../payments/ports.ts";
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
import { LedgerRevisions, type SubmitWithRevisions } from "./known-revisions.ts";
import { wholeReply } from "./whole-payment.ts";
import type { Zone } from "../domain/ledger/calendar.ts";
import { isZoneStale, zoneAround } from "./calendar-zone.ts";
import { realTimers } from "../lib/timers.ts";

/** Agents whose number of closed payments is cached; for others, the ledger requests a check of the records once. */
const KNOWN_CLOSED_MAX = 10_000;

/** Projects whose fill is known. */
const KNOWN_FILLS_MAX = 10_000;

export interface LedgersDependencies extends Omit<LedgerMailboxDependencies, "route" | "submit"> {
  readonly submit: SubmitWithRevisions;
  /** Left out: this process sends all commands to the ledgers itself. */
  readonly route?: LedgerRoute;
  readonly revisions: LedgerRevisionRecords;
  /** A payment with its texts (see `wholePayment`). */
  readonly wholePayment: (
    payer: Pick<AgentProfile, "organizationId" | "agentId">,
    payment: StoredPayment,
    read?: PaymentTexts,
  ) => Promise<Payment>;
}

interface SubmitOptions {
  readonly isAwaited?: (() => boolean) | undefined;
  /** Texts of the command's payment, where the caller has just read them: they are not read once more. */
  readonly texts?: PaymentTexts;
}

/** The way to the ledgers of projects, for this process: a mailbox for each project that has commands pending. */
export class Ledgers implements LedgerGateway {
  readonly #mailboxes = new Map<string, LedgerMailbox>();
  readonly #dependencies: LedgerMailboxDependencies;
  readonly #wholePayment: LedgersDependencies["wholePayment"];
  readonly #closed = new LRUCache<string, number>({ max: KNOWN_CLOSED_MAX });
  readonly #fills = new LRUCache<string, Fill>({ max: KNOWN_FILLS_MAX });
  readonly #blocked: BlockedProjects;
  /** Projects whose ledgers are being sent offsets. */
  readonly #refreshing = new Set<string>();

  constructor(dependencies: LedgersDependencies) {
    const { revisions: records, route = ALONE, submit, timers = realTimers } = dependencies;
    const revisions = new LedgerRevisions(records, submit, timers);
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

  /** Projects that decide nothing until an operator acts, as this process has last seen them. */
  blockedProjects(): readonly BlockedProject[] {
    return this.#blocked.list();
  }

  #learn<T extends Pick<Forwarded, "closed" | "fill">>({ projectId }: ProjectRef, answered: T): T {
    const { closed, fill } = answered;
    if (fill !== null) this.#fills.set(projectId, fill);
    for (const [agentId, count] of Object.entries(closed)) this.#closed.set(agentId, count);
    return answered;
  }

  /** Sends a ledger the offsets of its calendar's zone where this process has newer ones. What fails is sent after the next answer. */
  #refreshZone(project: ProjectRef, zone: Omit<Zone, "segments">): void {
    const now = new Date();
    if (!isZoneStale(zone, now) || this.#refreshing.has(project.projectId)) return;
    this.#refreshing.add(project.projectId);
    void this.#of(project)
      .submit({ kind: "follow_zone", ...zoneAround(zone.timezone, now) })
      .catch(() => undefined)
      .finally(() => this.#refreshing.delete(project.projectId));
  }

  /** Commands that wait for their turn, of all projects. */
  get waiting(): number {
    let waiting = 0;
    for (const mailbox of this.#mailboxes.values()) waiting += mailbox.waiting;
    return waiting;
  }

  /** Fill of each ledger that has answered this process lately, by project. */
  get fills(): Iterable<[projectId: string, fill: Fill]> {
    return this.#fills.entries();
  }

  /** Puts one command to a project's ledger. Throws `ActorUnavailable` when no answer came in time. */
  async submit(project: ProjectRef, command: LedgerCommand): Promise<LedgerReply<Payment>> {
    return (await this.submitRecorded(project, command)).reply;
  }

  /** Submits a command for a caller that waits until the agent's record has come that far. */
  async submitRecorded(project: ProjectRef, command: LedgerCommand): Promise<LedgerAnswer<Payment>> {
    const answered = await this.submitUnrecorded(project, command);
    await answered.revisionRecorded;
    return answered;
  }

  /** Submits a command for a caller that does other work first, and awaits `revisionRecorded` before it responds. */
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

  /** Puts commands that another server has forwarded to a project's ledger, and answers once its revision is recorded. */
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

  /** Whether the project's decisions take too long for one more payment (see `LedgerMailbox.isOverloaded`). */
  isOverloaded({ projectId }: ProjectRef, agentId: string): boolean {
    return this.#mailboxes.get(projectId)?.isOverloaded(agentId) ?? false;
  }

  /** A request is about to ask (see `LedgerMailbox.expect`). */
  expect(project: ProjectRef): Release {
    return this.#of(project).expect();
  }

  /** A request was decided, and is being answered (see `LedgerMailbox.answering`). */
  answering(project: ProjectRef): Release {
    return this.#of(project).answering();
  }

  /** Confirms an executed payment to the ledger once it is published, with its next update after that or shortly after. */
  confirmLater(project: ProjectRef, confirmation: CommandOf<"confirm">, published: Promise<void>): void {
    this.#of(project).confirmLater(confirmation, published);
  }

  /**
   * Returns how many of the agent's payments were closed as of the ledger's last reply, if it has evicted idempotency
   * keys; else 0.
   */
  closedOf(agentId: string): number {
    return this.#closed.get(agentId) ?? 0;
  }

  /** Brings ledger and record up to everything that this process has executed for the agent. */
  async flush({ projectId }: Pick<ProjectRef, "projectId">, agentId: string): Promise<void> {
    await this.#mailboxes.get(projectId)?.flush(agentId);
  }

  /** Flushes all agents of a project. */
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

/** The accounts of an update that a command of it may have changed so that their records are to follow. */
function changedBy(
  command: LedgerCommand,
  { update: { accounts } }: AcceptedAnswer,
): readonly AccountSummary[] {
  if ("agentId" in command) return accounts.filter(({ agentId }) => agentId === command.agentId);
  return command.kind.startsWith("confirm") ? [] : accounts;
}
