import { perRail, type StoredPayment } from "../../src/domain/ledger/payment.ts";
import type { Timers } from "../../src/lib/timers.ts";
import type {
  PaymentWorkflows,
  Projections,
  RailNetwork,
  RailPort,
  Rails,
} from "../../src/payments/ports.ts";
import type { Random } from "../random.ts";
import type { SimulatedAgent, SimulatedLedger } from "./actors.ts";
import type { Observer } from "./audit/observer.ts";
import type { Processor, Records } from "./counterparts.ts";
import type { Domain } from "./domain.ts";
import type { Host, Network } from "./network.ts";
import type { Timeline } from "./timeline.ts";

/** Environment that all processes of the service share. */
export interface Surroundings {
  readonly domain: Domain;
  readonly timeline: Timeline;
  readonly network: Network;
  readonly observer: Observer;
  readonly processor: Processor;
  readonly random: Random;
  readonly records: Records;
  readonly agents: ReadonlyMap<string, SimulatedAgent>;
  /** The ledger, as it is by now. */
  readonly ledger: () => SimulatedLedger;
  readonly workflows: PaymentWorkflows;
  readonly place: { readonly organizationId: string; readonly projectId: string };
  readonly approvalWindowSeconds: number;
}

/** Proportion of reads of the network's books that meet an outdated copy, and how old it is at most. */
const STALE_READS = 0.1;
const STALE_MAX_MS = 600_000;

/** Everything outside of one process, reached over a network that fails. */
export interface ProcessPorts {
  readonly projections: Projections;
  readonly rails: Rails;
  readonly timers: Timers;
  readonly workflows: PaymentWorkflows;
}

export function portsOf(host: Host, surroundings: Surroundings): ProcessPorts {
  const { network } = surroundings;
  const call: Call = (work) => network.call(host, work);
  return {
    projections: recordsOver(call, surroundings),
    rails: railsOver(call, surroundings),
    timers: timersOf(host, surroundings),
    workflows: workflowsOver(call, surroundings),
  };
}

type Call = <T>(work: () => T) => Promise<T>;

const timersOf = (host: Host, { timeline }: Surroundings): Timers => ({
  after: (ms, run) => {
    let isCancelled = false;
    timeline.after(ms, () => {
      if (host.isAlive && !isCancelled) run();
    });
    return () => {
      isCancelled = true;
    };
  },
  monotonicMs: () => timeline.now,
});

const recordsOver = (call: Call, { records }: Surroundings): Projections => ({
  writePayment: (profile, payment) => call(() => records.writePayment(profile, payment)),
  endOf: (transactionId) => call(() => records.endOf(transactionId)),
  paymentOf: (transactionId) => call(() => records.paymentOf(transactionId)),
  closedAgent: (...of) => call(() => records.closedAgent(...of)),
  textsOf: (transactionId) => call(() => records.textsOf(transactionId)),
  writeAgent: (summary) => call(() => records.writeAgentRecord(summary)),
  writeAccount: (summary) => call(() => records.writeAccount(summary)),
  writeCaps: (_projectId, caps) => call(() => records.writeCaps(caps)),
});

function railsOver(call: Call, { processor, random }: Surroundings): Rails {
  const unbooked = async function* () {
    const kept = await call(() => processor.unbooked());
    yield [...kept.keys()];
    await call(() => processor.forget(kept));
  };
  const network: RailNetwork = {
    booksOf: (transactionId) => {
      const behindMs = random.chance(STALE_READS) ? random.between(1, STALE_MAX_MS) : 0;
      return call(() => processor.booksOf(transactionId, behindMs));
    },
    async *changedSince(since) {
      yield* await call(() => processor.changedSince(since.getTime()));
    },
    async *feeds() {
      yield unbooked();
    },
    keepUnbooked: (transactionId) => call(() => processor.keepUnbooked(transactionId)),
    play: (transactionId, number) => call(() => processor.play(transactionId, number)),
  };
  const query = (payment: StoredPayment) => call(() => processor.query(payment.request.transactionId));
  const rail: RailPort = {
    capabilities: { finality: "instant" },
    network: null,
    send: (_profile, payment, permit) => call(() => processor.charge(payment, permit)),
    fence: (places) => call(() => places.forEach((place) => processor.fence(place))),
    withhold: (_profile, payment) => call(() => processor.withhold(payment)),
    query,
    settle: (_profile, payment) => query(payment),
    balance: () => Promise.resolve({ kind: "none" }),
    detach: () => Promise.resolve("detached"),
  };
  return perRail((name) => (name === "card" ? { ...rail, network } : rail));
}

/** Workflows that are started and signalled by messages. */
function workflowsOver(call: Call, { workflows }: Surroundings): PaymentWorkflows {
  const sent = async (work: () => Promise<void>): Promise<void> =>
    await (
      await call(() => ({ done: work() }))
    ).done;
  return {
    startApproval: (profile, payment) => sent(() => workflows.startApproval(profile, payment)),
    endApproval: (...ended) => sent(() => workflows.endApproval(...ended)),
    startSettlement: (profile, payment) => sent(() => workflows.startSettlement(profile, payment)),
    textsOf: (payment) => workflows.textsOf(payment),
  };
}
