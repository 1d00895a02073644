import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { PACKAGE_ROOT } from "../../src/lib/package-root.ts";
import { compile, type Compiled, readSources } from "./compiler.ts";

const ARTIFACTS_FOLDER = path.join(PACKAGE_ROOT, "contracts", "artifacts");
const INDEX_HEADER = `// Made by \`npm run contracts\` from contracts/**/*.sol; not to be edited. UNAUDITED contracts.

/** A compiled contract, as viem takes it. */
export interface ContractArtifact {
  readonly contractName: string;
  readonly abi: readonly unknown[];
  /** The init code without the constructor's arguments. */
  readonly bytecode: \`0x\${string}\`;
  readonly deployedBytecode: \`0x\${string}\`;
}
`;

/** The files of `contracts/artifacts` by name, as the sources of this checkout make them. */
export async function renderArtifacts(): Promise<ReadonlyMap<string, string>> {
  const contracts = compile(await readSources()).toSorted((a, b) =>
    a.contractName < b.contractName ? -1 : 1,
  );
  const files = contracts.map((contract): [string, string] => [
    `${contract.contractName}.json`,
    json(contract),
  ]);
  return new Map([...files, ["index.ts", [INDEX_HEADER, ...contracts.map(declaration)].join("\n")]]);
}

/** The names of the artifacts that are missing, differ from the sources, or come from none. */
export async function staleArtifacts(): Promise<readonly string[]> {
  return differing(await renderArtifacts());
}

async function differing(rendered: ReadonlyMap<string, string>): Promise<readonly string[]> {
  const names = new Set([...rendered.keys(), ...(await readdir(ARTIFACTS_FOLDER).catch(() => []))]);
  const texts = await Promise.all(
    [...names].map(async (name): Promise<[string, string | undefined]> => [
      name,
      await readFile(path.join(ARTIFACTS_FOLDER, name), "utf8").catch(() => undefined),
    ]),
  );
  return texts.filter(([name, text]) => text !== rendered.get(name)).map(([name]) => name);
}

/** Makes `contracts/artifacts` what the sources say, and answers the names of the files that changed. */
export async function writeArtifacts(): Promise<readonly string[]> {
  const rendered = await renderArtifacts();
  const stale = await differing(rendered);
  await mkdir(ARTIFACTS_FOLDER, { recursive: true });
  for (const name of stale) {
    const file = path.join(ARTIFACTS_FOLDER, name);
    const text = rendered.get(name);
    await (text === undefined ? rm(file) : writeFile(file, text));
  }
  return stale;
}

const json = ({ contractName, abi, bytecode, deployedBytecode }: Compiled): string =>
  `${JSON.stringify({ contractName, abi, bytecode, deployedBytecode }, null, 2)}\n`;

/** An ABI entry a line: `as const` gives viem the types of calls, events and errors. */
function declaration({ contractName, abi, bytecode, deployedBytecode }: Compiled): string {
  const name = contractName.charAt(0).toLowerCase() + contractName.slice(1);
  return `export const ${name}Abi = [
${abi.map((entry) => `  ${JSON.stringify(entry)},`).join("\n")}
] as const;

export const ${name}Artifact = {
  contractName: ${JSON.stringify(contractName)},
  abi: ${name}Abi,
  bytecode: "${bytecode}",
  deployedBytecode: "${deployedBytecode}",
} as const satisfies ContractArtifact;
`;
}
