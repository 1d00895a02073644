import { access } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import type { EffectDependencies } from "../../../src/payments/effects.ts";
import type { RailPort } from "../../../src/payments/ports.ts";
import type { Payment } from "../../../src/domain/ledger/payment.ts";
import {
  armedBudgetOf,
  armedFile,
  budgetHeldLine,
  type BudgetPoint,
  heldLine,
  isBudgetArmed,
  type Point,
  POINTS_FOLDER,
} from "../support/points.ts";

/** Holds a payment at the point that its merchant names while that point is armed. */

const POLL_MS = 25;
const folder = process.env[POINTS_FOLDER] ?? "";

const isArmed = (point: Point): Promise<boolean> =>
  access(armedFile(folder, point)).then(
    () => true,
    () => false,
  );

async function pass(point: Point, { request }: Payment): Promise<void> {
  if (request.recipient !== point || !(await isArmed(point))) return;
  process.stdout.write(`${heldLine(point, request.transactionId)}\n`);
  while (await isArmed(point)) await pause(POLL_MS);
}

const heldRail = (rail: RailPort): RailPort => ({
  async send(profile, payment, permit) {
    await pass("before-rail", payment);
    const outcome = await rail.send(profile, payment, permit);
    await pass("after-rail", payment);
    await pass("after-approved-rail", payment);
    return outcome;
  },
  capabilities: rail.capabilities,
  network: rail.network,
  fence: (places) => rail.fence(places),
  query: (payment) => rail.query(payment),
  settle: (...asked) => rail.settle(...asked),
  withhold: (profile, payment) => rail.withhold(profile, payment),
  balance: (profile) => rail.balance(profile),
  detach: (profile) => rail.detach(profile),
});

export function withPaymentPoints(plain: EffectDependencies): EffectDependencies {
  const { projections, rails, workflows } = plain;
  return {
    ...plain,
    rails: { ...rails, card: heldRail(rails.card) },
    projections: {
      async writePayment(profile, payment) {
        await projections.writePayment(profile, payment);
        await pass("after-projection", payment);
      },
      endOf: (transactionId) => projections.endOf(transactionId),
      paymentOf: (transactionId) => projections.paymentOf(transactionId),
      closedAgent: (...of) => projections.closedAgent(...of),
      textsOf: (transactionId) => projections.textsOf(transactionId),
      writeAgent: (summary) => projections.writeAgent(summary),
      async writeAccount(summary) {
        if (await isAnyArmed(["after-replacement", "after-caps-recorded"])) return never();
        await projections.writeAccount(summary);
      },
      async writeCaps(projectId, caps) {
        await passBudget("after-replacement", projectId);
        await projections.writeCaps(projectId, caps);
        await passBudget("after-caps-recorded", projectId);
        await passBudget("after-agents-recorded", projectId);
      },
    },
    workflows: {
      async startApproval(profile, payment) {
        await pass("before-approval-starts", payment);
        await workflows.startApproval(profile, payment);
      },
      async endApproval(profile, payment, end) {
        await pass("before-approval-is-told", payment);
        await workflows.endApproval(profile, payment, end);
      },
      startSettlement: (profile, payment) => workflows.startSettlement(profile, payment),
      textsOf: (payment) => workflows.textsOf(payment),
    },
  };
}

async function passBudget(point: BudgetPoint, projectId: string): Promise<void> {
  if (!(await isBudgetArmed(folder, point, projectId))) return;
  process.stdout.write(`${budgetHeldLine(point, projectId)}\n`);
  while (await isBudgetArmed(folder, point, projectId)) await pause(POLL_MS);
}

/** Whether replacements are held before the records of agents are written. */
const isAnyArmed = async (points: readonly BudgetPoint[]): Promise<boolean> =>
  (await Promise.all(points.map((point) => armedBudgetOf(folder, point)))).some((armed) => armed !== null);

/** The process is killed meanwhile. */
const never = (): Promise<never> => new Promise(() => undefined);
