import type { Db } from "mongodb";
import pLimit from "p-limit";
import { actorTeller } from "../src/actors/actor-teller.ts";
import type { AuditLog } from "../src/audit/chain/appender.ts";
import { provisionOrganization } from "../src/containers/provision.ts";
import { inShares } from "./sweep-shares.ts";
import { createPaymentActivities, type PaymentActivityDependencies } from "./payment-activities.ts";
import type { MailActivities } from "../src/mail/activities.ts";
import type {
  AgentGateway,
  DeliveryWindows,
  LedgerStarter,
  LimitMirror,
  Treasuries,
} from "../src/payments/ports.ts";
import type { AccessProofs } from "../src/secrets/access-proofs.ts";
import { withHeartbeats } from "../src/lib/heartbeats.ts";
import { detachEverywhere } from "../src/rails/detach.ts";
import type { Activities } from "./types.ts";
import type { WebhookActivities } from "../src/webhooks/delivery/activities.ts";

/** Maximum concurrent updates of actors, because one worker serves the decisions of all ledgers. */
const TOLD_AT_ONCE_MAX = 8;

export interface ActivityDependencies extends PaymentActivityDependencies {
  readonly accessProofs: AccessProofs;
  readonly agents: AgentGateway;
  readonly auditLog: AuditLog;
  readonly db: Db;
  readonly ledgerStarter: LedgerStarter;
  readonly limits: LimitMirror;
  readonly windows: DeliveryWindows;
  readonly webhooks: WebhookActivities;
  readonly mail: MailActivities;
  readonly treasuries: Treasuries;
}

export function createActivities(dependencies: ActivityDependencies): Activities {
  const { accessProofs, auditLog, clock, db, ledgers, ledgerStarter, limits, onSweepFailed, projections } =
    dependencies;
  const { rails, treasuries, windows } = dependencies;
  const tellActor = actorTeller(dependencies.agents);
  const payments = createPaymentActivities(dependencies);

  return {
    ...payments,
    executePayments: inShares(payments.executePayments),
    ...dependencies.webhooks,
    ...dependencies.mail,

    writeAccounts: ({ accounts }) =>
      forEachAgent(accounts, (summary) => projections.writeAccount(summary), onSweepFailed),

    async tellActors({ accounts }) {
      const inTurn = pLimit(TOLD_AT_ONCE_MAX);
      return forEachAgent(accounts, (told) => inTurn(() => tellActor(told)), onSweepFailed);
    },

    writeCaps: ({ caps, projectId }) => projections.writeCaps(projectId, caps),

    writeAgent: ({ summary }) => projections.writeAgent(summary),

    async followInLedger({ agent, followed }) {
      const { agentId } = agent;
      const reply = await ledgers.submit(agent, { kind: "follow_agent", agentId, ...followed });
      if (reply.kind !== "followed")
        throw new Error(`a ledger answered ${reply.kind} to what it is to follow`);
    },

    mirrorLimits: ({ limits: policies }) =>
      forEachAgent(
        policies,
        ({ agentId, policy, policyVersion }) => limits.mirror(agentId, policy, policyVersion),
        onSweepFailed,
      ),

    bookNetworks: (input) => withHeartbeats(() => payments.bookNetworks(input)),

    closeDeliveryWindow: ({ agentId }) => windows.close(agentId),

    async detachWallet({ profile }) {
      const end = await detachEverywhere(rails, profile);
      if (end === "pending") throw new Error("the wallet is not detached yet");
    },

    provisionOrganization: (input) =>
      provisionOrganization({ accessProofs, auditLog, db, ledgerStarter, treasuries }, input, clock()),
  };
}

/** Processes each agent. Returns the agents that succeeded; throws if none did, so that the engine retries. */
async function forEachAgent<T extends { readonly agentId: string }>(
  each: readonly T[],
  work: (one: T) => Promise<void>,
  onFailed: (agentId: string, error: unknown) => void,
): Promise<readonly string[]> {
  const ends = await Promise.allSettled(each.map(work));
  const done: string[] = [];
  const errors: unknown[] = [];
  for (const [index, { agentId }] of each.entries()) {
    const end = ends[index];
    if (end?.status !== "rejected") done.push(agentId);
    else {
      errors.push(end.reason);
      onFailed(agentId, end.reason);
    }
  }
  if (done.length === 0 && errors.length > 0) throw errors[0];
  return done;
}
