#!/usr/bin/env node

/**
 * The one entry of the program: a role (`start`, the default: all in one with embedded engines; `server`; `worker`), or
 * `admin` with one of its commands.
 */
const [role = "start", ...args] = process.argv.slice(2);
if (role === "admin") {
  const { runAdminCommand } = await import("./admin/commands.ts");
  await runAdminCommand(args);
}
const { main } = await import("./run.ts");
await main(role, process.env);
