import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { z } from "zod";

const locked = z.object({
  packages: z.record(z.string(), z.object({ dev: z.boolean().optional(), optional: z.boolean().optional() })),
});
const manifest = z.object({ name: z.string(), license: z.string().optional() });

/** Licences that allow use, change and sale without a duty to publish. */
const PERMISSIVE = new Set(
  "0BSD Apache-2.0 BSD-2-Clause BSD-3-Clause BlueOak-1.0.0 CC-BY-4.0 ISC MIT MIT-0 Unlicense".split(" "),
);
/** Packages whose manifest names no licence, though they have a permissive one. */
const UNNAMED = ["unionfs"];

describe("dependencies", () => {
  it("what is shipped has permissive licences alone", async () => {
    const { packages } = locked.parse(JSON.parse(await readFile("package-lock.json", "utf8")));
    const shipped = Object.entries(packages).filter(([path, { dev }]) => path !== "" && dev !== true);
    expect(shipped.length).to.be.greaterThan(100);
    const others: string[] = [];
    for (const [path, { optional }] of shipped) {
      const text = await readFile(join(path, "package.json"), "utf8").catch(() => null);
      if (text === null) {
        // Builds for other platforms are not installed.
        expect(optional, path).to.equal(true);
        continue;
      }
      const { license = "", name } = manifest.parse(JSON.parse(text));
      const named = license.replaceAll(/[()]/g, "").split(/ (?:OR|AND) /);
      if (!UNNAMED.includes(name) && !named.every((each) => PERMISSIVE.has(each)))
        others.push(`${name}: ${license}`);
    }
    expect(others).to.deep.equal([]);
  });
});
