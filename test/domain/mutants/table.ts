import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { format } from "prettier";
import { PACKAGE_ROOT } from "../../../src/lib/package-root.ts";
import { AGENTS_LIFE, type Listed, lists } from "./list.ts";

// `npm run mutants` writes docs/mutants.md and docs/mutants-agent.md.
const DOCS = join(PACKAGE_ROOT, "docs");

const INTRO = `# Mutants

A test that can't fail proves nothing. So the tests put faults into the domain's code, one at a time: faults that services of this kind have had, or
that a slip of the hand would make. Two reference models, written from the contract and not from the code, must notice each fault: one of a
project's ledger (\`test/domain/ledger/\`), which keeps every payment and recomputes every total, and one of an agent's life
(\`test/domain/life/\`). The same models check the random tests of the real code.

The faults are in \`test/domain/mutants/\`; \`test/domain/mutants.test.ts\` fails when one goes unnoticed. Each fault is listed with the random run that
noticed it; seeds are fixed, so it is the same every time. \`npm run mutants\` writes this page and [mutants-agent.md](mutants-agent.md),
which has the faults in an agent's life.
`;

const AGENT_INTRO = `# Mutants: an agent's life

The faults that are put into the code of an agent's actor, each with the random run that noticed it. [mutants.md](mutants.md) says how.
`;

const listOf = ({ faults }: Listed): string =>
  faults.map(({ fault, kill }) => `- ${fault} (${kill()?.after ?? "never"})`).join("\n");

const sectionOf = (listed: Listed): string =>
  `## ${listed.what.charAt(0).toUpperCase()}${listed.what.slice(1)}\n\n${listOf(listed)}\n`;

const written = async (name: string, parts: readonly string[]): Promise<void> =>
  writeFile(join(DOCS, name), await format(parts.join("\n"), { parser: "markdown" }));

const isOfAgent = ({ what }: Listed): boolean => what === AGENTS_LIFE;
await written("mutants.md", [INTRO, ...lists.filter((listed) => !isOfAgent(listed)).map(sectionOf)]);
await written("mutants-agent.md", [AGENT_INTRO, ...lists.filter(isOfAgent).map(listOf)]);
process.stdout.write(`${lists.reduce((sum, { faults }) => sum + faults.length, 0)} faults\n`);
