import { ApplicationFailure } from "@temporalio/activity";
import { expect } from "chai";
import type { Client } from "@temporalio/client";
import { BACKOFF_SECONDS, pauseAfter } from "../../src/domain/webhooks/attempts.ts";
import {
  DELIVERY_WORKFLOW,
  type DeliveryEnd,
  type DeliveryInput,
  deliveryWorkflowId,
  DROPPED_SIGNAL,
  SECRET_EXPIRY_WORKFLOW,
  type SecretExpiryInput,
  secretExpiryWorkflowId,
} from "../../src/messages/delivery.ts";
import { deliverySearchAttributes } from "../../src/messages/search-attributes.ts";
import { detailsOf } from "../workflows/support/life.ts";
import { useTimedStage, type TimedStage } from "../workflows/support/timed.ts";

const playScene = useTimedStage();
/** The time of the engine that plays just now, which goes by faster than a real clock. */
const engine = { now: (): Promise<number> => Promise.reject(new Error("nothing is played")) };
const play: typeof playScene = (plot, options) =>
  playScene((stage) => {
    engine.now = () => stage.now();
    return plot(stage);
  }, options);
const DAY_MS = 86_400_000;
/** Time that is skipped runs on while something is done. */
const LATE_MS = 30_000;

const inputOf = (scene: string): DeliveryInput => ({
  deliveryId: `dlv-${scene}`,
  organizationId: "0199aa00-0000-7000-8000-000000000001",
  endpointId: `whe-${scene}`,
  eventType: "agent.paused",
  isTest: false,
  run: 1,
});

function start({ client, scene, taskQueue }: TimedStage) {
  const input = inputOf(scene);
  type Delivery = (input: DeliveryInput) => Promise<DeliveryEnd>;
  return client.workflow.start<Delivery>(DELIVERY_WORKFLOW, {
    taskQueue,
    workflowId: deliveryWorkflowId(input),
    args: [input],
    typedSearchAttributes: deliverySearchAttributes(input, "pending"),
  });
}

const stateOf = async (handle: Awaited<ReturnType<Client["workflow"]["start"]>>): Promise<unknown> =>
  (await handle.describe()).searchAttributes["DeliveryState"];

/** An activity as the product's: it makes one attempt after another, at these times, and takes the one that is named. */
function attemptsAt(times: number[], takenBy: number | null, now: () => Promise<number>) {
  return {
    async deliverWebhook(): Promise<DeliveryEnd> {
      times.push(await now());
      if (times.length === takenBy) return "succeeded";
      const pauseSeconds = pauseAfter(times.length, BACKOFF_SECONDS);
      if (pauseSeconds === null) return "failed";
      throw ApplicationFailure.create({ message: "not taken", nextRetryDelay: pauseSeconds * 1_000 });
    },
  };
}

describe("workflow delivery", () => {
  it("attempts are made at 0, 5 min, 35 min, 2 h 35 min and 10 h 35 min, and none after", () => {
    const times: number[] = [];
    return play(
      async (stage) => {
        const handle = await start(stage);
        expect(await handle.result()).to.equal("failed");
        // Each is counted from the one before, whose answer may have taken a moment.
        const pausesMs = times.slice(1).map((at, index) => at - (times[index] ?? 0));
        expect(pausesMs).to.have.lengthOf(4);
        for (const [index, dueMs] of [300_000, 1_800_000, 7_200_000, 28_800_000].entries())
          expect(pausesMs[index]).to.be.within(dueMs, dueMs + LATE_MS);
        expect(await stateOf(handle)).to.deep.equal(["failed"]);
        expect(await detailsOf(handle)).to.include("**failed**");
        await stage.skip(10 * DAY_MS);
        expect(times).to.have.lengthOf(5);
      },
      { activities: attemptsAt(times, null, () => engine.now()) },
    );
  });

  it("one that is taken is not sent again, and shows that it succeeded", () => {
    const times: number[] = [];
    return play(
      async (stage) => {
        const handle = await start(stage);
        expect(await handle.result()).to.equal("succeeded");
        expect(times).to.have.lengthOf(3);
        expect(await stateOf(handle)).to.deep.equal(["succeeded"]);
      },
      { activities: attemptsAt(times, 3, () => engine.now()) },
    );
  });

  it("one that is dropped between two attempts ends at once, and is not sent again", () => {
    const times: number[] = [];
    return play(
      async (stage) => {
        const handle = await start(stage);
        await stage.skip(60_000);
        expect(times).to.have.lengthOf(1);
        await handle.signal(DROPPED_SIGNAL);
        expect(await handle.result()).to.equal("dropped");
        expect(await stateOf(handle)).to.deep.equal(["dropped"]);
        await stage.skip(DAY_MS);
        expect(times).to.have.lengthOf(1);
      },
      { activities: attemptsAt(times, null, () => engine.now()) },
    );
  });

  it("what fails it without an attempt, such as a database that is away, is tried again soon", () => {
    const times: number[] = [];
    return play(
      async (stage) => {
        const handle = await start(stage);
        expect(await handle.result()).to.equal("succeeded");
        const [first = 0, ...rest] = times;
        // After 1, 2 and 4 s, each counted from the answer before; of an attempt's pauses the shortest is 5 min.
        for (const at of rest) expect(at - first).to.be.at.most(7_000 + 3 * LATE_MS);
      },
      {
        activities: {
          async deliverWebhook(): Promise<DeliveryEnd> {
            times.push(await engine.now());
            if (times.length < 4) throw new Error("no database");
            return "succeeded";
          },
        },
      },
    );
  });
});

describe("workflow secretExpiry", () => {
  it("erases a rotated secret once 24 h are over, and not a minute before", () => {
    const erased: SecretExpiryInput[] = [];
    return play(
      async (stage) => {
        const input = { endpointId: "whe", secretId: "whs", expiresAt: (await stage.now()) + DAY_MS };
        const handle = await stage.client.workflow.start(SECRET_EXPIRY_WORKFLOW, {
          taskQueue: stage.taskQueue,
          workflowId: secretExpiryWorkflowId(input),
          args: [input],
        });
        await stage.skip(DAY_MS - 60_000);
        expect(erased).to.deep.equal([]);
        await handle.result();
        expect(erased).to.deep.equal([input]);
        expect(await stage.now()).to.be.at.least(input.expiresAt);
      },
      {
        activities: {
          eraseWebhookSecret(input) {
            erased.push(input);
            return Promise.resolve();
          },
        },
      },
    );
  });
});
