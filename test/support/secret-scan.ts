import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { Client, Connection } from "@temporalio/client";
import { createLogger } from "../../src/lib/logger.ts";
import type { RunningEngines } from "../../src/engines/start.ts";
import { connectMongo } from "../../src/store/connections.ts";
import { notedSecrets, scanForSecrets } from "./secrets.ts";

/** In each place several, since a database's compression may break one apart. */
const PLANTED_PER_PLACE = 8;
const PLACES = ["MongoDB", "Temporal", "the log"] as const;
type Place = (typeof PLACES)[number];

export type Planted = Readonly<Record<Place, readonly string[]>>;

const values = (): string[] =>
  Array.from({ length: PLANTED_PER_PLACE }, () => `planted-${randomBytes(16).toString("hex")}`);

/** Puts values where secrets must not be, so that the scan at the end shows that it would have found one there. */
export async function plant(engines: RunningEngines, logDir: string): Promise<Planted> {
  const planted = { MongoDB: values(), Temporal: values(), "the log": values() };
  const uri = new URL(engines.mongodb.uri);
  uri.pathname = "/planted";
  const { mongo, db } = await connectMongo(uri.toString());
  await db.collection("planted").insertMany(planted.MongoDB.map((value) => ({ value })));
  await mongo.close();
  const connection = await Connection.connect({ address: engines.temporal.address });
  const client = new Client({ connection, namespace: engines.temporal.namespace });
  const options = { taskQueue: "nobody", workflowId: "planted", args: [planted.Temporal] };
  await (await client.workflow.start("planted", options)).terminate("it was only to be written down");
  await connection.close();
  const logger = createLogger({ level: "info", file: join(logDir, "planted.log") });
  for (const value of planted["the log"]) logger.info({ value }, "planted");
  return planted;
}

/**
 * Checked over the files of the whole run: no raw key, password, TOTP secret or token in
 * MongoDB's files, in Temporal's, or in a log. Answers what is wrong, in lines; none: nothing.
 */
export async function scanRun(
  dataDir: string,
  planted: Planted,
  say: (line: string) => void,
): Promise<string[]> {
  const secrets = notedSecrets();
  const all = PLACES.flatMap((place) => planted[place]);
  const { fileCount, leaks, planted: found, sizeBytes } = await scanForSecrets(dataDir, secrets, all);
  const size = `${(sizeBytes / 1024 / 1024).toFixed(0)} MiB in ${fileCount} files`;
  say(`  secrets: looked through ${size} for ${secrets.size} of them, and for everything of their form`);
  const blind = PLACES.filter((place) => !planted[place].some((value) => found.has(value)));
  return [
    ...leaks.slice(0, 20).map(({ file, what }) => `${what} lies in ${file}`),
    ...blind.map((place) => `the scan does not find what was planted in ${place}`),
  ];
}
