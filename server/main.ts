#!/usr/bin/env node

/** The one entry of the program; each role loads what it needs by itself. */
const USAGE = `agent-spending-control [role]

  start     everything on this machine, with embedded engines (the default)
  server    REST and MCP, on engines that the environment names
  worker    the workflows, on engines that the environment names
  admin     commands for operators; admin --help lists them
`;

const [role = "start", ...args] = process.argv.slice(2);
const asksForHelp = (word: string): boolean => ["--help", "-h", "help"].includes(word);
if (asksForHelp(role) || (role !== "admin" && args.some(asksForHelp))) {
  process.stdout.write(USAGE);
} else if (role === "admin") {
  const { runAdminCommand } = await import("./admin/commands.ts");
  await runAdminCommand(args);
} else if (args.length > 0) {
  process.stderr.write(
    `error: \`${role}\` takes no arguments; its settings come from the environment (README.md).\n`,
  );
  process.exitCode = 1;
} else {
  const { main } = await import("./run.ts");
  await main(role, process.env);
}
