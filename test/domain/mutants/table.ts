import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { format } from "prettier";
import { PACKAGE_ROOT } from "../../../src/lib/package-root.ts";
import { type Listed, lists } from "./list.ts";

// `npm run mutants` writes docs/mutants.md.
const FILE = join(PACKAGE_ROOT, "docs", "mutants.md");

const INTRO = `# Mutants

A test that can't fail proves nothing. So faults are put into the domain, one at a time, of the kind that such services have had or
that a slip of the hand would make, and the auditor has to object to each. It is the same auditor (\`scripts/simulation/audit/\`) that
watches the random tests: sequences of commands to one agent (\`test/domain/sequences.test.ts\`), and a whole project in simulated time
([simulation.md](simulation.md)).

The faults are in \`test/domain/mutants/\`, and \`test/domain/mutants.test.ts\` fails when one goes unnoticed. Seeds are fixed, so each is
noticed at the same place every time. This page is written by \`npm run mutants\`.
`;

async function rowsOf({ kill, mutants, what }: Listed): Promise<string[]> {
  const rows: string[] = [];
  for (const mutant of mutants) {
    const killed = await kill(mutant);
    rows.push(`| ${mutant.fault} | ${what} | ${killed?.after ?? "never"} |`);
  }
  return rows;
}

const rows: string[] = [];
for (const list of lists) rows.push(...(await rowsOf(list)));
const head = "| Fault | Noticed by the test of | At |\n| --- | --- | --- |";
await writeFile(FILE, await format(`${INTRO}\n${head}\n${rows.join("\n")}\n`, { parser: "markdown" }));
process.stdout.write(`${rows.length} faults\n`);
