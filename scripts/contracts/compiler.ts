import { readFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import solc from "solc";
import { z } from "zod";
import { PACKAGE_ROOT } from "../../src/lib/package-root.ts";

/** The folder of our contracts, as the names of their sources begin. */
export const CONTRACTS_FOLDER = "contracts";
const PROJECT_FOLDER = PACKAGE_ROOT;
const OPENZEPPELIN = "@openzeppelin/contracts/";

/** What makes the same bytecode of the same sources on every machine: no paths, no hash of the metadata. */
const SETTINGS = {
  evmVersion: "cancun",
  optimizer: { enabled: true, runs: 200 },
  metadata: { bytecodeHash: "none" },
  outputSelection: { "*": { "*": ["abi", "evm.bytecode.object", "evm.deployedBytecode.object"] } },
};

/** Solidity sources by their names, such as `contracts/AgentWallet.sol`. */
export type Sources = Readonly<Record<string, string>>;

const parameterSchema = z.looseObject({
  name: z.string(),
  type: z.string(),
  internalType: z.string().optional(),
});
const abiSchema = z.array(
  z.looseObject({
    type: z.enum(["function", "event", "error", "constructor", "fallback", "receive"]),
    name: z.string().optional(),
    inputs: z.array(parameterSchema).optional(),
  }),
);
const codeSchema = z.object({ object: z.string().regex(/^([0-9a-f]{2})*$/) });
const outputSchema = z.object({
  errors: z.array(z.object({ severity: z.string(), formattedMessage: z.string() })).default([]),
  contracts: z
    .record(
      z.string(),
      z.record(
        z.string(),
        z.object({ abi: abiSchema, evm: z.object({ bytecode: codeSchema, deployedBytecode: codeSchema }) }),
      ),
    )
    .default({}),
});

/** A compiled contract. An interface or an abstract contract has the bytecode `0x`. */
export interface Compiled {
  readonly source: string;
  readonly contractName: string;
  readonly abi: z.infer<typeof abiSchema>;
  readonly bytecode: `0x${string}`;
  readonly deployedBytecode: `0x${string}`;
}

/** Our contracts' sources, from this checkout. */
export async function readSources(): Promise<Sources> {
  const folder = path.join(PROJECT_FOLDER, CONTRACTS_FOLDER);
  const files = (await readdir(folder, { recursive: true }))
    .filter((file) => file.endsWith(".sol"))
    .toSorted();
  const texts = files.map(async (file): Promise<[string, string]> => [
    path.posix.join(CONTRACTS_FOLDER, file.split(path.sep).join("/")),
    await readFile(path.join(folder, file), "utf8"),
  ]);
  return Object.fromEntries(await Promise.all(texts));
}

/**
 * Compiles the sources and OpenZeppelin's that they import; answers the contracts of the given sources only.
 *
 * Throws with the compiler's messages on any error or warning: a warning in a contract is a fault.
 */
export function compile(sources: Sources): readonly Compiled[] {
  const input = {
    language: "Solidity",
    sources: Object.fromEntries(Object.entries(sources).map(([name, content]) => [name, { content }])),
    settings: SETTINGS,
  };
  const answer: unknown = solc.compile(JSON.stringify(input), { import: readImport });
  const { errors, contracts } = outputSchema.parse(JSON.parse(z.string().parse(answer)));
  if (errors.length > 0) throw new Error(errors.map(({ formattedMessage }) => formattedMessage).join("\n"));
  return Object.entries(contracts)
    .filter(([source]) => source in sources)
    .flatMap(([source, named]) =>
      Object.entries(named).map(([contractName, { abi, evm }]): Compiled => ({
        source,
        contractName,
        abi,
        bytecode: `0x${evm.bytecode.object}`,
        deployedBytecode: `0x${evm.deployedBytecode.object}`,
      })),
    );
}

const packages = createRequire(import.meta.url);

/** What solc asks for while it compiles: OpenZeppelin's sources, and nothing else of this machine. */
function readImport(name: string): { contents: string } | { error: string } {
  if (!name.startsWith(OPENZEPPELIN) || name.split("/").includes(".."))
    return { error: `${name} is not ours` };
  const folder = path.dirname(packages.resolve(`${OPENZEPPELIN}package.json`));
  return { contents: readFileSync(path.join(folder, name.slice(OPENZEPPELIN.length)), "utf8") };
}
