import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Script } from "node:vm";
import { expect } from "chai";
import { openBundle } from "../../src/lib/bundle.ts";
import { builtFile } from "../../src/lib/package-root.ts";
import { cleanEnvironment } from "../support/process.ts";
import { someOrAll } from "../support/soak.ts";

const run = promisify(execFile);
const SOURCES = "the stamp of the sources";

/** A program in a folder of its own, which says how it was started. */
class Built {
  readonly dist: string;

  private constructor(dist: string) {
    this.dist = dist;
  }

  static async in(folder: string): Promise<Built> {
    const built = new Built(join(folder, "dist"));
    await mkdir(join(built.dist, "bundle"), { recursive: true });
    for (const source of ["server/main", "src/lib/bundle"])
      await cp(builtFile(`${source}.ts`), join(built.dist, `${source}.js`));
    await writeFile(join(folder, "package.json"), '{ "type": "module" }');
    await writeFile(join(built.dist, "server", "program.js"), 'console.log("by modules");');
    // Of each folder another one: V8 remembers what it has compiled in this process.
    const text =
      '(function (require, file, folder, program) { console.log("by the bundle:", program); })' +
      `// ${folder}`;
    await built.write("bundle/one.cjs", text);
    await built.write("bundle/one.cache", new Script(text).createCachedData());
    await built.write("bundle/current", `${SOURCES}\none\n`);
    await built.write(".stamp", SOURCES);
    return built;
  }

  write(file: string, content: string | Buffer): Promise<void> {
    return writeFile(join(this.dist, file), content);
  }

  async start(): Promise<string> {
    return (await run(process.execPath, [join(this.dist, "server", "main.js")])).stdout;
  }
}

describe("the bundle, which programs are started from", () => {
  let folder: string;
  let built: Built;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "spending-control-bundle-"));
    built = await Built.in(folder);
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it("is of these sources, and V8 takes the code that it compiled before", async () => {
    // In a process of its own: V8 refuses the code in one whose flags have changed since its start.
    const program = `import { openBundle } from ${JSON.stringify(builtFile("src/lib/bundle.ts"))};
      console.log(openBundle()?.script.cachedDataRejected);`;
    const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", program]);
    expect(stdout).to.equal("false\n");
  });

  it("answers as the modules do that it is made of", async () => {
    const calls = [["--help"], ["admin", "--help"], ["admin", "create-organization", "--help"]];
    for (const args of someOrAll(calls, 1)) {
      const of = async (source: string) =>
        (await run(process.execPath, [builtFile(source), ...args], { env: cleanEnvironment() })).stdout;
      const [bundled, byModules] = await Promise.all([of("server/main.ts"), of("server/program.ts")]);
      expect(bundled).to.equal(byModules).and.not.equal("");
    }
  });

  it("is what a start runs, and the modules where it is of other sources or not whole", async () => {
    expect(await built.start()).to.equal("by the bundle: server/program\n");
    await built.write(".stamp", "other sources");
    expect(await built.start()).to.equal("by modules\n");
    await built.write(".stamp", SOURCES);
    await rm(join(built.dist, "bundle", "one.cache"));
    expect(await built.start()).to.equal("by modules\n");
    await rm(join(built.dist, "bundle"), { recursive: true });
    expect(await built.start()).to.equal("by modules\n");
  });

  const useless = {
    "of another text": () => new Script("(function () { return 'another text'; })").createCachedData(),
    "that V8 did not write": () => Buffer.from("what no V8 has written"),
  };
  for (const [what, code] of Object.entries(useless)) {
    it(`is compiled anew where the code beside it is ${what}`, async () => {
      await built.write("bundle/one.cache", code());
      expect(openBundle(built.dist)?.script.cachedDataRejected).to.equal(true);
      expect(await built.start()).to.equal("by the bundle: server/program\n");
    });
  }
});
