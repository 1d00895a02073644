import { setTimeout as pause } from "node:timers/promises";
import { z } from "zod";
import type { EffectDependencies } from "../../../src/payments/effects.ts";
import type { RailPort } from "../../../src/payments/ports.ts";
import type { Backends } from "../../../server/service-options.ts";
import type { Payment } from "../../../src/domain/ledger/payment.ts";
import { armingOf, LIFE_POINTS_FOLDER, type LifePoint, lifeHeldLine } from "../support/life-points.ts";

/** Holds agents' creates, mints and archives at armed points. */

const POLL_MS = 25;
const folder = process.env[LIFE_POINTS_FOLDER] ?? "";

/** Who is held under which arming. */
const held = new Map<string, unknown>();

/** Holds the first who comes to an armed point, in all that it does there, until the point is disarmed. */
async function pass(point: LifePoint, who: unknown): Promise<void> {
  const arming = await armingOf(folder, point);
  if (arming === null) return;
  if (!held.has(arming)) {
    held.set(arming, who);
    process.stdout.write(`${lifeHeldLine(point, arming)}\n`);
  }
  if (held.get(arming) !== who) return;
  while ((await armingOf(folder, point)) !== null) await pause(POLL_MS);
}

type Call = () => unknown;

/** The same object, one method of which, that answers a promise, is called through something else. */
const through = <T extends object>(
  target: T,
  method: keyof T & string,
  wrap: (call: Call, args: readonly unknown[]) => Promise<unknown>,
): T =>
  new Proxy(target, {
    get(_target, name): unknown {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      return (...args: readonly unknown[]): unknown => {
        const call = (): unknown => Reflect.apply(value, target, args);
        return name === method ? wrap(call, args) : call();
      };
    },
  });

async function then(point: LifePoint, call: Call, who: unknown = {}): Promise<unknown> {
  const answer = await call();
  await pass(point, who);
  return answer;
}

const profile = z.object({ agentId: z.string() });

export const withCreatePoints = ({
  actors,
  collections,
  deliveryKeys,
  transaction,
  ...rest
}: Backends): Backends => ({
  ...rest,
  actors: through(actors, "startAgent", async (start) => {
    await pass("create-placed", start);
    return then("create-actor-started", start);
  }),
  collections: {
    ...collections,
    creates: through(collections.creates, "insertOne", (reserve) => then("create-reserved", reserve)),
    agents: through(collections.agents, "updateOne", (propose) => then("mint-proposed", propose)),
  },
  deliveryKeys: {
    async obtain(agentId) {
      const key = await deliveryKeys.obtain(agentId);
      await pass("create-key-file", agentId);
      return key;
    },
    read: (agentId) => deliveryKeys.read(agentId),
    destroy: (agentId) => deliveryKeys.destroy(agentId),
  },
  async transaction(work) {
    const who = {};
    const answer = await transaction(async (session) => {
      const written = await work(session);
      await pass("create-uncommitted", who);
      return written;
    });
    await pass("create-committed", who);
    return answer;
  },
});

const ofArchive = ({ denial }: Payment): boolean => denial?.code === "AGENT_ARCHIVED";

const neverDetached = (rail: RailPort): RailPort =>
  through(rail, "detach", async (detach, [first]) => {
    await pass("archive-decided", profile.parse(first).agentId);
    return detach();
  });

export function withLifePoints(plain: EffectDependencies): EffectDependencies {
  const { projections, rails, workflows } = plain;
  return {
    ...plain,
    rails: { card: neverDetached(rails.card), wallet: neverDetached(rails.wallet) },
    projections: {
      async writePayment(of, payment) {
        if (ofArchive(payment)) await pass("archive-decided", of.agentId);
        await projections.writePayment(of, payment);
      },
      endOf: (transactionId) => projections.endOf(transactionId),
      paymentOf: (transactionId) => projections.paymentOf(transactionId),
      closedAgent: (...of) => projections.closedAgent(...of),
      textsOf: (transactionId) => projections.textsOf(transactionId),
      async writeAgent(summary) {
        const { agentId, archivedAt, keyId } = summary;
        if (archivedAt !== null) await pass("archive-decided", agentId);
        else await pass(keyId === null ? "revoke-decided" : "mint-decided", agentId);
        await projections.writeAgent(summary);
        await pass("mint-recorded", agentId);
      },
      async writeAccount(summary) {
        const { agentId, status } = summary;
        if (status === "paused") await pass("pause-decided", agentId);
        if (status === "closed") await pass("archive-decided", agentId);
        await projections.writeAccount(summary);
        if (status === "paused") await pass("pause-recorded", agentId);
      },
      writeCaps: (projectId, caps) => projections.writeCaps(projectId, caps),
    },
    workflows: through(workflows, "endApproval", async (tell, [first]) => {
      await pass("archive-decided", profile.parse(first).agentId);
      return tell();
    }),
  };
}
