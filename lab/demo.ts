import { Child, ServiceProcess } from "../test/support/process.ts";

// A stage of `npm run soak`: starts a service on a folder of its own, and plays `npm run demo` against it.

const DEMO_MS = 300_000;
/** Lines that the story prints about its purchase and its card payment, and its last one. */
const TOLD = [
  /^agent +repeated the call: the same goods, paid once$/m,
  /^agent +reads `approved`: [\d.]+ USD were captured, the rest is free again$/m,
  /\nAll steps passed\.\n$/,
];

const service = await ServiceProcess.create();
try {
  await service.start();
  const demo = Child.node("scripts/demo.ts", [], service.env);
  const { code } = await demo.exit(DEMO_MS).finally(() => {
    process.stdout.write(demo.stdout);
    process.stderr.write(demo.stderr);
  });
  const missing = TOLD.filter((line) => !line.test(demo.stdout));
  for (const line of missing) process.stderr.write(`the demo did not print ${String(line)}\n`);
  process.exitCode = code === 0 && missing.length === 0 ? 0 : 1;
} finally {
  await service.child.end("SIGTERM");
  await service.dispose();
}
process.exit();
