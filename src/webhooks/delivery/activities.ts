import { setTimeout as sleep } from "node:timers/promises";
import { ApplicationFailure } from "@temporalio/activity";
import { ApplicationFailureCategory } from "@temporalio/common";
import { withHeartbeats } from "../../lib/heartbeats.ts";
import type { AccessProofs } from "../../secrets/access-proofs.ts";
import type { Activities } from "../../../activities/types.ts";
import type { DeliveryAttempts } from "./attempt.ts";
import type { EventDispatcher } from "./dispatcher.ts";
import type { WebhookCollections } from "../../store/webhook-documents.ts";
import type { Redeliveries } from "./redeliveries.ts";
import { eraseSecret } from "./secrets.ts";
import type { Watching } from "./watching.ts";

/** Duration of one activity of a watch; its workflow then starts another. */
const WATCH_MS = 300_000;
/** Interval of looks for deliveries with a pending action. */
const SWEEP_MS = 2_000;
/** Delay between the end of a process's watch and the next one's start. */
const HANDOVER_MS = 500;
/** Delay between two steps of a watch that is behind. */
const BEHIND_MS = 20;
/** Delay between two steps while deliveries give way to payments. */
const YIELD_MS = 100;
/** Retry delay in a process without a chain, so that other processes watch deposits. */
const NO_CHAIN_MS = 60_000;

/** Watches deposits on the chain. A step reads some blocks, and returns whether there are more. */
export interface Deposits {
  step(): Promise<{ readonly isBehind: boolean }>;
}

export interface WebhookActivityDependencies {
  readonly accessProofs: AccessProofs;
  readonly webhooks: WebhookCollections;
  readonly attempts: DeliveryAttempts;
  readonly dispatcher: EventDispatcher;
  readonly redeliveries: Redeliveries;
  readonly deposits: Deposits | null;
  readonly watching: Readonly<Record<"events" | "deposits", Watching>>;
  /** Starts other work left by another process; returns its amount. Never throws. */
  readonly sweepOthers: () => Promise<number>;
}

export type WebhookActivities = Pick<
  Activities,
  "deliverWebhook" | "eraseWebhookSecret" | "replayWebhooks" | "watchEvents" | "watchDeposits"
>;

export function createWebhookActivities(dependencies: WebhookActivityDependencies): WebhookActivities {
  const { attempts, deposits, dispatcher, redeliveries, sweepOthers, watching, webhooks } = dependencies;
  return {
    async deliverWebhook(input) {
      const attempted = await attempts.next(input);
      if (attempted.kind === "ended") return attempted.end;
      throw later(attempted.reason, attempted.afterMs);
    },

    eraseWebhookSecret: (input) => eraseSecret(webhooks, dependencies.accessProofs, input),

    replayWebhooks: (input) => redeliveries.replay(input),

    async watchEvents() {
      let sweepAt = 0;
      await beating(watching.events, async () => {
        const left = await dispatcher.step();
        if (left === "waiting") await sleep(YIELD_MS);
        if (performance.now() < sweepAt) return left !== "nothing";
        sweepAt = performance.now() + SWEEP_MS;
        const begun = (await dispatcher.sweep()) + (await sweepOthers());
        return begun > 0 || left !== "nothing";
      });
    },

    async watchDeposits() {
      if (deposits === null) {
        throw later("this process has no chain", NO_CHAIN_MS);
      }
      await beating(watching.deposits, async () => {
        const { isBehind } = await deposits.step();
        // Nodes that disagree with each other may leave the watch behind for a while.
        if (isBehind) await sleep(BEHIND_MS);
        return isBehind;
      });
    },
  };
}

async function beating(watching: Watching, step: () => Promise<boolean>): Promise<void> {
  await withHeartbeats(() => watching.watch(WATCH_MS, step));
  if (!watching.isStopped) return;
  // Fails instead of completing, so that the watch is not restarted here until the worker is gone.
  throw later("this process is stopping", HANDOVER_MS);
}

/** Temporal treats a retry delay of 0 as "no retry". */
const LATER_MIN_MS = 10;

/** Returns a failure that is retried after `afterMs`. Benign, since nothing is wrong, so the log need not report it. */
const later = (message: string, afterMs: number): ApplicationFailure =>
  ApplicationFailure.create({
    message,
    nextRetryDelay: Math.max(LATER_MIN_MS, afterMs),
    category: ApplicationFailureCategory.BENIGN,
  });
