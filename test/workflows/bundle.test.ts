import { mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { keptOrMade } from "../../server/workflow-bundle.ts";
import { createLogger } from "../../server/logger.ts";

describe("the bundle of the workflows", () => {
  const logger = createLogger({ level: "fatal", file: null });
  let cache: string;
  before(async () => {
    cache = await mkdtemp(join(tmpdir(), "spending-control-bundle-"));
  });
  after(() => rm(cache, { recursive: true, force: true }));

  const made = async () => (await keptOrMade(logger, { XDG_CACHE_HOME: cache })).code;
  const folder = () => join(cache, "agent-spending-control", "workflow-bundles");
  async function keptFile(): Promise<string> {
    const [name, ...more] = await readdir(folder());
    if (name === undefined || more.length > 0) throw new Error("one bundle is kept");
    return join(folder(), name);
  }

  it("is made once and kept; one that is damaged is not run but made again", async () => {
    const first = await made();
    expect(first).to.include("answers-first");
    const file = await keptFile();
    expect((await stat(file)).mode & 0o777, "its owner's alone").to.equal(0o600);
    const marked = `${(await readFile(file, "utf8")).split("\n", 1)[0] ?? ""}\n`;
    expect(await made(), "the kept one").to.equal(first);

    await truncate(file, 1_000);
    expect(await made(), "after it was cut short").to.equal(first);
    await writeFile(file, `${marked}throw new Error("not ours");`);
    expect(await made(), "after it was altered").to.equal(first);
  });
});
