import { mkdir, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { EngineError } from "../../src/engines/errors.ts";
import { type LockOptions, lockHolder, takeLock } from "../../src/engines/process-lock.ts";
import { startMarker } from "../../src/engines/processes.ts";
import { engineErrorOf, removeFolder, scratchFolder } from "./support/scratch.ts";

const PID_OF_NOBODY = 4_194_304;

const options = (waitMs: number): LockOptions => ({
  waitMs,
  held: (pid) => new EngineError("DATA_DIR", `held by ${String(pid)}`),
});

describe("A lock between processes", () => {
  let folder: string;
  beforeEach(async () => {
    folder = path.join(await scratchFolder(), "lock");
  });
  afterEach(() => removeFolder(path.dirname(folder)));

  it("is held by one at a time, however many contend", async () => {
    let inside = 0;
    let most = 0;
    let turns = 0;
    const contend = async (): Promise<void> => {
      const lock = await takeLock(folder, options(20_000));
      inside += 1;
      most = Math.max(most, inside);
      await new Promise((resolve) => setTimeout(resolve, 5));
      turns += 1;
      inside -= 1;
      await lock.release();
    };
    await Promise.all(Array.from({ length: 6 }, contend));
    expect({ most, turns }).to.deep.equal({ most: 1, turns: 6 });
  });

  it("is refused while a live process holds it, and names that process", async () => {
    const lock = await takeLock(folder, options(0));
    expect(await lockHolder(folder)).to.equal(process.pid);
    const error = await engineErrorOf(takeLock(folder, options(0)), "DATA_DIR");
    expect(error.message).to.equal(`held by ${String(process.pid)}`);
    await lock.release();
    expect(await lockHolder(folder)).to.equal(null);
  });

  it("is not held by a dead process, nor by another that has its pid now", async () => {
    const marker = (await startMarker(process.pid)) ?? "";
    const ofDead = `${String(PID_OF_NOBODY)}.${marker}.${randomUUID()}`;
    const ofFormer = `${String(process.pid)}.${marker}0.${randomUUID()}`;
    await mkdir(folder, { recursive: true });
    for (const file of [ofDead, ofFormer]) await writeFile(path.join(folder, file), "");
    expect(await lockHolder(folder)).to.equal(null);
    const lock = await takeLock(folder, options(0));
    expect(await readdir(folder)).to.have.length(1);
    await lock.release();
  });
});
