import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { PASSWORD_COST } from "../../src/identity/passwords.ts";
import { PACKAGE_ROOT } from "../../src/lib/package-root.ts";
import { cleanEnvironment } from "../support/process.ts";
import { startTestService, type TestService } from "../support/service.ts";

/** A command of the tour, and what the tutorial says that it prints. */
interface Step {
  readonly command: string;
  readonly answers: string | null;
}

/** Lines of one command go on until the next blank line, comment or new command; `# {` tells what it answers. */
function stepsIn(tutorial: string): Step[] {
  const blocks = [...tutorial.matchAll(/^```bash\n([\s\S]*?)^```$/gm)].map(([, block = ""]) => block);
  return blocks.flatMap((block) => {
    const steps: Step[] = [];
    let command = "";
    const end = (answers: string | null): void => {
      if (command.trim() !== "") steps.push({ command, answers });
      command = "";
    };
    for (const line of block.split("\n")) {
      if (line.startsWith("# {")) end(line.slice(2));
      else if (line === "") end(null);
      else if (!line.startsWith("# ")) command += `${line}\n`;
    }
    end(null);
    return steps;
  });
}

const MARK = "=== end of step";

/** Everything between the ellipses stands in what was printed, in this order. */
function expectAnswer(printed: string, { answers, command }: Step): void {
  if (answers === null) return;
  let at = 0;
  for (const piece of answers.split("…")) {
    const found = printed.indexOf(piece, at);
    expect(found, `${command}printed\n${printed}\nand not, from there on: ${piece}`).to.be.at.least(at);
    at = found + piece.length;
  }
}

describe("the tour by hand", () => {
  let service: TestService;
  let folder: string;
  /** By how many milliseconds the clocks of the service and of the shell's codes are ahead. */
  let aheadFile: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "spending-control-tour-"));
    aheadFile = join(folder, "ahead");
    await writeFile(aheadFile, "0");
    service = await startTestService({
      // As the command that makes the organization hashes.
      passwordCost: PASSWORD_COST,
      clock: () => new Date(Date.now() + Number(readFileSync(aheadFile, "utf8"))),
    });
  });
  after(async () => {
    await service.stop();
    await rm(folder, { recursive: true });
  });

  it("the tutorial's commands, pasted line by line, print what stands below them", async () => {
    const tutorial = await readFile(join(PACKAGE_ROOT, "docs", "tutorial.md"), "utf8");
    const steps = stepsIn(tutorial);
    expect(steps.length).to.be.greaterThan(20);
    const script = [
      "set -euo pipefail",
      // Instead of waiting, the clocks go ahead.
      'sleep() { echo $(($(cat "$AHEAD_FILE") + 1000 * $1)) > "$AHEAD_FILE"; }',
      ...steps.flatMap(({ command }, index) => [command, `echo; echo "${MARK} ${index}"`]),
    ]
      .join("\n")
      .replaceAll("http://localhost:8545", "localhost:8545")
      .replaceAll("localhost:8545", new URL(process.env["TEST_EVM_RPC_URL"] ?? "").host);
    const ahead = `import { readFileSync } from "node:fs"; const { now } = Date;
      const ahead = Number(readFileSync(process.env.AHEAD_FILE, "utf8")); Date.now = () => now() + ahead;`;
    const shell = spawn("bash", ["-c", `exec 2>&1\n${script}`], {
      cwd: PACKAGE_ROOT,
      env: {
        ...cleanEnvironment(),
        ...service.env,
        BASE: service.baseUrl,
        AHEAD_FILE: aheadFile,
        NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(ahead)}`,
      },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const ended = new Promise((resolve) => shell.once("exit", resolve));
    const printed = await text(shell.stdout);
    expect(await ended, printed).to.equal(0);
    const parts = printed.split(new RegExp(`^${MARK} \\d+$`, "m"));
    for (const [index, step] of steps.entries()) expectAnswer(parts[index] ?? "", step);
  });
});
