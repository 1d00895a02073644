import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Payload } from "@temporalio/common";
import proto from "@temporalio/proto";
import { z } from "zod";
import { PACKAGE_ROOT } from "../../src/lib/package-root.ts";

export const HISTORIES_DIRECTORY = join(PACKAGE_ROOT, "test", "histories");

const event = z.looseObject({
  eventId: z.string(),
  eventType: z.string(),
});
const history = z.looseObject({ events: z.array(event).min(1) });
const started = z.looseObject({
  workflowId: z.string(),
  workflowType: z.looseObject({ name: z.string() }),
});

export type RecordedEvent = z.infer<typeof event>;
export type RecordedHistory = z.infer<typeof history>;

export interface Recording {
  readonly name: string;
  readonly workflowType: string;
  readonly text: string;
  readonly history: RecordedHistory;
}

const { History } = proto.temporal.api.history.v1;
type History = proto.temporal.api.history.v1.IHistory;

/**
 * A history as a JSON value, and back, by way of the protocol's own classes: the SDK's `historyToJSON` fails wherever
 * npm gives its packages a protobufjs each, as it does here.
 */
export const toRecord = (fetched: History): Record<string, unknown> =>
  History.toObject(History.fromObject(fetched), { longs: String, enums: String, bytes: String });

export const fromRecord = (recorded: RecordedHistory): History => History.fromObject(recorded);

/** The committed histories, by name. */
export async function recordings(): Promise<readonly Recording[]> {
  const files = (await readdir(HISTORIES_DIRECTORY)).toSorted();
  return Promise.all(files.map((file) => recording(file.replace(/\.json$/, ""))));
}

export async function recording(name: string): Promise<Recording> {
  const text = await readFile(join(HISTORIES_DIRECTORY, `${name}.json`), "utf8");
  const parsed = history.parse(JSON.parse(text));
  return { name, workflowType: startOf(parsed).workflowType.name, text, history: parsed };
}

const startOf = ({ events }: RecordedHistory) =>
  started.parse(events[0]?.["workflowExecutionStartedEventAttributes"]);

/** Payloads are bound to it. */
export const workflowIdOf = (recorded: RecordedHistory): string => startOf(recorded).workflowId;

export const payload = z.looseObject({ data: z.string(), metadata: z.record(z.string(), z.string()) });
export const sealedPayloads = z.array(payload).min(1);

export const fromBase64 = ({ data, metadata }: z.output<typeof payload>): Payload => ({
  data: Buffer.from(data, "base64"),
  metadata: Object.fromEntries(
    Object.entries(metadata).map(([key, value]) => [key, Buffer.from(value, "base64")]),
  ),
});

export const toBase64 = ({ data, metadata }: Payload): z.output<typeof payload> => ({
  data: Buffer.from(data ?? []).toString("base64"),
  metadata: Object.fromEntries(
    Object.entries(metadata ?? {}).map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
  ),
});
