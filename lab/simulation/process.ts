import { actorTeller } from "../../src/actors/actor-teller.ts";
import {
  createPaymentEffects,
  type ExecutionHints,
  type PaymentEffects,
} from "../../src/payments/effects.ts";
import { Superseded } from "../../src/payments/rail-sender.ts";
import { layFences } from "../../src/rails/fences.ts";
import { NoSuchActor } from "../../src/actors/no-such-actor.ts";
import { createPaymentActivities, type PaymentActivities } from "../../activities/payment-activities.ts";
import { AgentActors } from "../../src/actors/agent-actors.ts";
import { Ledgers } from "../../src/actors/ledgers.ts";
import { wholePayment } from "../../src/actors/whole-payment.ts";
import type { AgentCommand, AgentReply } from "../../src/domain/agent/commands.ts";
import type { Payment, PaymentRequest } from "../../src/domain/ledger/payment.ts";
import type { AgentProfile } from "../../src/domain/agent/state.ts";
import type { CommandOf, LedgerReply } from "../../src/domain/ledger/commands.ts";
import type { PaymentRules } from "../../src/domain/rules/checks.ts";
import { confirmationOf } from "../../src/messages/ledger.ts";
import type { ActorActivities, SimulatedAgent } from "./actors.ts";
import type { RecordedRules } from "./counterparts.ts";
import { Host, Unavailable } from "./network.ts";
import { grantRaise, type RaiseGrant } from "./raise-grants.ts";
import { accountView } from "../../workflows/ledger-views.ts";
import { portsOf, type ProcessPorts, type Surroundings } from "./process-ports.ts";

/** Deadline of a payment. */
const PAY_MS = 3_400;
/** Above the interval at which agents' records are written, as in the service. */
const CONFIRM_AFTER_MS = 700;
const DECISION_ATTEMPTS_MAX = 6;

/** Failed work comes again. */
const onError = (): void => undefined;

/** The payment as a client is answered it; null: nothing was decided. */
export type PaidAnswer = Payment | null;

/**
 * One process of the service, server and worker at once: the service's own mailboxes, effects and activities, over a network that
 * fails. What it has in hand dies with it.
 */
export class ServiceProcess {
  readonly host: Host;
  readonly activities: PaymentActivities & ActorActivities;
  readonly ledgers: Ledgers;
  readonly agents: AgentActors;
  readonly #effects: PaymentEffects;
  readonly #surroundings: Surroundings;
  readonly #ports: ProcessPorts;

  constructor(name: string, surroundings: Surroundings) {
    this.host = new Host(name);
    this.#surroundings = surroundings;
    const { timeline } = surroundings;
    this.#ports = portsOf(this.host, surroundings);
    const { projections, rails, timers, workflows } = this.#ports;
    // Nothing is forged here.
    const proofs = { isAccepted: () => true, isResolvedAsNamed: () => true, onForged: () => undefined };
    const agents = {
      submit: (agentId: string, command: AgentCommand) => this.agents.submit(agentId, command),
    };
    this.ledgers = new Ledgers({
      submit: (_place, commands, known) => this.#call(() => surroundings.ledger().submit(commands, known)),
      revisions: {
        read: () => this.#call(() => surroundings.records.ledgerRevision),
        write: (_projectId, revision) => this.#call(() => surroundings.records.writeLedgerRevision(revision)),
      },
      recordAccount: (summary) => projections.writeAccount(summary),
      wholePayment: (payer, payment) => wholePayment({ projections, proofs, workflows }, payer, payment),
      flushPublished: () => undefined,
      confirmAfterMs: CONFIRM_AFTER_MS,
      onError,
      timers,
    });
    this.agents = new AgentActors({
      submit: (agentId, commands) => this.#call(() => this.#actorOf(agentId).submit(commands)),
      ledgers: this.ledgers,
      writeAgent: (summary) => projections.writeAgent(summary),
      onError,
      timers,
    });
    const dependencies = {
      rails,
      projections,
      workflows,
      // Subscribers to payments have no part in what becomes of them.
      publisher: { publish: () => Promise.resolve(), flush: () => undefined },
      proofs,
      clock: () => new Date(timeline.now),
      monotonicMs: () => timeline.now,
      ledgers: this.ledgers,
      onSweepFailed: onError,
    };
    this.#effects = createPaymentEffects(dependencies);
    const tellActor = actorTeller(agents);
    this.activities = {
      ...createPaymentActivities(dependencies),
      writeAccounts: async ({ accounts }) => {
        await Promise.all(accounts.map((summary) => projections.writeAccount(summary)));
        return accounts.map(({ agentId }) => agentId);
      },
      tellActors: async ({ accounts }) => {
        await Promise.all(accounts.map(tellActor));
        return accounts.map(({ agentId }) => agentId);
      },
      writeCaps: ({ caps, projectId }) => projections.writeCaps(projectId, caps),
      writeAgent: ({ summary }) => projections.writeAgent(summary),
      followInLedger: async ({ agent, followed }) => {
        const { agentId } = agent;
        await this.ledgers.submit(agent, { kind: "follow_agent", agentId, ...followed });
      },
      mirrorLimits: ({ limits }) => this.#call(() => limits.map(({ agentId }) => agentId)),
      detachWallet: () => this.#call(() => undefined),
      closeDeliveryWindow: () => this.#call(() => "committed" as const),
    };
  }

  /** As src/payments/payments.ts makes a payment: decides, acts, and leaves to the ledger what can't be had in time. */
  async pay(profile: AgentProfile, keyId: string, request: PaymentRequest): Promise<PaidAnswer> {
    const { agentId } = profile;
    const { approvalWindowSeconds, domain } = this.#surroundings;
    let recordsCheckedThrough = this.ledgers.closedOf(agentId);
    for (let attempt = 0; attempt < DECISION_ATTEMPTS_MAX; attempt += 1) {
      const areRecordsChecked = recordsCheckedThrough > 0;
      const { earlier, similarAt, rules } = await this.#call(() => this.#checkRecords(profile, request));
      if (areRecordsChecked && earlier !== undefined) return replayOf(request, earlier);
      const requested = { ...request, rulesVersions: rules.versions };
      const withLike = areRecordsChecked && similarAt !== null ? { similarAt } : {};
      const ruled: PaymentRules = { checks: rules.checks, ...withLike };
      const { requestedMs, reply } = await this.ledgers.submitRecorded(profile, {
        kind: "pay",
        agentId,
        keyId,
        request: requested,
        approvalWindowSeconds,
        recordsCheckedThrough,
        ...(rules.checks.length > 0 ? { rules: ruled } : {}),
        ...rules.forbidden,
      });
      switch (reply.kind) {
        case "records_check_required":
          recordsCheckedThrough = reply.closed;
          break;
        case "stale_rules":
          break;
        case "decided":
          return this.#execute(
            profile,
            domain.decidedPayment(requested, reply.decision),
            reply.permit === null ? {} : { decided: { permit: reply.permit, requestedMs } },
          );
        case "replayed":
          if (!reply.samePayload) return null;
          await this.#execute(profile, reply.payment);
          return this.#recorded(reply.transactionId);
        case "recorded":
          return earlier === undefined ? null : replayOf(request, earlier);
        default:
          return null;
      }
    }
    throw new Unavailable("the records do not keep up with the ledger");
  }

  #checkRecords(profile: AgentProfile, { fingerprint, keyHash, recipient }: PaymentRequest) {
    const { records } = this.#surroundings;
    const { agentId } = profile;
    const rules = this.#rulesOn(profile, recipient);
    return {
      earlier: records.under(agentId, keyHash),
      similarAt: rules.checks.length > 0 ? records.newestSimilarAt(agentId, fingerprint) : null,
      rules,
    };
  }

  /** As src/payments/rules: the checks of project and team, and the first level that forbids the recipient. */
  #rulesOn({ agentId, teamId }: AgentProfile, recipient: string) {
    const { rules } = this.#surroundings.records;
    const [project, team, agent] = [rules.get(null), rules.get(teamId), rules.get(agentId)];
    const levels = { agent, team, project };
    const level = (["agent", "team", "project"] as const).find((each) => levels[each]?.never.has(recipient));
    return {
      checks: [...(project?.checks ?? []), ...(team?.checks ?? [])],
      versions: {
        project: project?.version ?? null,
        team: team?.version ?? null,
        agent: agent?.version ?? null,
      },
      forbidden: level === undefined ? {} : { forbidden: { code: "RECIPIENT_NOT_ALLOWED", level } as const },
    };
  }

  /** Puts a person's or the agent's decision on a payment on hold to the ledger, and executes it. */
  async resolve(
    profile: AgentProfile,
    command: CommandOf<"approve" | "deny" | "cancel"> & { readonly requestId: string },
  ): Promise<void> {
    let answer = await this.#submitResolution(profile, command, 0);
    for (let again = 1; answer.reply.kind === "stale_rules" && again < DECISION_ATTEMPTS_MAX; again += 1)
      answer = await this.#submitResolution(profile, command, again);
    const { reply, requestedMs } = answer;
    if (reply.kind !== "payment") return;
    const { changed, payment, permit } = reply;
    const hints = permit === undefined ? {} : { decided: { permit, requestedMs } };
    if (changed || payment.status === "expired") await this.#execute(profile, payment, hints);
  }

  /** As server/handlers/approvals.ts: an approval goes with what restricts its payment now. */
  async #submitResolution(
    profile: AgentProfile,
    command: CommandOf<"approve" | "deny" | "cancel"> & { readonly requestId: string },
    again: number,
  ) {
    const { records } = this.#surroundings;
    const judged = await this.#call(() => {
      const recorded = records.payments.get(command.transactionId);
      if (command.kind !== "approve" || recorded === undefined) return {};
      const { forbidden, versions } = this.#rulesOn(profile, recorded.request.recipient);
      return { ...forbidden, rulesVersions: versions };
    });
    const requestId = again === 0 ? command.requestId : `${command.requestId}-${String(again)}`;
    return this.ledgers.submitRecorded(profile, { ...command, ...judged, requestId });
  }

  /** As server/handlers/agents.ts: answered once the record shows it, and the rails are fenced. */
  async setAccountStatus(profile: AgentProfile, kind: "pause" | "resume", requestId: string): Promise<void> {
    const { agentId } = profile;
    const { observer, records } = this.#surroundings;
    const { reply, revision } = await this.ledgers.submitRecorded(profile, { kind, agentId, requestId });
    if (reply.kind !== "account_status") return;
    await this.ledgers.flush(profile, agentId);
    const recorded = await this.#call(() => records.agents.get(agentId)?.account.revision ?? 0);
    if (recorded < revision) throw new Unavailable("the record does not follow its ledger");
    await layFences(this.#ports.rails, reply.fence === null ? [] : [reply.fence]);
    if (kind === "pause") observer.pauseAnswered(agentId);
  }

  /** As server/handlers/stops.ts: the records follow later. */
  async stop(command: CommandOf<"stop_accounts"> & { readonly requestId: string }): Promise<void> {
    const { observer, place } = this.#surroundings;
    const reply = await this.ledgers.submit(place, command);
    if (reply.kind !== "stopped") return;
    await layFences(this.#ports.rails, reply.fences);
    observer.stopAnswered(command.requestId);
  }

  async changeKey(agentId: string, command: AgentCommand): Promise<AgentReply> {
    const reply = await this.agents.submit(agentId, command);
    const isRevoked = command.kind === "revoke_key" && reply.kind === "key";
    if (isRevoked) this.#surroundings.observer.keyAnswered(agentId, reply.keyId);
    return reply;
  }

  /** As server/handlers/archive-agent.ts. */
  async archive(profile: AgentProfile): Promise<void> {
    const { agentId } = profile;
    const { observer, records } = this.#surroundings;
    try {
      const reply = await this.agents.submit(agentId, { kind: "archive", by: { type: "user" } });
      if (reply.kind !== "archive") return;
    } catch (error) {
      if (!(error instanceof NoSuchActor)) throw error;
    }
    observer.archiveAnswered(agentId, await this.#call(() => records.agents.get(agentId)?.life));
    const pending = await this.#call(() =>
      [...records.pending].flatMap(([transactionId, of]) => (of === agentId ? [transactionId] : [])),
    );
    for (const transactionId of pending) {
      const read = await this.ledgers.submit(profile, { kind: "read_payment", agentId, transactionId });
      if (read.kind === "payment" && read.payment.phase !== "held")
        await this.#execute(profile, read.payment);
    }
  }

  /** As src/containers/container-budgets.ts replaces a budget: in force once it is decided, answered once it is recorded. */
  async replace(
    command: CommandOf<"replace_project" | "replace_team"> & { readonly requestId: string },
  ): Promise<void> {
    const { observer, place, records } = this.#surroundings;
    const reply = await this.ledgers.submit(place, command);
    if (reply.kind !== "replaced") return;
    await this.#ports.projections.writeCaps(place.projectId, reply.caps);
    const caps = reply.caps.map(({ cap, teamId }) => ({ teamId, version: cap.version }));
    await this.ledgers.submit(place, { kind: "confirm_caps", caps });
    const answered = await this.#call(() =>
      reply.caps.map(({ cap, teamId }) => ({ teamId, cap, recorded: records.cap(teamId) })),
    );
    observer.capsAnswered(answered);
  }

  /** Grants a raise, or finishes its grant. */
  async grantRaise(profile: AgentProfile, grant: RaiseGrant): Promise<void> {
    const { ledger, place, records, timeline } = this.#surroundings;
    await grantRaise(
      {
        ledgers: this.ledgers,
        records,
        readBasis: (agentId) =>
          this.#call(() => {
            const now = timeline.now;
            return accountView(ledger().ledger, { agentId, now }, now)?.raiseBasis ?? null;
          }),
        call: (work) => this.#call(work),
        writeCaps: (caps) => this.#ports.projections.writeCaps(place.projectId, caps),
      },
      profile,
      grant,
    );
  }

  /** Rules live in the records, and the ledger receives their version before any caller is answered. */
  async putRules(teamId: string | null, checks: RecordedRules["checks"]): Promise<void> {
    const { observer, place, records } = this.#surroundings;
    const version = await this.#call(() => records.raiseRules(teamId, { checks }));
    await this.ledgers.submit(place, { kind: "follow_rules", teamId, version });
    observer.rulesAnswered(teamId, version);
  }

  /** Restrictions of the project (null), a team or an agent. */
  async putRestrictions(
    on: { readonly teamId: string | null } | { readonly agentId: string },
    never: ReadonlySet<string>,
  ): Promise<void> {
    const { observer, place, records } = this.#surroundings;
    const level = "agentId" in on ? on.agentId : on.teamId;
    const version = await this.#call(() => records.raiseRules(level, { never }));
    const follows = "agentId" in on ? ({ kind: "follow_restrictions", ...on, version } as const) : null;
    const command = follows ?? ({ kind: "follow_rules", teamId: level, version } as const);
    const reply = await this.ledgers.submit(place, command);
    if (reply.kind === "confirmed") observer.restrictionsAnswered(level, version, never);
  }

  submit(command: Parameters<Ledgers["submit"]>[1]): Promise<LedgerReply> {
    return this.ledgers.submit(this.#surroundings.place, command);
  }

  async #execute(profile: AgentProfile, payment: Payment, hints?: ExecutionHints): Promise<PaidAnswer> {
    const { network } = this.#surroundings;
    try {
      const late = network.sleep(this.host, PAY_MS).then((): never => {
        throw new Unavailable("not in time");
      });
      return await Promise.race([this.#confirmed(profile, payment, hints), late]);
    } catch (error) {
      if (error instanceof Superseded) return this.#recorded(payment.request.transactionId);
      await this.#effects.record(profile, payment);
      if (payment.phase === "held") throw error;
      return payment;
    }
  }

  async #confirmed(profile: AgentProfile, payment: Payment, hints?: ExecutionHints): Promise<Payment> {
    const done = await this.#effects.execute(profile, payment, hints);
    const published = this.#effects.publish(profile, done.payment, "soon");
    this.ledgers.confirmLater(profile, confirmationOf(profile.agentId, done), published);
    return done.payment;
  }

  #recorded(transactionId: string): Promise<PaidAnswer> {
    return this.#call(() => this.#surroundings.records.payments.get(transactionId) ?? null);
  }

  #call<T>(work: () => T): Promise<T> {
    return this.#surroundings.network.call(this.host, work);
  }

  #actorOf(agentId: string): SimulatedAgent {
    const actor = this.#surroundings.agents.get(agentId);
    if (actor === undefined || actor.hasEnded) throw new NoSuchActor(agentId);
    return actor;
  }
}

/** The payment under the key, if it was asked for with the same payload. */
const replayOf = ({ payloadHash }: PaymentRequest, earlier: Payment): PaidAnswer =>
  earlier.request.payloadHash === payloadHash ? earlier : null;
