import { readdir, readFile } from "node:fs/promises";
import { expect } from "chai";
import { staleArtifacts } from "../../scripts/contracts/artifacts.ts";
import { compile, readSources } from "../../scripts/contracts/compiler.ts";

const importing = (name: string): string =>
  `// SPDX-License-Identifier: MIT\npragma solidity 0.8.37; import "${name}"; contract Importing {}`;

describe("the contracts' artifacts", () => {
  it("are what the compiler makes of the sources, no file more and none less", async () => {
    expect(await staleArtifacts()).to.deep.equal([]);
  });

  it("hold no path of the machine that made them", async () => {
    const folder = "contracts/artifacts";
    for (const name of await readdir(folder)) {
      const text = await readFile(`${folder}/${name}`, "utf8");
      expect(text, name).to.not.match(/node_modules|\/home\/|\/tmp\/|\/work\//);
    }
  });

  it("come of sources that say at the top that they are unaudited", async () => {
    for (const [name, text] of Object.entries(await readSources()))
      expect(text.slice(0, text.search(/^contract /m)), name).to.include("UNAUDITED");
  });

  it("are not made of a source that the compiler warns of", () => {
    const sources = { "contracts/Warned.sol": "pragma solidity 0.8.37; contract Warned {}" };
    expect(() => compile(sources)).to.throw("SPDX");
  });

  it("are not made of a file outside OpenZeppelin's contracts", () => {
    for (const name of [
      "/etc/passwd",
      "solc/package.json",
      "@openzeppelin/contracts/../../solc/package.json",
    ])
      expect(() => compile({ "contracts/Importing.sol": importing(name) }), name).to.throw("is not ours");
  });
});
