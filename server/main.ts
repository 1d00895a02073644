import { main } from "./run.ts";

// The one entry of every role: `start` (all in one, embedded engines), `server`, `worker`.
await main(process.argv[2] ?? "start", process.env);
