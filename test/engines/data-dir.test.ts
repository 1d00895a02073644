import { chmod, mkdir, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "chai";
import { holdDataDir } from "../../src/engines/data-dir.ts";
import { engineErrorOf, removeFolder, scratchFolder } from "./support/scratch.ts";

const OPEN = 0o755;

describe("A DATA_DIR that is open to others", () => {
  let folder: string;
  const modeOf = async () => ((await stat(folder)).mode & 0o777).toString(8);
  beforeEach(async () => {
    folder = await scratchFolder();
    await chmod(folder, OPEN);
  });
  afterEach(() => removeFolder(folder));

  it("is closed to them when it is empty, or was a DATA_DIR before", async () => {
    await (await holdDataDir(folder)).release();
    expect(await modeOf()).to.equal("700");
    await writeFile(path.join(folder, "master.key"), "x");
    await chmod(folder, OPEN);
    await (await holdDataDir(folder)).release();
    expect(await modeOf()).to.equal("700");
  });

  it("is refused in one line, and left as it is, when other things lie in it", async () => {
    await mkdir(path.join(folder, "somebody-elses"));
    const error = await engineErrorOf(holdDataDir(folder), "DATA_DIR");
    expect(error.message).to.include(folder).and.include("open to other users");
    expect(await modeOf()).to.equal("755");
    await chmod(folder, 0o700);
    await (await holdDataDir(folder)).release();
  });
});
