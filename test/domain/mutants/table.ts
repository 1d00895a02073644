import { writeFile } from "node:fs/promises";
import { type Listed, lists } from "./list.ts";

// `node --import tsx test/domain/mutants/table.ts` writes docs/mutants.md.
const FILE = new URL("../../../docs/mutants.md", import.meta.url);

const INTRO = `# Mutants

A test that never fails proves nothing. So faults are put into the domain one at a time (\`test/domain/mutants/\`), of the kind that
such services have had or that a slip of the hand would make, and the auditor (\`scripts/simulation/audit/\`) has to object to each. It
is the one that also watches the random tests: plain sequences of commands to one agent (\`test/domain/sequences.test.ts\`), and a whole
project in simulated time ([simulation.md](simulation.md)). \`test/domain/mutants.test.ts\` does this at fixed seeds; what it does not
notice, fails. The last column says how much had to happen until it did. Written by \`node --import tsx test/domain/mutants/table.ts\`.
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
const head = "| Fault | Noticed in the test of | After |\n| --- | --- | --- |";
await writeFile(FILE, `${INTRO}\n${head}\n${rows.join("\n")}\n`);
process.stdout.write(`${rows.length} faults\n`);
