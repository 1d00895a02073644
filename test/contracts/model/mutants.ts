import type { Hex } from "viem";
import { compile, readSources } from "../../../scripts/contracts/compiler.ts";

const SOURCE = "contracts/AgentWallet.sol";

/** A fault in the wallet: `instead` in the place of the one occurrence of `text`, and how it is found out. */
export interface Mutant {
  readonly fault: string;
  readonly text: string;
  readonly instead: string;
  readonly complaint: RegExp;
  /** Where another seed than the common one comes to it sooner. */
  readonly seed?: number;
}

const inFunction = (name: string, text: string, instead: string): Pick<Mutant, "text" | "instead"> => ({
  text: `function ${name}${text}`,
  instead: `function ${name}${instead}`,
});

export const mutants: readonly Mutant[] = [
  {
    fault: "the limit lets one unit more pass than its cap",
    text: "require(amount <= available, LimitExceeded",
    instead: "require(amount <= available || amount - available == 1, LimitExceeded",
    complaint: /audit: setLimit|expected LimitExceeded/,
  },
  {
    fault: "the ceiling is not looked at",
    text: "if (ceiling.isSet) {",
    instead: "if (ceiling.isSet && amount == 0) {",
    complaint: /audit: setCeiling|CeilingExceeded|what the wallet shows/,
  },
  {
    fault: "a payment's id is not remembered",
    text: "isSpent[id] = true;",
    instead: "",
    complaint: /isSpent|spent twice/,
  },
  {
    fault: "an id that was spent is not refused",
    text: "require(!isSpent[id], AlreadySpent(id));",
    instead: "",
    complaint: /spent twice/,
  },
  {
    fault: "anyone may spend",
    ...inFunction(
      "spend",
      "(bytes32 id, IERC20 token, address to, uint256 amount) external onlySpender",
      "(bytes32 id, IERC20 token, address to, uint256 amount) external",
    ),
    complaint: /audit: spend|expected NotSpender/,
  },
  {
    fault: "anyone may withdraw",
    seed: 20_261_124,
    ...inFunction(
      "withdraw",
      "(IERC20 token, address to, uint256 amount) external onlyOwner",
      "(IERC20 token, address to, uint256 amount) external",
    ),
    complaint: /audit: withdraw by another than the owner|withdraw: expected Ownable/,
  },
  {
    fault: "anyone may set a ceiling",
    ...inFunction(
      "setCeiling",
      "(address token, uint256 cap, uint64 periodSeconds) external onlyOwner",
      "(address token, uint256 cap, uint64 periodSeconds) external",
    ),
    complaint: /audit: setCeiling by another than the owner|setCeiling: expected Ownable/,
  },
  {
    fault: "anyone may set the spender",
    ...inFunction("setSpender", "(address newSpender) external onlyOwner", "(address newSpender) external"),
    complaint: /audit: setSpender by another than the owner|setSpender: expected Ownable/,
  },
  {
    fault: "the spender is still there after it detached",
    seed: 20_261_125,
    text: "_changeSpender(address(0));",
    instead: "emit SpenderChanged(spender, address(0));",
    complaint: /owner and spender|after detachment/,
  },
  {
    fault: "nothing is counted as spent",
    text: "totalSpent[token] = total + amount;",
    instead: "totalSpent[token] = total;",
    complaint: /what the wallet shows/,
  },
  {
    fault: "what was spent is not forgotten when a new period begins",
    text: "limit.spentBefore = total;\n        limit.windowEnd = _endOfWindow(limit.periodSeconds);",
    instead:
      "if (limit.windowEnd == 0) limit.spentBefore = total;\n        limit.windowEnd = _endOfWindow(limit.periodSeconds);",
    complaint: /what the wallet shows|LimitExceeded|CeilingExceeded|expected success/,
  },
  {
    fault: "a window lasts a second too long",
    text: "return block.timestamp >= limit.windowEnd;",
    instead: "return block.timestamp > limit.windowEnd;",
    complaint: /what the wallet shows|expected/,
  },
  {
    fault: "setting a limit again forgets what was spent in the running window",
    text: "if (_isOver(limit)) limit.spentBefore = total;",
    instead: "limit.spentBefore = total;",
    complaint: /what the wallet shows/,
  },
  {
    fault: "another period forgets what was spent in the running window",
    text: "if (_isOver(limit)) limit.spentBefore = total;",
    instead: "if (_isOver(limit) || periodSeconds != limit.periodSeconds) limit.spentBefore = total;",
    complaint: /what the wallet shows/,
  },
  {
    fault: "a limit over the whole life counts the running window only",
    text: "if (limit.periodSeconds == 0) spent = total;",
    instead: "if (limit.periodSeconds == 0) spent = total - limit.spentBefore;",
    complaint: /what the wallet shows/,
  },
  {
    fault: "a ceiling that was cleared still holds",
    text: "delete _ceilings[token];",
    instead: "",
    complaint: /what the wallet shows/,
  },
  {
    fault: "tokens share one ceiling",
    text: "Limit storage ceiling = _ceilings[token];\n        if",
    instead: "Limit storage ceiling = _ceilings[address(0)];\n        if",
    complaint: /audit: setCeiling|CeilingExceeded|what the wallet shows/,
  },
  {
    fault: "the owner's key can be given up",
    text: "revert OwnershipNotRenounceable();",
    instead: "",
    complaint: /ownership was given up/,
  },
];

/** The bytecode of each mutant by its fault. One call of the compiler for all. */
export async function compileMutants(): Promise<ReadonlyMap<string, Hex>> {
  const source = (await readSources())[SOURCE];
  if (source === undefined) throw new Error(`${SOURCE} is missing`);
  const faultAt = new Map(mutants.map(({ fault }, index) => [`mutants/${String(index)}.sol`, fault]));
  const sources = [...faultAt.keys()].map((name, index): [string, string] => [
    name,
    mutated(source, mutants[index]),
  ]);
  return new Map(
    compile(Object.fromEntries(sources)).map(({ source: name, bytecode }) => [
      faultAt.get(name) ?? name,
      bytecode,
    ]),
  );
}

function mutated(source: string, mutant: Mutant | undefined): string {
  if (mutant === undefined) throw new Error("a mutant for each source");
  const { fault, text, instead } = mutant;
  if (source.split(text).length !== 2) throw new Error(`not one place for the fault: ${fault}`);
  return source.replace(text, () => instead);
}
