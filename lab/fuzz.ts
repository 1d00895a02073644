import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Caller } from "./fuzz/credentials.ts";
import { readOptions } from "./fuzz/options.ts";
import { fuzz } from "./fuzz/run.ts";
import { ensureSchemathesis } from "./fuzz/schemathesis.ts";
import { createOrganization, startService } from "./fuzz/service.ts";

// `npm run fuzz`: requests by the OpenAPI document, valid and invalid, as each kind of caller, against a service of their own.
const options = readOptions(process.argv);
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const fuzzer = await ensureSchemathesis(process.env, say);
if (typeof fuzzer !== "string") {
  process.stderr.write(`error: ${fuzzer.reason}\n`);
  process.exit(1);
}
const command: string = fuzzer;
const folder = await mkdtemp(join(tmpdir(), "spending-control-fuzz-"));
const service = await startService(join(folder, "data"));
let isClean = true;
try {
  for (const seed of options.seeds) for (const caller of options.callers) await pass(caller, seed);
} finally {
  await service.stop();
  if (!options.keep) await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}
say(isClean ? "The service does what its document says." : "The service and its document differ.");
process.exit(isClean ? 0 : 1);

async function pass(caller: Caller, seed: number): Promise<void> {
  const { baseUrl } = service;
  const owner = await createOrganization(service);
  const place = join(folder, `${caller.replaceAll(" ", "-")}-${String(seed)}`);
  const { maxExamples, seconds: maxSeconds } = options;
  const began = performance.now();
  const found = await fuzz({
    baseUrl,
    command,
    folder: place,
    caller,
    owner,
    seed,
    maxSeconds,
    maxExamples,
  });
  const seconds = Math.round((performance.now() - began) / 1_000);
  const failures = found.failures === null ? "broke off" : `${String(found.failures)} failures`;
  say(
    `seed ${String(seed)}, ${caller}: ${String(found.requests)} requests in ${String(seconds)} s, ${failures}`,
  );
  if (found.failures === 0) return;
  isClean = false;
  say(found.output);
}
