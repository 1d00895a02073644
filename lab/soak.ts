import { spawn } from "node:child_process";
import { Command, InvalidArgumentError } from "commander";
import { builtFile, PACKAGE_ROOT } from "../src/lib/package-root.ts";

// `npm run soak`: the long ones, by the hundred, of what `npm test` tries in a short pass each.

/** Test files with random workloads, kills and outages; with TEST_SOAK they go on for long. */
const LONG_TESTS = [
  "test/approvals/approval-page.test",
  "test/architecture/changed",
  "test/audit/outbox",
  "test/build/bundle",
  "test/chaos",
  "test/containers/archive-races",
  "test/containers/caps",
  "test/containers/large-team",
  "test/containers/many-stops",
  "test/authorization",
  "test/contracts/wallet-model",
  "test/contracts/wallet-mutants",
  "test/dashboard",
  "test/domain",
  "test/engines/anvil",
  "test/engines/reach",
  "test/agents/archive-races",
  "test/agents/create",
  "test/agents/life",
  "test/agents/machine-archive.test",
  "test/http/fuzz",
  "test/http/reference-page",
  "test/identity/passkeys-browser",
  "test/http/list-reads",
  "test/lists",
  "test/mcp/check-payment",
  "test/payments/reconcile.test",
  "test/pocket",
  "test/rails",
  "test/outage",
  "test/restart",
  "test/secrets/rotation",
  "test/wallets/wallet-silent-chain",
  "test/workflows",
];
const CHAOS_ROUNDS = 200;
const CARD_ROUNDS = 100;
const SIMULATION_SECONDS = 900;
const SCALE_MAX = 100;

interface Stage {
  readonly name: string;
  readonly file: string;
  readonly args: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

interface Outcome {
  readonly name: string;
  readonly passed: boolean;
  readonly seconds: number;
}

const stagesOf = (scale: number): readonly Stage[] => [
  {
    name: "tests",
    file: "test/support/run.ts",
    args: LONG_TESTS,
    env: { TEST_SOAK: "1", TEST_LANES: "2" },
  },
  { name: "simulation", file: "lab/simulate.ts", args: ["--seconds", whole(SIMULATION_SECONDS * scale)] },
  { name: "mutants", file: "lab/mutants.ts", args: [] },
  { name: "interop", file: "lab/interop.ts", args: [] },
  { name: "demo", file: "lab/demo.ts", args: [] },
  { name: "chaos", file: "lab/chaos.ts", args: ["--rounds", whole(CHAOS_ROUNDS * scale), "--keep"] },
  {
    name: "cards",
    file: "lab/chaos.ts",
    args: ["--cards", "--rounds", whole(CARD_ROUNDS * scale), "--keep"],
  },
  { name: "cluster", file: "lab/cluster.ts", args: ["--keep"] },
];

const whole = (number: number): string => String(Math.max(1, Math.round(number)));

interface Flags {
  readonly only?: readonly string[];
  readonly scale: number;
}

function positive(value: string): number {
  const number = Number(value);
  if (number > 0 && number <= SCALE_MAX) return number;
  throw new InvalidArgumentError(`must be a number above 0, at most ${String(SCALE_MAX)}`);
}

const { only, scale } = new Command("soak")
  .description("Runs the random tests, kills and outages for hours; each prints its seed. Ctrl-C ends it.")
  .option(
    "--only <stages...>",
    `of ${stagesOf(1)
      .map(({ name }) => name)
      .join(", ")}`,
  )
  .option("--scale <n>", "how much of chaos and simulation: 0.1 for a look, 10 for a weekend", positive, 1)
  .parse()
  .opts<Flags>();

const stages = stagesOf(scale).filter(({ name }) => only?.includes(name) ?? true);
if (stages.length === 0) {
  process.stderr.write("error: no stage has that name; see --help\n");
  process.exit(1);
}
const outcomes: Outcome[] = [];
for (const [index, stage] of stages.entries()) {
  process.stdout.write(`\n=== ${stage.name} (${String(index + 1)} of ${String(stages.length)})\n`);
  outcomes.push(await run(stage));
}
process.stdout.write("\n=== summary\n");
for (const { name, passed, seconds } of outcomes) {
  process.stdout.write(`${name.padEnd(12)} ${passed ? "passed" : "FAILED"} after ${String(seconds)} s\n`);
}
process.exit(outcomes.every(({ passed }) => passed) ? 0 : 1);

/** One stage as a process of its own, which prints for itself. */
async function run({ args, env, file, name }: Stage): Promise<Outcome> {
  const began = performance.now();
  const child = spawn(process.execPath, [builtFile(file), ...args], {
    cwd: PACKAGE_ROOT,
    env: { ...process.env, ...env },
    stdio: "inherit",
  });
  const code = await new Promise<number | null>((resolve) => child.once("exit", resolve));
  return { name, passed: code === 0, seconds: Math.round((performance.now() - began) / 1_000) };
}
