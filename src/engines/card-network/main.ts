import { mkdirSync } from "node:fs";
import { parseArgs } from "node:util";
import { startCardNetwork } from "./server.ts";

const OWNER_ONLY_FOLDER = 0o700;

/** The simulated card network as a separate process. */
const { values } = parseArgs({
  options: {
    port: { type: "string", default: "0" },
    books: { type: "string" },
    seed: { type: "string", default: "1" },
  },
});
const folder = values.books ?? null;
if (folder !== null) mkdirSync(folder, { recursive: true, mode: OWNER_ONLY_FOLDER });
const running = await startCardNetwork({ port: Number(values.port), folder, seed: Number(values.seed) });
process.stdout.write(`listening on ${running.url}\n`);
process.once("SIGTERM", () => process.exit(0));
process.once("SIGINT", () => process.exit(0));
