import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { format } from "prettier";
import { PACKAGE_ROOT } from "../../../src/lib/package-root.ts";
import { type Listed, lists } from "./list.ts";

// `npm run mutants` writes docs/mutants.md.
const FILE = join(PACKAGE_ROOT, "docs", "mutants.md");

const INTRO = `# Mutants

A test that can't fail proves nothing. So faults are put into the domain, one at a time, of the kind that such services have had or
that a slip of the hand would make, and a book has to object to each. There are two books, each kept by somebody who knows the contract
and not the code: one of a project's ledger (\`test/domain/ledger/\`), which lists every payment and adds up every total anew, and one
of an agent's life (\`test/domain/life/\`). They are the same ones that watch the random tests of the real domain.

The faults are in \`test/domain/mutants/\`, and \`test/domain/mutants.test.ts\` fails when one goes unnoticed. Seeds are fixed, so each is
noticed at the same place every time. This page is written by \`npm run mutants\`.
`;

const rowsOf = ({ faults, what }: Listed): string[] =>
  faults.map(({ fault, kill }) => `| ${fault} | ${what} | ${kill()?.after ?? "never"} |`);

const rows = lists.flatMap(rowsOf);
const head = "| Fault | In | Noticed at |\n| --- | --- | --- |";
await writeFile(FILE, await format(`${INTRO}\n${head}\n${rows.join("\n")}\n`, { parser: "markdown" }));
process.stdout.write(`${rows.length} faults\n`);
