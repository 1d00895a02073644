import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, lchown, mkdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "chai";
import { endOrphans, holdDataDir } from "../../src/engines/data-dir.ts";
import { openLog } from "../../src/engines/log-file.ts";
import { createLogger } from "../../src/lib/logger.ts";
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

/** Another user of the machine; only root can become another user. */
const OTHER_USER = 65_534;
const asRoot = process.geteuid?.() === 0 ? it : it.skip;

describe("A DATA_DIR in which another user has a hand", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await scratchFolder();
  });
  afterEach(() => removeFolder(folder));

  asRoot("is refused in one line when it is another user's, however closed it is", async () => {
    await chown(folder, OTHER_USER, OTHER_USER);
    const error = await engineErrorOf(holdDataDir(folder), "DATA_DIR");
    expect(error.message).to.include(folder).and.include("belongs to another user (65534, not 0)");
    await chown(folder, 0, 0);
    await (await holdDataDir(folder)).release();
  });

  asRoot("is refused when a secret, or a log, in it is another user's", async () => {
    for (const name of ["master.key", "mongodb.key", "logs"]) {
      const file = path.join(folder, name);
      if (name === "logs") await mkdir(file, { recursive: true });
      else await writeFile(file, "x");
      await lchown(file, OTHER_USER, OTHER_USER);
      const error = await engineErrorOf(holdDataDir(folder), "DATA_DIR");
      expect(error.message).to.include(file).and.include("belongs to another user");
      await chown(file, 0, 0);
    }
  });

  it("is refused when what is written or read there by name is a symbolic link", async () => {
    const target = path.join(folder, "target");
    await writeFile(target, "somebody's");
    await symlink(target, path.join(folder, "master.key"));
    const error = await engineErrorOf(holdDataDir(folder), "DATA_DIR");
    expect(error.message).to.include("master.key").and.include("is a symbolic link");
  });

  it("no log is written through a symbolic link", async () => {
    const [target, log] = [path.join(folder, "target"), path.join(folder, "service.log")];
    await writeFile(target, "somebody's");
    await symlink(target, log);
    const opened = await openLog(log).then(
      async ({ handle }) => {
        await handle.close();
        return "opened";
      },
      (error: unknown) => String(error),
    );
    expect(opened).to.include("ELOOP");
    expect(() => createLogger({ level: "info", file: log })).to.throw("is a symbolic link");
    expect(await readFile(target, "utf8")).to.equal("somebody's");
  });

  asRoot("a foreign process that carries its path is left alone; an own one is ended", async () => {
    const lines = ["-s", "--", "--dbpath", path.join(folder, "mongodb"), "--bind_ip", "127.0.0.1", "x"];
    const own = spawn("/bin/sh", lines);
    const foreign = spawn("/bin/sh", lines, { uid: OTHER_USER, gid: OTHER_USER });
    await Promise.all([once(own, "spawn"), once(foreign, "spawn")]);
    const ownEnd = once(own, "exit");
    const traces = {
      mongodbFolder: path.join(folder, "mongodb"),
      temporalDatabase: path.join(folder, "none"),
      chainFolder: path.join(folder, "none"),
      cardNetworkFolder: path.join(folder, "none"),
    };
    const told: string[] = [];
    await endOrphans(traces, (line) => void told.push(line));
    await ownEnd;
    expect(told).to.have.length(1);
    expect([foreign.exitCode, foreign.signalCode]).to.deep.equal([null, null]);
    const foreignEnd = once(foreign, "exit");
    foreign.kill("SIGKILL");
    await foreignEnd;
  });
});
