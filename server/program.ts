import { heedSignals } from "./stopping.ts";

/** The program, which runs when loaded. Each role loads only what it needs. */
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

// Not awaited at the top level: modules of a bundle cannot wait while they load.
void program(process.argv.slice(2));
