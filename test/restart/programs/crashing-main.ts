import { access } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import type { EffectDependencies } from "../../../activities/effects.ts";
import type { RailPort } from "../../../activities/ports.ts";
import { main } from "../../../server/run.ts";
import type { Means } from "../../../server/service.ts";
import type { Payment } from "../../../src/domain/agent/payment.ts";
import {
  armedFile,
  budgetHeldLine,
  type BudgetPoint,
  heldLine,
  isBudgetArmed,
  type Point,
  POINTS_FOLDER,
} from "../support/points.ts";

/** The all-in-one, which holds a payment at the point that its merchant names while that point is armed. */

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
  async send(profile, payment, leave) {
    await pass("before-rail", payment);
    const outcome = await rail.send(profile, payment, leave);
    await pass("after-rail", payment);
    await pass("after-approved-rail", payment);
    return outcome;
  },
  capabilities: rail.capabilities,
  query: (payment) => rail.query(payment),
  settle: (...asked) => rail.settle(...asked),
  withhold: (profile, payment) => rail.withhold(profile, payment),
  reverse: (payment) => rail.reverse(payment),
  balance: (profile) => rail.balance(profile),
  detach: (profile) => rail.detach(profile),
});

function decorateEffects(plain: EffectDependencies): EffectDependencies {
  const { projections, rails, workflows } = plain;
  return {
    ...plain,
    rails: { ...rails, card: heldRail(rails.card) },
    projections: {
      async writePayment(profile, payment) {
        await projections.writePayment(profile, payment);
        await pass("after-projection", payment);
      },
      writeAgentSummary: (agentId, summary) => projections.writeAgentSummary(agentId, summary),
    },
    workflows: {
      async startApproval(profile, payment) {
        await pass("before-approval-starts", payment);
        await workflows.startApproval(profile, payment);
      },
      async tellApproval(profile, payment) {
        await pass("before-approval-is-told", payment);
        await workflows.tellApproval(profile, payment);
      },
      startSettlement: (profile, payment) => workflows.startSettlement(profile, payment),
    },
  };
}

async function passBudget(point: BudgetPoint, projectId: string): Promise<void> {
  if (!(await isBudgetArmed(folder, point, projectId))) return;
  process.stdout.write(`${budgetHeldLine(point, projectId)}\n`);
  while (await isBudgetArmed(folder, point, projectId)) await pause(POLL_MS);
}

const decorateMeans = (plain: Means): Means => ({
  ...plain,
  budgets: {
    async submit(place, command) {
      if (command.kind === "delivered") await passBudget("before-delivered", place.projectId);
      const reply = await plain.budgets.submit(place, command);
      if (reply.kind === "replaced") await passBudget("after-replacement", place.projectId);
      if (reply.kind === "enrolled") await passBudget("after-enrolment", place.projectId);
      return reply;
    },
  },
});

void main(process.argv[2] ?? "start", process.env, { decorateEffects, decorateMeans });
