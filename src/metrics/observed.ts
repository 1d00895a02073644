import type { Projections, RailPort, Rails } from "../payments/ports.ts";
import type { Activities } from "../../activities/types.ts";
import { perRail, type Rail } from "../domain/ledger/payment.ts";
import type { RailCall, SweepName } from "./labels.ts";
import type { Metrics } from "./metrics.ts";

/** Wraps the rails so that each call is counted by its result; a payment's calls are also timed. */
export const observedRails = (rails: Rails, metrics: Metrics): Rails =>
  perRail((rail) => observedRail(rail, rails[rail], metrics));

function observedRail(rail: Rail, port: RailPort, metrics: Metrics): RailPort {
  const counted = async <T>(
    call: RailCall,
    calling: Promise<T>,
    resultOf: (answer: T) => string,
  ): Promise<T> => {
    try {
      const answer = await calling;
      metrics.railCalled(rail, call, resultOf(answer));
      return answer;
    } catch (error) {
      metrics.railCalled(rail, call, "no_answer");
      throw error;
    }
  };
  return {
    capabilities: port.capabilities,
    network: port.network,
    send: (profile, payment, permit) =>
      metrics.timed(rail, "rail", () =>
        counted("send", port.send(profile, payment, permit), ({ status }) => status),
      ),
    fence: (places) => counted("fence", port.fence(places), () => "fenced"),
    query: (payment) => counted("query", port.query(payment), (found) => found?.status ?? "unknown"),
    settle: (profile, payment, withinMs, requestPermission) =>
      counted(
        "settle",
        port.settle(profile, payment, withinMs, requestPermission),
        (found) => found?.status ?? "unknown",
      ),
    withhold: (profile, payment) =>
      counted("withhold", port.withhold(profile, payment), ({ status }) => status),
    balance: (profile) => counted("balance", port.balance(profile), ({ kind }) => kind),
    detach: (profile) => counted("detach", port.detach(profile), (end) => end),
  };
}

/** Wraps the projections so that the time a payment waits for them is measured. */
export const observedProjections = (projections: Projections, metrics: Metrics): Projections => ({
  writePayment: (profile, payment) =>
    metrics.timed(payment.request.rail, "record", () => projections.writePayment(profile, payment)),
  endOf: (transactionId) => projections.endOf(transactionId),
  paymentOf: (transactionId, use) => projections.paymentOf(transactionId, use),
  closedAgent: (agentId) => projections.closedAgent(agentId),
  textsOf: (transactionId) => projections.textsOf(transactionId),
  writeAgent: (summary) => projections.writeAgent(summary),
  writeAccount: (summary) => projections.writeAccount(summary),
  writeCaps: (projectId, caps) => projections.writeCaps(projectId, caps),
});

/** Wraps the activities so that an actor's sweeps are counted. */
export function observedActivities(activities: Activities, metrics: Metrics): Activities {
  const swept = async <T>(what: SweepName, sweeping: Promise<T>): Promise<T> => {
    try {
      const done = await sweeping;
      metrics.swept(what, "done");
      return done;
    } catch (error) {
      metrics.swept(what, "failed");
      throw error;
    }
  };
  return {
    ...activities,
    executePayments: async (input) => {
      const done = await activities.executePayments(input);
      for (const { revision } of done) metrics.swept("payment", revision === 0 ? "failed" : "done");
      return done;
    },
    writeAccounts: (input) => swept("account_records", activities.writeAccounts(input)),
    writeCaps: (input) => swept("cap_records", activities.writeCaps(input)),
    writeAgent: (input) => swept("agent_record", activities.writeAgent(input)),
    followInLedger: (input) => swept("ledger", activities.followInLedger(input)),
  };
}
