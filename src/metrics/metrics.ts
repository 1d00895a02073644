import { exemplarLabels, isTracing, traced } from "../lib/tracing.ts";
import { Counter, Gauge, Histogram, Registry, type RegistryContentType } from "prom-client";
import type { BlockedProject } from "../actors/blocked-projects.ts";
import type { ChainRepair } from "../chain/repairs.ts";
import type { MailOutcome } from "../mail/invite-mail.ts";
import type { OperationId } from "../contract/registry.ts";
import type { Fill } from "../domain/ledger/capacity.ts";
import { HELD_REVISION, type Payment, type Rail, RAILS } from "../domain/ledger/payment.ts";
import { type ErrorCode, ERRORS } from "../domain/errors.ts";
import type { Surface } from "../limits/plans.ts";
import {
  BLOCK_REASONS,
  CHAIN_REPAIRS,
  DENIAL_CODES_OF,
  FORGED,
  FORWARDED,
  type ForwardResult,
  type Forged,
  type HitLimit,
  LIMITS,
  MAIL_OUTCOMES,
  type PaymentPhase,
  PHASES,
  RAIL_CALLS,
  type RailCall,
  SHED,
  type ShedReason,
  SURFACES,
  type SweepName,
  SWEEPS,
} from "./labels.ts";
import { processMetrics } from "./process-metrics.ts";

export type QueueName = "ledger_commands" | "agent_commands" | "audit_entries" | "records" | "events";

export interface EndedRequest {
  readonly surface: Surface | null;
  /** All operations of an MCP batch; empty if none was reached. */
  readonly operations: readonly OperationId[];
  /** Null: the connection closed before the answer was complete. */
  readonly status: number | null;
  readonly refusals: readonly ErrorCode[];
  readonly seconds: number;
}

/** Maximum projects named in the metrics. */
const FULLEST_PROJECTS = 20;

const highestOf = ({ accounts, bytes, openPayments }: Fill): number =>
  Math.max(accounts, bytes, openPayments);

export const PREFIX = "spending_control_";

/** Buckets from 2 ms to the 5 s within which every caller is answered. */
const SECONDS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Known values of labels, by label name. */
type Known = Readonly<Record<string, readonly string[]>>;

/** Buckets for receivers, whose timeout is 15 s. */
const ATTEMPT_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15];

function registryOf(hasExemplars: boolean): Registry<RegistryContentType> {
  const registry = new Registry<RegistryContentType>();
  if (hasExemplars) registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  return registry;
}

/**
 * Counters and timers of one process in Prometheus format; in OpenMetrics format with an exemplar in each bucket of
 * payments and requests if the process traces. Names and labels are an interface; no label contains a value chosen by a
 * caller.
 */
export class Metrics {
  readonly #hasExemplars = isTracing();
  readonly registry = registryOf(this.#hasExemplars);
  readonly #requests = this.#counter("requests_total", "Requests by how they were answered", [
    "surface",
    "operation",
    "status",
  ]);
  readonly #requestSeconds = this.#histogram("request_duration_seconds", "From arrival to the answer's end", [
    "surface",
    "operation",
  ]);
  readonly #refusals = this.#zeroed("refusals_total", "Refused requests and tool calls by error code", {
    surface: [...SURFACES, "other"],
    code: Object.keys(ERRORS),
  });
  readonly #limitHits = this.#zeroed("limit_hits_total", "Requests above a rate limit or a daily limit", {
    limit: LIMITS,
  });
  readonly #payments = this.#counter("payments_total", "Payments that were put on hold or ended", [
    "rail",
    "status",
    "denial_code",
  ]);
  readonly #phases = this.#histogram("payment_phase_duration_seconds", "Duration of a payment's phases", [
    "rail",
    "phase",
  ]);
  readonly #forwards = this.#zeroed(
    "ledger_forwards_total",
    "Batches of ledger commands forwarded to another server, by result",
    { result: FORWARDED },
  );
  readonly #railCalls = this.#zeroed("rail_calls_total", "Calls to payment rails by result", {
    rail: RAILS,
    call: RAIL_CALLS,
    result: ["no_answer"],
  });
  readonly #sweeps = this.#zeroed("sweeps_total", "Items that sweeps executed, by result", {
    what: SWEEPS,
    result: ["done", "failed"],
  });
  readonly #mails = this.#zeroed("mails_total", "Attempts to send mail, by outcome", {
    outcome: MAIL_OUTCOMES,
  });
  readonly #forged = this.#zeroed(
    "forged_total",
    "Payments, decisions and records without a valid proof, and payloads that did not come from this service",
    { what: FORGED },
  );
  readonly #shed = this.#zeroed(
    "shed_payments_total",
    "Payments that were not put to their ledger, by reason",
    {
      reason: SHED,
    },
  );
  readonly #chainRepairs = this.#zeroed(
    "chain_repairs_total",
    "Repairs of transactions of the wallet rail, by kind",
    { what: CHAIN_REPAIRS },
  );
  readonly #webhookSeconds = this.#histogram(
    "webhook_attempt_duration_seconds",
    "Attempts to deliver webhooks, by whether they were acknowledged",
    ["result"],
    ATTEMPT_SECONDS,
  );
  readonly #queues = new Map<QueueName, () => number>();

  constructor() {
    for (const rail of RAILS) {
      for (const [status, codes] of Object.entries(DENIAL_CODES_OF))
        for (const denial_code of codes) this.#payments.inc({ rail, status, denial_code }, 0);
      for (const phase of PHASES) this.#phases.zero({ rail, phase });
    }
    for (const result of ["acknowledged", "failed"]) this.#webhookSeconds.zero({ result });
    for (const metric of processMetrics()) this.registry.registerMetric(metric);
    const queues = this.#queues;
    const lengths = new Gauge({
      name: `${PREFIX}queue_length`,
      help: "Items that are queued in this process",
      labelNames: ["queue"],
      registers: [],
      collect() {
        for (const [queue, length] of queues) this.set({ queue }, length());
      },
    });
    this.registry.registerMetric(lengths);
  }

  waitingCalls(count: () => number): void {
    const gauge = new Gauge({
      name: `${PREFIX}waiting_calls`,
      help: "Calls that wait in this process for a payment to be decided",
      registers: [],
      collect() {
        this.set(count());
      },
    });
    this.registry.registerMetric(gauge);
  }

  openStreams(count: () => number): void {
    const gauge = new Gauge({
      name: `${PREFIX}open_streams`,
      help: "Streams of changes that are open in this process",
      registers: [],
      collect() {
        this.set(count());
      },
    });
    this.registry.registerMetric(gauge);
  }

  engines(states: () => Promise<readonly { readonly label: string; readonly isUp: boolean }[]>): void {
    const gauge = new Gauge({
      name: `${PREFIX}engine_up`,
      help: "Whether this process can use an engine: 1, or 0",
      labelNames: ["engine"],
      registers: [],
      async collect() {
        for (const { isUp, label } of await states()) this.set({ engine: label }, isUp ? 1 : 0);
      },
    });
    this.registry.registerMetric(gauge);
  }

  /** Registers the number of projects that wait for an operator, as last seen by this process. */
  blockedProjects(blocked: () => readonly BlockedProject[]): void {
    const gauge = new Gauge({
      name: `${PREFIX}blocked_projects`,
      help: "Projects that decide nothing until an operator acts, by reason",
      labelNames: ["reason"],
      registers: [],
      collect() {
        const all = blocked();
        for (const reason of BLOCK_REASONS)
          this.set({ reason }, all.filter((each) => each.reason === reason).length);
      },
    });
    this.registry.registerMetric(gauge);
  }

  /** Registers the fill of the fullest ledgers; a label for each ledger would be unbounded. */
  ledgerFills(fills: () => Iterable<readonly [projectId: string, fill: Fill]>): void {
    const gauge = new Gauge({
      name: `${PREFIX}ledger_fill_ratio`,
      help: "Parts of their bounds that the fullest projects' ledgers take, as this process has last seen them",
      labelNames: ["project", "bound"],
      registers: [],
      collect() {
        this.reset();
        const fullest = [...fills()].toSorted(([, one], [, other]) => highestOf(other) - highestOf(one));
        for (const [project, { accounts, bytes, openPayments }] of fullest.slice(0, FULLEST_PROJECTS)) {
          this.set({ project, bound: "state_bytes" }, bytes);
          this.set({ project, bound: "open_payments" }, openPayments);
          this.set({ project, bound: "agents" }, accounts);
        }
      },
    });
    this.registry.registerMetric(gauge);
  }

  /** Registers since when the chain lacks a recorded transaction, as this process last saw it; null if it has all. */
  missingOnChainSince(since: () => Date | null, clock: () => Date): void {
    const gauge = new Gauge({
      name: `${PREFIX}oldest_unmined_transaction_age_seconds`,
      help: "How long ago the oldest transaction was recorded that the chain does not have; 0: it has all",
      registers: [],
      collect() {
        const now = clock().getTime();
        this.set(Math.max(0, (now - (since()?.getTime() ?? now)) / 1_000));
      },
    });
    this.registry.registerMetric(gauge);
  }

  #counter<L extends string>(name: string, help: string, labelNames: L[]): Counter<L> {
    return new Counter({ name: PREFIX + name, help, labelNames, registers: [this.registry] });
  }

  /** Creates a counter with all combinations of labels, so that alerts on its increase see the first event. */
  #zeroed(name: string, help: string, known: Known): Counter {
    const counter = this.#counter(name, help, Object.keys(known));
    let combinations: Record<string, string>[] = [{}];
    for (const [label, values] of Object.entries(known))
      combinations = combinations.flatMap((labels) => values.map((value) => ({ ...labels, [label]: value })));
    for (const labels of combinations) counter.inc(labels, 0);
    return counter;
  }

  #histogram<L extends string>(
    name: string,
    help: string,
    labelNames: L[],
    buckets: readonly number[] = SECONDS,
  ): Histogram<L> {
    const registers = [this.registry];
    const enableExemplars = this.#hasExemplars;
    const options = { name: PREFIX + name, help, labelNames, buckets: [...buckets], registers };
    return new Histogram({ ...options, enableExemplars });
  }

  #observe(histogram: Histogram, labels: Readonly<Record<string, string>>, value: number): void {
    if (this.#hasExemplars) histogram.observe({ labels, value, exemplarLabels: exemplarLabels() });
    else histogram.observe(labels, value);
  }

  requestEnded({ operations, refusals, seconds, status, ...request }: EndedRequest): void {
    const surface = request.surface ?? "other";
    for (const operation of operations.length === 0 ? ["none"] : operations) {
      this.#requests.inc({ surface, operation, status: status ?? "aborted" });
      this.#observe(this.#requestSeconds, { surface, operation }, seconds);
    }
    for (const code of refusals) {
      this.#refusals.inc({ surface, code });
      if (code === "DAILY_CREATE_LIMIT_REACHED") this.limitHit("daily_creates");
    }
  }

  limitHit(limit: HitLimit): void {
    this.#limitHits.inc({ limit });
  }

  /** Counts a payment whose record was written at a new revision: when it is put on hold, and at its end. */
  paymentWritten(payment: Payment): void {
    const { denial, phase, request, revision } = payment;
    const isHeld = phase === "held" && revision === HELD_REVISION;
    if (!isHeld && phase !== "done") return;
    const status = isHeld ? "held" : payment.status;
    this.#payments.inc({ rail: request.rail, status, denial_code: denial?.code ?? "none" });
  }

  paymentPhase(rail: Rail, phase: PaymentPhase, seconds: number): void {
    this.#observe(this.#phases, { rail, phase }, seconds);
  }

  /** `result` is the rail's answer, or `no_answer`. */
  railCalled(rail: Rail, call: RailCall, result: string): void {
    this.#railCalls.inc({ rail, call, result });
  }

  swept(what: SweepName, result: "done" | "failed", count = 1): void {
    this.#sweeps.inc({ what, result }, count);
  }

  /** Counts data that was not made by this service and was rejected. */
  forged(what: Forged): void {
    this.#forged.inc({ what });
  }

  forwarded(result: ForwardResult): void {
    this.#forwards.inc({ result });
  }

  paymentShed(reason: ShedReason): void {
    this.#shed.inc({ reason });
  }

  /** `unsent`: the mail server did not accept the mail, and it is retried. */
  mailed(outcome: MailOutcome): void {
    this.#mails.inc({ outcome });
  }

  chainRepaired(what: ChainRepair, count: number): void {
    this.#chainRepairs.inc({ what }, count);
  }

  webhookAttempted(result: "acknowledged" | "failed", seconds: number): void {
    this.#observe(this.#webhookSeconds, { result }, seconds);
  }

  /** Registers a queue, whose length is read at each scrape. */
  queue(name: QueueName, length: () => number): void {
    this.#queues.set(name, length);
  }

  /** Times and traces a phase, even if it fails. */
  async timed<T>(rail: Rail, phase: PaymentPhase, work: () => Promise<T>): Promise<T> {
    const began = performance.now();
    try {
      return await traced(`payment ${phase}`, { attributes: { rail } }, work);
    } finally {
      this.paymentPhase(rail, phase, (performance.now() - began) / 1_000);
    }
  }
}
