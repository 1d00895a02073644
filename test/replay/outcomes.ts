import type { Payload, PayloadCodec } from "@temporalio/common";
import { Worker } from "@temporalio/worker";
import { z } from "zod";
import { WORKFLOW_BUNDLE } from "../../server/workflow-bundle.ts";
import { testPayloads } from "../support/payloads.ts";
import { fromBase64, fromRecord, type RecordedHistory, sealedPayloads, workflowIdOf } from "./histories.ts";

/**
 * What updates were answered, and what today's code answers them. A replay compares commands alone, and an answer is none: code that decides
 * otherwise, but begins the same timers and activities, replays without an error.
 */
const completed = z.looseObject({
  outcome: z.looseObject({ success: z.looseObject({ payloads: sealedPayloads }) }),
});

/** Every answer of an actor has one. */
const answer = z.looseObject({
  answers: z.string(),
  result: z.looseObject({ replies: z.array(z.unknown()) }),
});

/** The answers that a history holds, in the order in which they were given. */
export async function recordedOutcomes({ events }: RecordedHistory): Promise<readonly unknown[]> {
  const sealed = events.flatMap((event) => {
    const attributes = event["workflowExecutionUpdateCompletedEventAttributes"];
    return attributes === undefined ? [] : completed.parse(attributes).outcome.success.payloads;
  });
  const { codec } = testPayloads();
  return (await codec.decode(sealed.map(fromBase64))).map(valueOf);
}

/** The answers that today's code gives as the history is replayed, and what the replay ends with; null: it goes through. */
export async function replayedOutcomes(
  history: RecordedHistory,
): Promise<{ readonly outcomes: readonly unknown[]; readonly error: unknown }> {
  const outcomes: unknown[] = [];
  // Whatever a workflow says goes through its worker's codecs, so this is where its answers are heard.
  const listening: PayloadCodec = {
    encode(payloads) {
      for (const each of payloads) {
        const value = valueOf(each);
        if (answer.safeParse(value).success) outcomes.push(value);
      }
      return Promise.resolve(payloads);
    },
    decode: (payloads) => Promise.resolve(payloads),
  };
  const { dataConverter } = testPayloads().worker;
  const payloadCodecs = [listening, ...(dataConverter.payloadCodecs ?? [])];
  const options = { workflowBundle: WORKFLOW_BUNDLE, dataConverter: { ...dataConverter, payloadCodecs } };
  const error: unknown = await Worker.runReplayHistory(
    options,
    fromRecord(history),
    workflowIdOf(history),
  ).then(
    () => null,
    (failure: unknown) => failure,
  );
  return { outcomes, error };
}

function valueOf({ data }: Payload): unknown {
  const text = Buffer.from(data ?? []).toString();
  return text.startsWith("{") ? JSON.parse(text) : null;
}
