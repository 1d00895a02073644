import { heedSignals } from "./stopping.ts";

/** The program: each role loads what it needs by itself. It runs as soon as it is loaded. */
const USAGE = `agent-spending-control [role]

  start     everything on this machine, with embedded engines (the default)
  server    REST and MCP, on engines that the environment names
  worker    the workflows, on engines that the environment names
  admin     commands for operators; admin --help lists them
`;

const isHelp = (word: string): boolean => ["--help", "-h", "help"].includes(word);

async function program([role = "start", ...args]: readonly string[]): Promise<void> {
  if (isHelp(role) || (role !== "admin" && args.some(isHelp))) {
    process.stdout.write(USAGE);
  } else if (role === "admin") {
    const { runAdminCommand } = await import("./admin/commands.ts");
    await runAdminCommand(args);
  } else if (args.length > 0) {
    process.stderr.write(
      `error: \`${role}\` takes no arguments; its settings come from the environment (docs/configuration.md).\n`,
    );
    process.exitCode = 1;
  } else {
    const stopping = heedSignals();
    const { main } = await import("./run.ts");
    await main(role, process.env, {}, stopping);
  }
}

// Not awaited at the top: the program is a part of a bundle, whose parts can't wait while they are loaded.
void program(process.argv.slice(2));
