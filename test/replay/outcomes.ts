import type { Payload, PayloadCodec } from "@temporalio/common";
import { Worker } from "@temporalio/worker";
import { z } from "zod";
import { WORKFLOW_BUNDLE } from "../../server/workflow-bundle.ts";
import { compression } from "../../src/lib/payload-compression.ts";
import { fromRecord, type RecordedHistory } from "./histories.ts";

/**
 * What updates were answered, and what today's code answers them. A replay compares commands alone, and an answer is none: code that decides
 * otherwise, but begins the same timers and activities, replays without an error.
 */
const payload = z.looseObject({ data: z.string(), metadata: z.record(z.string(), z.string()) });
const completed = z.looseObject({
  outcome: z.looseObject({ success: z.looseObject({ payloads: z.array(payload).min(1) }) }),
});

/** Every answer of an actor has one. */
const answer = z.looseObject({ replies: z.array(z.unknown()) });

/** The answers that a history holds, in the order in which they were given. */
export async function recordedOutcomes({ events }: RecordedHistory): Promise<readonly unknown[]> {
  const payloads = events.flatMap((event) => {
    const attributes = event["workflowExecutionUpdateCompletedEventAttributes"];
    return attributes === undefined ? [] : completed.parse(attributes).outcome.success.payloads;
  });
  const encoded = payloads.map(({ data, metadata }) => ({
    data: Buffer.from(data, "base64"),
    metadata: Object.fromEntries(
      Object.entries(metadata).map(([key, value]) => [key, Buffer.from(value, "base64")]),
    ),
  }));
  return (await compression.decode(encoded)).map(valueOf);
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
  const dataConverter = { payloadCodecs: [listening, compression] };
  const options = { workflowBundle: WORKFLOW_BUNDLE, dataConverter };
  const error: unknown = await Worker.runReplayHistory(options, fromRecord(history)).then(
    () => null,
    (failure: unknown) => failure,
  );
  return { outcomes, error };
}

function valueOf({ data }: Payload): unknown {
  const text = Buffer.from(data ?? []).toString();
  return text.startsWith("{") ? JSON.parse(text) : null;
}
